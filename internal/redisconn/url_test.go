package redisconn

import (
	"errors"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ url, where, password string }{
		{"redis://h", "h:6379", ""},
		{"redis://h:7000/", "h:7000", ""},
		{"redis://:pw@h:7000/3", "h:7000, database 3", "pw"},
		{"redis://app:p%2Fw%40@h", "h:6379, as app", "p/w@"},
		{"redis://app:a:b@c@h", "h:6379, as app", "a:b@c"},
		{"redis://[::1]:7000", "[::1]:7000", ""},
		{"redis://[::1]", "[::1]:6379", ""},
		{"rediss://:pw@h/1?ca=/ca.pem", "h:6379, database 1, over TLS", "pw"},
		{"unix:///run/r.sock", "/run/r.sock", ""},
		{"unix://app:pw@/run/r.sock?db=2", "/run/r.sock, database 2, as app", "pw"},
		{"redis+sentinel://app:pw@a,b:1/mymaster/2", `"mymaster", primary of the Sentinels at a:26379, b:1, database 2, as app`, "pw"},
		{"rediss+sentinel://a/mymaster?sentinel_password=x", `"mymaster", primary of the Sentinels at a:26379, over TLS`, ""},
		{"redis+cluster://app:pw@a:7000,b:7001", "the Cluster at a:7000, b:7001, as app", "pw"},
	} {
		got, err := parseURL(tc.url)
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		if got.String() != tc.where || got.password != tc.password {
			t.Errorf("%s: %q with password %q, want %q with %q", tc.url, got, got.password, tc.where, tc.password)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ url, says string }{
		{"", "not a Redis URL"},
		{"localhost:6379", "not a Redis URL"},
		{"http://h", "scheme"},
		{"redis://", "no host"},
		{"redis://:6379", "no host"},
		{"redis://h:x", "port"},
		{"redis://h:70000", "port"},
		{"redis://h:1:2", "host"},
		{"redis://a,b", "several hosts"},
		{"redis://h/x", "database"},
		{"redis://h/-1", "database"},
		{"redis://h/1/2", "too long"},
		{"redis://secret@h", "no password"},
		{"redis://h?ca=x", `"ca"`},
		{"rediss://h?insecure=true", `"insecure"`},
		{"rediss://h?ca=", "empty"},
		{"rediss://h?ca=1&ca=2", "more than once"},
		{"rediss://h?cert=c", "cert and key"},
		{"redis+sentinel://h", "which primary"},
		{"redis+sentinel://h/m?sentinel_user=u", "sentinel_password"},
		{"redis+cluster://h/1", "only database 0"},
		{"unix://h/r.sock", "socket"},
		{"unix://", "socket"},
	} {
		_, err := parseURL(tc.url)
		var fault *URLError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want an error that says %q", tc.url, err, tc.says)
		}
	}
}

func TestParseURLNeverQuotesAPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://:hun/ter2@h", "redis://:hun#ter2@h", "redis://:hun?ter2@h", "redis://:hun%ter2@h", "redis://app:12/hunter2@h",
		"redis://hunter2@h", "redis://:12?hunter2@h", "hunter2", "redis://h:hunter2", "redis://:hunter2@h/x/y", "redis:/:hunter2@h",
		"redis+sentinel://:hunter2@h/m?sentinel_password=a@b",
	} {
		_, err := parseURL(url)
		if err == nil {
			t.Errorf("%s: no error", url)
		} else if strings.Contains(err.Error(), "hun") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%s: the error quotes the password: %v", url, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("app", "hunter2", "h:1,h:2", "/m/1?ca=x")
	f.Fuzz(func(t *testing.T, user, password, hosts, tail string) {
		for name := range schemes {
			got, err := parseURL(name + "://" + user + ":" + password + "@" + hosts + tail)
			if err != nil {
				continue
			}
			if got.kind == "" || len(got.addrs) == 0 {
				t.Fatalf("no error and no address: %+v", got)
			}
		}
	})
}
