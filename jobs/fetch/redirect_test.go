package fetch

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestRedirectIsFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/old":
				w.Header().Set("Location", "../new?x=1")
				w.WriteHeader(status)
			default:
				_, _ = w.Write([]byte(r.URL.String()))
			}
		})
		resp := get(t, open(t, Config{}), s.URL+"/old", Via{})
		if string(resp.Body) != "/new?x=1" || resp.URL.String() != s.URL+"/new?x=1" || resp.Redirects != 1 {
			t.Errorf("%d: %s from %s after %d redirects", status, resp.Body, resp.URL, resp.Redirects)
		}
	}
}

func TestRedirectsHaveAnEnd(t *testing.T) {
	var asked atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	_, err := open(t, Config{MaxRedirects: 3}).Do(t.Context(), Request{URL: s.URL + "/"}, Via{})
	wantKind(t, err, KindPolicy)
	if asked.Load() != 4 {
		t.Errorf("%d requests, want 4", asked.Load())
	}
	resp := get(t, open(t, Config{MaxRedirects: -1}), s.URL+"/", Via{})
	if resp.Status != http.StatusFound {
		t.Errorf("status %d where redirects are not followed", resp.Status)
	}
}

// A dial guard would see only the proxy's address on these.
func TestRedirectToPrivateAddressIsRefusedOnEveryHop(t *testing.T) {
	for _, to := range []string{
		"http://169.254.169.254/latest/meta-data/",
		"http://[::ffff:127.0.0.1]/",
		"http://[::ffff:7f00:1]:8080/",
		"http://127.0.0.1/",
		"http://127.1/",
		"http://2130706433/",
		"http://[::1]/",
		"http://100.64.0.1/",
		"http://[64:ff9b::7f00:1]/",
		"http://[64:ff9b::a9fe:a9fe]/",
		"http://10.0.0.1/",
		"http://localhost/",
		"//localhost./",
		"http://metadata.google.internal/",
		"ftp://example.com/",
		"file:///etc/passwd",
		"http://example.com:6379/",
		"http://user:pa/ss@example.com/",
	} {
		t.Run(to, func(t *testing.T) {
			var asked []string
			via := anyHost(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.String())
				w.Header().Set("Location", to)
				if len(asked) == 1 {
					w.Header().Set("Location", "http://second.example.com/")
				}
				w.WriteHeader(http.StatusFound)
			})
			_, err := client(t, Config{}).Do(t.Context(), Request{URL: "http://feeds.example.com/"}, via)
			e := wantKind(t, err, KindPolicy)
			if e.Unsent {
				t.Error("it says that nothing was sent")
			}
			if strings.Join(asked, " ") != "http://feeds.example.com/ http://second.example.com/" {
				t.Errorf("asked for %q", asked)
			}
			if strings.Contains(e.Error(), "pa/ss") || strings.Contains(e.Error(), "ss@") {
				t.Errorf("the error quotes a password: %v", e)
			}
		})
	}
}

func TestRedirectOffAllowHostsIsRefused(t *testing.T) {
	var asked atomic.Int64
	via := anyHost(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "http://other.example.net/", http.StatusFound)
	})
	_, err := client(t, Config{AllowHosts: []string{"feeds.example.com"}}).Do(t.Context(), Request{URL: "http://feeds.example.com/"}, via)
	wantKind(t, err, KindPolicy)
	if asked.Load() != 1 {
		t.Errorf("%d requests", asked.Load())
	}
}

func TestKeyedRequestNeverLeavesItsOrigin(t *testing.T) {
	const key = "SECRET-KEY-1"
	for _, tt := range []struct {
		to       string
		followed bool
	}{
		{"/v3/here", true},
		{"http://api.example.com/elsewhere", true},
		{"http://API.example.com:80/elsewhere", true},
		{"http://evil.example.net/", false},
		{"http://api.example.com.evil.example.net/", false},
		{"http://api.example.com:8080/", false},
		{"//evil.example.net/", false},
		{"http://api.example.com@evil.example.net/", false},
	} {
		t.Run(tt.to, func(t *testing.T) {
			var asked []string
			via := anyHost(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Host+" "+r.Header.Get("X-Goog-Api-Key")+r.Header.Get("Referer"))
				if len(asked) == 1 {
					w.Header().Set("Location", tt.to)
					w.WriteHeader(http.StatusFound)
				}
			})
			_, err := client(t, Config{}).Do(t.Context(), Request{
				URL: "http://api.example.com/v3", Keyed: true, Header: http.Header{"X-Goog-Api-Key": {key}},
			}, via)
			if tt.followed {
				if err != nil || len(asked) != 2 || !strings.HasSuffix(asked[1], " "+key) {
					t.Fatalf("%v, asked %q", err, asked)
				}
				return
			}
			e := wantKind(t, err, KindPolicy)
			if len(asked) != 1 || e.Unsent || strings.Contains(e.Error(), key) {
				t.Fatalf("asked %q, %v", asked, e)
			}
		})
	}
}

func TestSameOrigin(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"http://a.example/", "https://a.example/", true},
		{"https://a.example/", "http://a.example/", false}, // the key would be in the clear
		{"http://a.example:8080/", "https://a.example:8080/", false},
		{"https://a.example/", "https://a.example:443/", true},
		{"https://a.example/", "https://b.example/", false},
		{"https://a.example/", "https://u:p@a.example/", false},
	} {
		a, b := must(url.Parse(tt.a)), must(url.Parse(tt.b))
		if got := sameOrigin(a, b); got != tt.want {
			t.Errorf("%s to %s: %v", tt.a, tt.b, got)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestRedirectToAnotherHostCarriesNoSecrets(t *testing.T) {
	var second http.Header
	via := anyHost(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host == "feeds.example.com" {
			http.Redirect(w, r, "http://www.example.com/", http.StatusFound)
			return
		}
		second = r.Header
	})
	_, err := client(t, Config{}).Do(t.Context(), Request{URL: "http://ann:pass@feeds.example.com/", Header: http.Header{
		"X-Goog-Api-Key": {"k"}, "Authorization": {"Bearer t"}, "Cookie": {"c=1"}, "X-Token": {"t"},
		"If-None-Match": {`"v1"`}, "Accept": {"application/rss+xml"}, "User-Agent": {"mine"},
	}}, via)
	if err != nil {
		t.Fatal(err)
	}
	for name := range second {
		switch name {
		case "If-None-Match", "Accept", "User-Agent", "Accept-Encoding", "Proxy-Connection":
		default:
			t.Errorf("header %s: %q went to another host", name, second.Values(name))
		}
	}
	if second.Get("If-None-Match") != `"v1"` {
		t.Error("the validator was lost on the way")
	}
}

func TestKeyStaysOffPlainHTTP(t *testing.T) {
	plain := serve(t, say("the key came in the clear"))
	s := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(s.Close)
	c := open(t, Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	_, err := c.Do(t.Context(), Request{URL: s.URL, Keyed: true}, Via{})
	wantKind(t, err, KindPolicy)
}

// The user in a URL is for its origin: a redirect there keeps it however the
// Location is written, one elsewhere does not.
func TestUserInURLIsKeptWithinItsOrigin(t *testing.T) {
	var seen sync.Map
	show := func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		seen.Store(r.Host, user)
	}
	other := serve(t, show)
	var target string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/end" {
			w.Header().Set("Location", map[string]string{"/whole": target + "/end", "/part": "/end", "/away": other.URL + "/end"}[r.URL.Path])
			w.WriteHeader(http.StatusFound)
			return
		}
		show(w, r)
	})
	target = s.URL
	host := strings.TrimPrefix(s.URL, "http://")
	for path, at := range map[string]string{"/whole": host, "/part": host, "/away": strings.TrimPrefix(other.URL, "http://")} {
		seen.Clear()
		get(t, open(t, Config{}), "http://ann:pw@"+host+path, Via{})
		want := "ann"
		if path == "/away" {
			want = ""
		}
		if user, ok := seen.Load(at); !ok || user != want {
			t.Errorf("%s: the end saw the user %q, want %q", path, user, want)
		}
	}
}

// A query goes out as a query, whatever a Location holds: a blank in it would
// end the request's target, and what follows would be the target's to read.
func TestAQueryIsSentAsOne(t *testing.T) {
	var seen string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			w.Header()["Location"] = []string{"/new?a=b c HTTP/1.1&d=\xc3\xa9\"<>%20%zz+"}
			w.WriteHeader(http.StatusFound)
			return
		}
		seen = r.RequestURI
	})
	get(t, open(t, Config{}), s.URL+"/old", Via{})
	if want := "/new?a=b%20c%20HTTP/1.1&d=%C3%A9%22%3C%3E%20%zz+"; seen != want {
		t.Errorf("the target saw %q, want %q", seen, want)
	}
}
