package allocation_test

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"feedwarden/allocation"
)

// read gives a list's lines as "line id password" and its faults as "line !problem".
func read(t testing.TB, text string, o allocation.ListOptions) []string {
	t.Helper()
	var out []string
	err := allocation.ParseList(strings.NewReader(text), o, func(line int, u *url.URL, err error) {
		if err != nil {
			out = append(out, fmt.Sprintf("%d !%v", line, err))
			return
		}
		password, _ := u.User.Password()
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s", line, allocation.ID(u), password)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestParseList(t *testing.T) {
	private := allocation.ListOptions{AllowPrivate: true}
	userFirst := allocation.ListOptions{Format: allocation.FormatUserFirst}
	socks := allocation.ListOptions{Scheme: "socks5"}
	for _, c := range []struct {
		name string
		text string
		o    allocation.ListOptions
		want []string // what starts with "N !" must be contained in the error
	}{
		{"colon form with a colon in the password", "10.1.2.4:6511:user:pa:ss", private, []string{"1 http://user@10.1.2.4:6511 pa:ss"}},
		{"colon form with a host name", "gw.example:8000:u:p", allocation.ListOptions{}, []string{"1 http://u@gw.example:8000 p"}},
		{"colon form is literal", "1.2.3.4:80:user:p%40ss", allocation.ListOptions{}, []string{"1 http://user@1.2.3.4:80 p%40ss"}},
		{"colon form with an at sign", "1.2.3.4:80:user:p@ss", allocation.ListOptions{}, []string{"1 http://user@1.2.3.4:80 p@ss"}},
		{"colon form, IPv6", "[2001:db8::1]:80:user:p:w", allocation.ListOptions{}, []string{"1 http://user@[2001:db8::1]:80 p:w"}},
		{"colon form with :// in the password", "1.2.3.4:80:user:a://b", allocation.ListOptions{}, []string{"1 http://user@1.2.3.4:80 a://b"}},
		{"colon form, empty password", "1.2.3.4:80:user:", allocation.ListOptions{}, []string{"1 http://key~04f8996da763@1.2.3.4:80"}},
		{"user first without being told", "user:pass:5.6.7.8:90", allocation.ListOptions{}, []string{"1 !only when the list's format says so"}},
		{"both readings hold", "1.2.3.4:80:5.6.7.8:90", allocation.ListOptions{}, []string{"1 !can be read as host:port:user:password and as user:password:host:port"}},
		{"both readings hold, one of them private", "1.2.3.4:80:10.0.0.1:90", allocation.ListOptions{}, []string{"1 !can be read as"}},
		{"both readings hold, names", "proxy:8080:user:9090", allocation.ListOptions{}, []string{"1 !can be read as"}},
		{"user first when told", "1.2.3.4:80:5.6.7.8:90", userFirst, []string{"1 http://1.2.3.4@5.6.7.8:90 80"}},
		{"user first, colons in the password", "u:a:b:c:5.6.7.8:90", userFirst, []string{"1 http://u@5.6.7.8:90 a:b:c"}},
		{"user first when told, in a line that is not", "1.2.3.4:80:user:1234", userFirst, []string{"1 !host and port stand in front of user and password"}},
		{"the same with a dot behind", "1.2.3.4:80:user.:1234", userFirst, []string{"1 !host and port stand in front of user and password"}},
		{"user first, IPv6", "u:p:[2001:db8::1]:90", userFirst, []string{"1 http://u@[2001:db8::1]:90 p"}},
		{"user first, plain lines are read too", "5.6.7.8:90\nhttp://u:p@h.example", userFirst, []string{"1 http://5.6.7.8:90", "2 http://u@h.example:80 p"}},
		{"at sign and colon form both hold", "1.2.3.4:80:user:p@ss.example:99", allocation.ListOptions{}, []string{"1 !can be read as user:password@host:port"}},
		{"host and port changed with user and password", "http://1.2.3.4:5678@user:pass", allocation.ListOptions{}, []string{"1 !host and port stand in front of user and password"}},
		{"the same with a password of digits", "http://1.2.3.4:5678@user:1234", allocation.ListOptions{}, []string{"1 !host and port stand in front of user and password"}},
		{"the same without a scheme", "1.2.3.4:5678@user:1234", allocation.ListOptions{}, []string{"1 !host and port stand in front of user and password"}},
		{"a port is never invented", "user:pass@host", allocation.ListOptions{}, []string{"1 !no port is given"}},
		{"a bare address", "1.2.3.4", allocation.ListOptions{}, []string{"1 !no port is given"}},
		{"an empty port", "http://h.example:", allocation.ListOptions{}, []string{"1 !the port is not a number"}},
		{"BOM, CRLF, blanks, comments", "\ufeff1.2.3.4:80  \r\n\r\n# note\r\n\t5.6.7.8:81\t# two\r\n  \r\n9.9.9.9:82", allocation.ListOptions{},
			[]string{"1 http://1.2.3.4:80", "4 http://5.6.7.8:81", "6 http://9.9.9.9:82"}},
		{"CR alone", "1.2.3.4:80\r# note\r\r5.6.7.8:81:u:p\r", allocation.ListOptions{}, []string{"1 http://1.2.3.4:80", "4 http://u@5.6.7.8:81 p"}},
		{"line ends of all sorts", "1.2.3.4:80\n\r\n5.6.7.8:81\r9.9.9.9:82\r\nx", allocation.ListOptions{}, []string{"1 http://1.2.3.4:80", "3 http://5.6.7.8:81", "4 http://9.9.9.9:82", "5 !no port"}},
		{"a NUL in a line", "1.2.3.4:80\x00\n5.6.7.8:81", allocation.ListOptions{}, []string{"1 !control character", "2 http://5.6.7.8:81"}},
		{"UTF-16 without a mark", "1\x00.\x002\x00\n\x00", allocation.ListOptions{}, []string{"1 !control character", "2 !control character"}},
		{"a table with a header", "ip,port,country\n1.2.3.4,8080,US\n\"1.2.3.4\",\"8080\"", allocation.ListOptions{},
			[]string{"1 !no port", "1 !no port", "1 !no port", "2 !no port", "2 !no port", "2 !no port", "3 !no port", "3 !no port"}},
		{"JSON", "[{\"ip\":\"1.2.3.4\",\"port\":80}]", allocation.ListOptions{}, []string{"1 !", "1 !"}},
		{"a page", "<html><body>1.2.3.4:80</body></html>", allocation.ListOptions{}, []string{"1 !"}},
		{"a BOM in the middle", "1.2.3.4:80\n\ufeff5.6.7.8:81\n", allocation.ListOptions{}, []string{"1 http://1.2.3.4:80", "2 http://5.6.7.8:81"}},
		{"UTF-16", "\xff\xfe1\x00.\x00", allocation.ListOptions{}, []string{"1 !UTF-16"}},
		{"not UTF-8", "1.2.3.4:80:u:\xff\n5.6.7.8:80", allocation.ListOptions{}, []string{"1 !not UTF-8", "2 http://5.6.7.8:80"}},
		{"a hash inside a password", "1.2.3.4:80:user:p#ss", allocation.ListOptions{}, []string{"1 http://user@1.2.3.4:80 p#ss"}},
		{"commas", "1.2.3.4:80, http://u:p@5.6.7.8:81/ ,,[2001:db8::1]:82,", allocation.ListOptions{},
			[]string{"1 http://1.2.3.4:80", "1 http://u@5.6.7.8:81 p", "1 http://[2001:db8::1]:82"}},
		{"commas in colon form", "1.2.3.4:80:u:p,5.6.7.8:81:v:q", allocation.ListOptions{}, []string{"1 http://u@1.2.3.4:80 p", "1 http://v@5.6.7.8:81 q"}},
		{"commas, one part broken", "1.2.3.4:80,nonsense,5.6.7.8:81", allocation.ListOptions{}, []string{"1 http://1.2.3.4:80", "1 !no port", "1 http://5.6.7.8:81"}},
		{"commas, one part private", "1.2.3.4:80:u:p,10.0.0.1:80:v:q", allocation.ListOptions{}, []string{"1 http://u@1.2.3.4:80 p", "1 !private"}},
		{"a comma in a password", "http://user:pa,ss@h.example:80", allocation.ListOptions{}, []string{"1 !the comma may"}},
		{"a comma in a password that looks like a list", "http://user:80,ss@h.example:80", allocation.ListOptions{}, []string{"1 !the comma may"}},
		{"a comma in a colon-form password", "1.2.3.4:80:u:pa,ss", allocation.ListOptions{}, []string{"1 !the comma may"}},
		{"an encoded comma", "http://user:pa%2Css@h.example:80", allocation.ListOptions{}, []string{"1 http://user@h.example:80 pa,ss"}},
		{"bare IPv6", "2001:db8::1:8080", allocation.ListOptions{}, []string{"1 !an IPv6 address needs brackets"}},
		{"bare IPv6 in full, with a port", "2001:db8:0:0:0:0:0:1:8080", allocation.ListOptions{}, []string{"1 !an IPv6 address needs brackets"}},
		{"bare IPv6 in a URL", "http://u:p@2001:db8::1:8080", allocation.ListOptions{}, []string{"1 !an IPv6 address needs brackets"}},
		{"IPv6", "[2001:DB8:0::1]:8080", allocation.ListOptions{}, []string{"1 http://[2001:db8::1]:8080"}},
		{"IPv6 without its end", "http://[2001:db8::1:80", allocation.ListOptions{}, []string{"1 !closing bracket"}},
		{"IPv6 with a zone", "[fe80::1%eth0]:80", private, []string{"1 !not an IPv6 address"}},
		{"brackets around IPv4", "[1.2.3.4]:80", private, []string{"1 !not an IPv6 address"}},
		{"IPv4 inside IPv6 is IPv4", "[::ffff:1.2.3.4]:80", allocation.ListOptions{}, []string{"1 http://1.2.3.4:80"}},
		{"a bare percent sign", "http://user:50%off@h.example:80", allocation.ListOptions{}, []string{"1 !percent-encode"}},
		{"two at signs", "http://user:p@ss@h.example:80", allocation.ListOptions{}, []string{"1 !percent-encode"}},
		{"a slash in a password", "http://user:p/ss@h.example:80", allocation.ListOptions{}, []string{"1 !percent-encode"}},
		{"a hash in a URL's password", "http://user:p#ss@h.example:80", allocation.ListOptions{}, []string{"1 !percent-encode"}},
		{"no scheme", "user:secret@proxy.example:8080", allocation.ListOptions{}, []string{"1 http://user@proxy.example:8080 secret"}},
		{"no scheme, single label", "user:secret@proxy:8080", allocation.ListOptions{}, []string{"1 http://user@proxy:8080 secret"}},
		{"no scheme, percent-encoded", "user:p%40ss@proxy:8080", allocation.ListOptions{}, []string{"1 http://user@proxy:8080 p@ss"}},
		{"percent-encoded", "http://user:p%40ss@h.example:80", allocation.ListOptions{}, []string{"1 http://user@h.example:80 p@ss"}},
		{"a user that needs encoding", "http://us%20er%2Fx:pw@h.example:80", allocation.ListOptions{}, []string{"1 http://us%20er%2Fx@h.example:80 pw"}},
		{"nothing before the at sign", "http://@h.example:80", allocation.ListOptions{}, []string{"1 !are empty"}},
		{"colon form with nothing in it", "1.2.3.4:80::", allocation.ListOptions{}, []string{"1 !are empty"}},
		{"a user with a colon", "http://us%3Aer:pw@h.example:80", allocation.ListOptions{}, []string{"1 !the user has a colon"}},
		{"a line end in a password", "http://user:a%0d%0ab@h.example:80", allocation.ListOptions{}, []string{"1 !control character"}},
		{"private addresses", "0.0.0.0:80\n127.0.0.7:80\n10.0.0.1:80", allocation.ListOptions{}, []string{"1 !private", "2 !private", "3 !private"}},
		{"private addresses allowed", "127.0.0.7:80\nlocalhost:81\n[::1]:82", private, []string{"1 http://127.0.0.7:80", "2 http://localhost:81", "3 http://[::1]:82"}},
		{"one endpoint in three spellings", "HTTP://EX.com:80/\nex.com:80\nhttp://ex.com\nEX.COM.:80", allocation.ListOptions{},
			[]string{"1 http://ex.com:80", "2 http://ex.com:80", "3 http://ex.com:80", "4 http://ex.com:80"}},
		{"default ports", "http://h.example\nhttps://h.example\nsocks5://h.example\nSOCKS5H://h.example", allocation.ListOptions{},
			[]string{"1 http://h.example:80", "2 https://h.example:443", "3 socks5://h.example:1080", "4 socks5h://h.example:1080"}},
		{"another default scheme", "1.2.3.4:1080", socks, []string{"1 socks5://1.2.3.4:1080"}},
		{"ports out of range", "1.2.3.4:0\n1.2.3.4:99999\n1.2.3.4:080\n1.2.3.4:+80\n1.2.3.4:8080", allocation.ListOptions{},
			[]string{"1 !port", "2 !port", "3 !port", "4 !port", "5 http://1.2.3.4:8080"}},
		{"numbers that are no address", "010.1.2.3:80\n1.2.3:80\n2130706433:80\n0x7f.1:80\n256.1.1.1:80\n1.2.3.4:5.6.7.8", allocation.ListOptions{},
			[]string{"1 !IPv4", "2 !IPv4", "3 !IPv4", "4 !IPv4", "5 !IPv4", "6 !port"}},
		{"hosts that are none", "-a.example:80\na..b:80\nhé.example:80\n:80\nh%41.example:80\n" + strings.Repeat("a", 64) + ":80", allocation.ListOptions{},
			[]string{"1 !neither", "2 !neither", "3 !neither", "4 !neither", "5 !neither", "6 !neither"}},
		{"schemes that net/http cannot use", "socks4://1.2.3.4:1080\nsocks4a://1.2.3.4:1080\nftp://1.2.3.4:21\nws://1.2.3.4:80\n://1.2.3.4:80", allocation.ListOptions{},
			[]string{"1 !socks4 proxies", "2 !socks4a proxies", "3 !ftp proxies", "4 !scheme is unknown", "5 !scheme is unknown"}},
		{"colon form after a scheme", "http://1.2.3.4:80:u:p", allocation.ListOptions{}, []string{"1 !more than one colon"}},
		{"a path", "http://1.2.3.4:80/path\nhttp://1.2.3.4:80?x", allocation.ListOptions{}, []string{"1 !something follows", "2 !something follows"}},
		{"blanks inside", "1.2.3.4 80\n1.2.3.4:80 5.6.7.8:80", allocation.ListOptions{}, []string{"1 !blank", "2 !blank"}},
		{"socks5 needs a user", "socks5://:pw@1.2.3.4:1080", allocation.ListOptions{}, []string{"1 !does not fit socks5"}},
		{"a page of text", strings.Repeat("x", 3000) + ":80", allocation.ListOptions{}, []string{"1 !longer than 2048"}},
		{"a page of text when percent-encoded", "http://" + strings.Repeat(">", 700) + ":pw@h.example:80", allocation.ListOptions{}, []string{"1 !longer than 2048"}},
		{"an endless line", strings.Repeat("x", 1<<20+1) + "\n1.2.3.4:80", allocation.ListOptions{}, []string{"1 !longer than 1 MiB", "2 http://1.2.3.4:80"}},
		{"nothing", "", allocation.ListOptions{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := read(t, c.text, c.o)
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i, want := range c.want {
				line, problem, fault := strings.Cut(want, " !")
				if fault && (!strings.HasPrefix(got[i], line+" !") || !strings.Contains(got[i], problem)) || !fault && got[i] != want {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

func TestPrivatePrefixes(t *testing.T) {
	for _, host := range []string{
		"0.1.2.3", "10.255.0.1", "100.64.0.1", "100.127.255.255", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "240.0.0.1", "255.255.255.255",
		"[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]", "[fc00::1]", "[fd12::1]",
		"[fe80::1]", "[ff02::1]", "[2002:7f00:1::]", "[2001::1]", "[100::1]",
		"localhost", "LOCALHOST", "a.localhost", "localhost.", "ip6-localhost",
	} {
		if got := read(t, host+":80", allocation.ListOptions{}); len(got) != 1 || !strings.Contains(got[0], "private") {
			t.Errorf("%s gives %q, want it refused as private", host, got)
		}
	}
	for _, host := range []string{"1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "203.0.113.9", "[2606:4700::1]", "[2001:db8::1]", "localhosts.example"} {
		if got := read(t, host+":80", allocation.ListOptions{}); len(got) != 1 || strings.Contains(got[0], "!") {
			t.Errorf("%s gives %q, want it accepted", host, got)
		}
	}
}

func TestIDsTellEndpointsApart(t *testing.T) {
	got := read(t, strings.Join([]string{
		"http://a:x@h.example:80", "http://a:y@h.example:80", // a password is no part of it
		"http://b:x@h.example:80", "http://h.example:80", "http://h.example:81", "https://h.example:80",
		"http://KEY1@h.example:80", "http://KEY2@h.example:80",
	}, "\n"), allocation.ListOptions{})
	ids := map[string]bool{}
	for _, g := range got {
		id := strings.Fields(g)[1]
		ids[id] = true
		if strings.Contains(id, "KEY") {
			t.Errorf("the ID %s shows a user that may be a key", id)
		}
	}
	if len(ids) != 7 {
		t.Errorf("got %d IDs from %q, want 7", len(ids), got)
	}
}

func TestParseListFailures(t *testing.T) {
	each := func(int, *url.URL, error) {}
	broken := errors.New("disk")
	if err := allocation.ParseList(iotest.ErrReader(broken), allocation.ListOptions{}, each); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
	if err := allocation.ParseList(strings.NewReader(""), allocation.ListOptions{Format: "csv"}, each); err == nil {
		t.Error("an unknown format is accepted")
	}
	if err := allocation.ParseList(strings.NewReader(""), allocation.ListOptions{Scheme: "socks4"}, each); err == nil {
		t.Error("an unknown scheme is accepted")
	}
	// One byte at a time gives the same.
	n := 0
	err := allocation.ParseList(iotest.OneByteReader(strings.NewReader("1.2.3.4:80\r\n5.6.7.8:80")), allocation.ListOptions{},
		func(_ int, _ *url.URL, err error) {
			if err == nil {
				n++
			}
		})
	if err != nil || n != 2 {
		t.Errorf("got %d endpoints and %v", n, err)
	}
}

// FuzzParseList puts a password into a line's broken surroundings: no error and
// no ID shows four of its letters in a row, and what comes out reads the same again.
func FuzzParseList(f *testing.F) {
	for _, s := range []string{"", ":", "@", ":80", "http://", "1.2.3.4:80:u:", "u:", "@h:80", "%", "%zz", ",", "#", "/", "[", "]:80", "socks5://a:", "://",
		"\ufeff", "\r\n", " ", "2001:db8::1", ":1.2.3.4:80", "\x00", "::", "//", "\\"} {
		f.Add(s, "@h.example:80")
		f.Add("http://u:", s)
		f.Add("1.2.3.4:80:u:", s)
	}
	const canary = "qZ7xWv9KpJ3"
	f.Fuzz(func(t *testing.T, before, after string) {
		show := func(text string) {
			for i := 0; i+4 <= len(canary); i++ {
				if part := canary[i : i+4]; strings.Contains(strings.ToLower(text), strings.ToLower(part)) && !strings.Contains(before+after, part) {
					t.Fatalf("%q shows a part of the password in %q", text, before+canary+after)
				}
			}
		}
		for _, format := range []string{allocation.FormatAuto, allocation.FormatUserFirst} {
			o := allocation.ListOptions{Format: format, AllowPrivate: true}
			err := allocation.ParseList(strings.NewReader(before+canary+after), o, func(line int, u *url.URL, err error) {
				if (u == nil) == (err == nil) || line < 1 {
					t.Fatalf("line %d: got %v and %v", line, u, err)
				}
				if err != nil {
					show(err.Error())
					return
				}
				if password, _ := u.User.Password(); strings.Contains(password, canary) {
					show(allocation.ID(u))
				}
				again := read(t, strings.ReplaceAll(u.String(), ",", "%2C"), o)
				if len(again) != 1 || !strings.HasPrefix(again[0], "1 "+allocation.ID(u)) {
					t.Fatalf("%q is read as %q", allocation.ID(u), again)
				}
			})
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
	})
}
