package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"feedwarden/internal/faultkit"
)

// No way of failing may show what went into the request.
func TestErrorsHoldNoSecrets(t *testing.T) {
	secrets := []string{"SECRETQUERY", "SECRETUSER", "SECRETPASS", "SECRETHEADER", "SECRETPROXY", "SECRETNEXT"}
	closed := httpProxy(t, faultkit.Options{User: "a", Password: "b"})
	closedSocks := socksProxy(t, faultkit.Options{User: "a", Password: "b"})
	login := url.UserPassword("SECRETPROXYUSER", "SECRETPROXY%@:/")
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	redirecting := anyHost(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://SECRETUSER:SECRETPASS@10.0.0.1/?next=SECRETNEXT")
		w.WriteHeader(http.StatusFound)
	})
	echo := raw(t, "SECRETQUERY SECRETHEADER\r\n")

	for name, tt := range map[string]struct {
		url string
		via Via
	}{
		"refused":          {gone.URL + "/feed?key=SECRETQUERY", Via{}},
		"user in the URL":  {strings.Replace(gone.URL, "://", "://SECRETUSER:SECRETPASS@", 1) + "/?key=SECRETQUERY", Via{}},
		"no such host":     {"http://no-such-host.invalid/?key=SECRETQUERY", Via{}},
		"cannot be parsed": {"http://SECRETUSER:SECRET%PASS@host/?key=SECRETQUERY", Via{}},
		"bad port":         {"http://SECRETUSER:SECRETPASS/x@host:1/?key=SECRETQUERY", Via{}},
		"bad escape":       {"http://host/%zz?key=SECRETQUERY", Via{}},
		"bad character":    {"http://host/\x7f?key=SECRETQUERY", Via{}},
		"scheme":           {"SECRETUSER:SECRETPASS@host/?key=SECRETQUERY", Via{}},
		"policy":           {"http://169.254.169.254/?key=SECRETQUERY", Via{}},
		"proxy refuses":    {"http://127.0.0.1:1/?key=SECRETQUERY", Via{ID: "p", Proxy: &url.URL{Scheme: "http", Host: closed.Addr(), User: login}}},
		"tunnel refused":   {"https://127.0.0.1:1/?key=SECRETQUERY", Via{ID: "p", Proxy: &url.URL{Scheme: "http", Host: closed.Addr(), User: login}}},
		"socks refuses":    {"http://127.0.0.1:1/?key=SECRETQUERY", Via{ID: "p", Proxy: &url.URL{Scheme: "socks5", Host: closedSocks.Addr(), User: login}}},
		"proxy is gone":    {"http://127.0.0.1:1/?key=SECRETQUERY", Via{ID: "p", Proxy: must(url.Parse(strings.Replace(gone.URL, "://", "://SECRETPROXYUSER:SECRETPROXY@", 1)))}},
		"proxy scheme":     {"http://127.0.0.1:1/?key=SECRETQUERY", Via{ID: "p", Proxy: &url.URL{Scheme: "socks4", Host: "127.0.0.1:1", User: login}}},
		"redirect":         {"http://feeds.example.com/?key=SECRETQUERY", redirecting},
		"answer quotes us": {echo.URL + "/?key=SECRETQUERY", Via{}},
		"redirect, keyed":  {"http://feeds.example.com/?key=SECRETQUERY", redirecting},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, Config{}).Do(t.Context(), Request{
				URL: tt.url, Header: http.Header{"X-Goog-Api-Key": {"SECRETHEADER"}}, Keyed: true,
			}, tt.via)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("err = %v", err)
			}
			texts := []string{fmt.Sprintf("%v %+v %#v %q", err, err, *e, err)}
			for w := err; w != nil; w = errors.Unwrap(w) {
				texts = append(texts, w.Error())
			}
			for _, text := range texts {
				for _, s := range secrets {
					// %#v shows the cause's type and address, not its text.
					if strings.Contains(text, s) {
						t.Errorf("%q is in %s", s, text)
					}
				}
			}
		})
	}
}

func TestScrubbedErrorsAreStillFound(t *testing.T) {
	cause := fmt.Errorf("asking https://h/?k=SECRET: %w", &proxyAnswer{407})
	err := error(&Error{Kind: KindProxyAuth, Err: scrub(cause, []string{"SECRET"}, Request{}.Shown)})
	var p *proxyAnswer
	if !errors.As(err, &p) || p.status != 407 {
		t.Error("errors.As does not see through")
	}
	if !errors.Is(err, p) {
		t.Error("errors.Is does not see through")
	}
	if strings.Contains(err.Error(), "SECRET") {
		t.Error(err)
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"https://ann:pass@example.org/a/b?key=1#x": "https://example.org/a/b?…",
		"https://example.org/a%2Fb":                "https://example.org/a%2Fb",
	} {
		if got := Redact(must(url.Parse(in))); got != want {
			t.Errorf("Redact(%s) = %s, want %s", in, got, want)
		}
	}
	if Redact(nil) != "" {
		t.Error("nil")
	}
}
