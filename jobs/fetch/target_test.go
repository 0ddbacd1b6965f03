package fetch

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestCheckAddress(t *testing.T) {
	for _, tt := range []struct {
		ip              string
		public, private bool // is it a target, without and with AllowPrivate
	}{
		{"93.184.215.14", true, true},
		{"2606:2800:21f:cb07:6820:80da:af6b:8b2c", true, true},
		{"127.0.0.1", false, true},
		{"127.0.0.7", false, true},
		{"10.0.0.1", false, true},
		{"172.16.0.1", false, true},
		{"172.31.255.255", false, true},
		{"172.32.0.1", true, true},
		{"192.168.1.1", false, true},
		{"100.64.0.1", false, true},
		{"100.127.255.254", false, true},
		{"100.128.0.1", true, true},
		{"192.0.0.8", false, true},
		{"192.0.2.1", false, true},
		{"198.18.0.1", false, true},
		{"198.51.100.1", false, true},
		{"203.0.113.1", false, true},
		{"::1", false, true},
		{"fc00::1", false, true},
		{"fd12:3456::1", false, true},
		{"::ffff:127.0.0.1", false, true},
		{"::ffff:8.8.8.8", false, true},
		{"64:ff9b::7f00:1", false, true},
		{"64:ff9b:1::1", false, true},
		{"2002:7f00:1::", false, true},
		{"2001:db8::1", false, true},
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", false, true}, // Teredo, as in RFC 4380
		{"2001::1", false, false},                             // Teredo whose server is 0.0.0.0
		{"2001:0:808:808::5601:5601", false, false},           // Teredo, the client link-local
		{"192.0.0.1", false, true},
		{"192.0.0.170", false, true}, // NAT64 discovery
		{"192.88.99.1", false, true}, // 6to4 relays
		{"198.19.255.255", false, true},
		{"2001:20::1", false, true},         // ORCHIDv2
		{"2001:2::1", false, true},          // benchmarking
		{"100::1", false, true},             // discard only
		{"3fff::1", false, true},            // documentation
		{"5f00::1", false, true},            // segment routing
		{"fec0::1", false, true},            // site-local, deprecated
		{"::127.0.0.1", false, true},        // IPv4-compatible, deprecated
		{"::ffff:0:127.0.0.1", false, true}, // IPv4-translated
		{"64:ff9b::808:808", false, true},   // a public address within NAT64: ours to reach as it is
		{"::ffff:224.0.0.1", false, false},
		{"64:ff9b::e000:1", false, false},
		{"2002:e000:1::", false, false},
		{"::169.254.169.254", false, false},
		{"100.100.100.200", false, false}, // metadata of clouds
		{"192.0.0.192", false, false},
		{"168.63.129.16", false, false},
		{"::ffff:168.63.129.16", false, false},
		{"64:ff9b::a83f:8110", false, false},
		{"fd20:ce::254", false, false},
		{"64:ff9b:1::a9fe:a9fe", false, false},     // NAT64 for local use, by each length of its prefix
		{"64:ff9b:1:a9fe:a9:fe00::", false, false}, // 48
		{"64:ff9b:1:a9:fe:a9fe::", false, false},   // 56
		{"64:ff9b:1:0:a9:fea9:fe00:0", false, false},
		{"64:ff9b:1::7f00:1", false, true},
		{"2001:0:a9fe:a9fe::5601:5601", false, false}, // Teredo, server and client link-local
		{"169.254.169.254", false, false},
		{"::ffff:169.254.169.254", false, false},
		{"64:ff9b::a9fe:a9fe", false, false},
		{"2002:a9fe:a9fe::1", false, false},
		{"fd00:ec2::254", false, false},
		{"0.0.0.0", false, false},
		{"::", false, false},
		{"fe80::1", false, false},
		{"224.0.0.1", false, false},
		{"ff02::1", false, false},
		{"255.255.255.255", false, false},
		{"240.0.0.1", false, false},
		{"fe80::1%eth0", false, false},
	} {
		ip := netip.MustParseAddr(tt.ip)
		if err := checkAddress(ip, false); (err == nil) != tt.public {
			t.Errorf("%s: %v, want allowed %v", ip, err, tt.public)
		}
		if err := checkAddress(ip, true); (err == nil) != tt.private {
			t.Errorf("%s with AllowPrivate: %v, want allowed %v", ip, err, tt.private)
		}
	}
}

func TestCheckTarget(t *testing.T) {
	for _, tt := range []struct {
		url  string
		host string // as it is looked up; "" is refused
	}{
		{"https://example.org/feed.xml", "example.org"},
		{"http://EXAMPLE.org:8080/", "example.org:8080"},
		{"https://example.org./", "example.org"},
		{"https://bücher.example.com/", "xn--bcher-kva.example.com"},
		{"https://my_feeds.example.com/", "my_feeds.example.com"},
		{"https://[2606:2800:21f::1]/", "[2606:2800:21f::1]"},
		{"ftp://example.org/", ""},
		{"file:///etc/passwd", ""},
		{"gopher://example.org/", ""},
		{"javascript:alert(1)", ""},
		{"//example.org/", ""},
		{"http://", ""},
		{"http:example.org", ""},
		{"http://example.org:0/", ""},
		{"http://example.org:22/", ""},
		{"http://example.org:6379/", ""},
		{"http://example.org:99999/", ""},
		{"http://127.0.0.1/", ""},
		{"http://127.1/", ""},
		{"http://2130706433/", ""},
		{"http://0x7f000001/", ""},
		{"http://0x7f.1/", ""},
		{"http://0177.0.0.1/", ""},
		{"http://010.1.2.3/", ""},
		{"http://8.8.8.8.8/", ""},
		{"http://１２７.０.０.１/", ""},
		{"http://127。0。0。1/", ""},
		{"http://ⓛocalhost/", ""},
		{"http://localhost/", ""},
		{"http://LOCALHOST./", ""},
		{"http://feeds.localhost/", ""},
		{"http://printer.local/", ""},
		{"http://metadata.google.internal/", ""},
		{"http://metadata.goog/", ""},
		{"http://METADATA.goog./", ""},
		{"http://a.metadata.goog/", ""},
		{"http://metadata.goog.example.org/", "metadata.goog.example.org"},
		{"http://168.63.129.16/machine?comp=goalstate", ""},
		{"http://169.254.169.254.@example.org@127.0.0.1/", ""},
		{"http://example.org#@127.0.0.1/", "example.org"},
		{"http://example.org\\@127.0.0.1/", ""},
		{"http://127.0.0.1\\@example.org/", ""},
		{"http://0/", ""},
		{"http://[::]/", ""},
		{"http://127.0.0.1./", ""},
		{"http://0x7f.0x0.0x0.0x1./", ""},
		{"http://127.000.000.001/", ""},
		{"http://%31%32%37.0.0.1/", ""},
		{"http://[::ffff:0x7f.1]/", ""},
		{"http://255.255.255.255/", ""},
		{"http://239.1.1.1/", ""},
		{"http://[64:ff9b:1::7f00:1]/", ""},
		{"http://example.org:080/", "example.org:080"},
		{"http://example.org:+80/", ""},
		{"http://example.org:６３７９/", ""},
		{"http://example.org:06379/", ""},
		{"http://router.home.arpa/", ""},
		{"http://intranet/", ""},
		{"http://[::1]/", ""},
		{"http://[::ffff:127.0.0.1]/", ""},
		{"http://[::ffff:7f00:1]/", ""},
		{"http://[64:ff9b::7f00:1]/", ""},
		{"http://[fe80::1%25eth0]/", ""},
		{"http://100.64.1.1/", ""},
		{"http://169.254.169.254/latest/meta-data/", ""},
		{"http://exa mple.org/", ""},
		{"http://example..org/", ""},
	} {
		t.Run(tt.url, func(t *testing.T) {
			u, err := parseTarget(tt.url)
			if err == nil {
				u, err = newReach(Config{}).check(u)
			}
			if tt.host == "" {
				var p *policyError
				if !errors.As(err, &p) {
					t.Fatalf("%v, want a refusal", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if u.Host != tt.host {
				t.Errorf("host %q, want %q", u.Host, tt.host)
			}
		})
	}
}

func TestAllowHosts(t *testing.T) {
	r := newReach(Config{AllowHosts: []string{"Example.ORG", "*.feeds.example", "bücher.example"}})
	for host, want := range map[string]bool{
		"example.org":           true,
		"EXAMPLE.ORG.":          true,
		"www.example.org":       false,
		"notexample.org":        false,
		"a.feeds.example":       true,
		"a.b.feeds.example":     true,
		"feeds.example":         false,
		"evilfeeds.example":     false,
		"xn--bcher-kva.example": true,
		"example.org.evil.com":  false,
	} {
		_, err := r.check(&url.URL{Scheme: "https", Host: host})
		if (err == nil) != want {
			t.Errorf("%s: %v, want allowed %v", host, err, want)
		}
	}
}

func FuzzCheckTarget(f *testing.F) {
	for _, s := range []string{"http://127.1/", "http://[::ffff:1.2.3.4]:80/", "https://example.org", "http://１２７.1", "http://a%00b/", "http://user:p@h:1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parseTarget(raw)
		if err != nil {
			return
		}
		got, err := newReach(Config{}).check(u)
		if err != nil {
			return
		}
		host := got.Hostname()
		if ip, err := netip.ParseAddr(host); err == nil {
			if guardian.SafeAddr(ip) != nil {
				t.Fatalf("%q leads to %s", raw, ip)
			}
			return
		}
		if !plainASCII(host) || !strings.Contains(host, ".") || host != strings.ToLower(host) {
			t.Fatalf("%q leads to the host %q", raw, host)
		}
		if last := host[strings.LastIndexByte(host, '.')+1:]; numeric(last) {
			t.Fatalf("%q leads to %q, which resolvers read as an address", raw, host)
		}
	})
}

// A proxy looks the name up in a network of its own, where the guard of dials sees nothing.
func TestNoLeaveOpensTheMetadataOfClouds(t *testing.T) {
	for _, raw := range []string{"http://metadata.google.internal/computeMetadata/v1/", "http://metadata.goog/", "http://metadata/", "http://instance-data/latest", "http://x.metadata.goog:80/", "http://169.254.169.254/", "http://100.100.100.200/"} {
		u, err := parseTarget(raw)
		if err == nil {
			_, err = newReach(Config{AllowPrivate: true}).check(u)
		}
		var p *policyError
		if !errors.As(err, &p) {
			t.Errorf("%s with AllowPrivate: %v, want a refusal", raw, err)
		}
	}
}
