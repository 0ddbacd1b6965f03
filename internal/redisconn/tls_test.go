package redisconn

import (
	"fmt"
	"strings"
	"testing"

	"feedwarden/internal/testredis"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	open, certs := testredis.TLS(t, false, "--requirepass", "hunter2")
	strict, strictCerts := testredis.TLS(t, true)
	stranger := testredis.NewCertificates(t)
	pair := fmt.Sprintf("&cert=%s&key=%s", strictCerts.ClientCert, strictCerts.ClientKey)
	byName := strings.Replace(open.Addr(), "127.0.0.1", "localhost", 1)
	for name, tc := range map[string]struct{ url, says string }{
		"own authority":       {"rediss://:hunter2@" + open.Addr() + "?ca=" + certs.CA, ""},
		"by name":             {"rediss://:hunter2@" + byName + "?ca=" + certs.CA, ""},
		"by another name":     {"rediss://:hunter2@" + open.Addr() + "?server_name=localhost&ca=" + certs.CA, ""},
		"client certificate":  {"rediss://" + strict.Addr() + "?ca=" + strictCerts.CA + pair, ""},
		"unknown authority":   {"rediss://:hunter2@" + open.Addr(), "?ca="},
		"foreign authority":   {"rediss://:hunter2@" + open.Addr() + "?ca=" + stranger.CA, "?ca="},
		"wrong name":          {"rediss://:hunter2@" + open.Addr() + "?server_name=elsewhere&ca=" + certs.CA, "?server_name="},
		"no client cert":      {"rediss://" + strict.Addr() + "?ca=" + strictCerts.CA, "?cert="},
		"plain to a TLS port": {"redis://:hunter2@" + open.Addr(), "rediss://"},
		"missing file":        {"rediss://" + open.Addr() + "?ca=/nowhere/ca.pem", "/nowhere/ca.pem"},
		"not a certificate":   {"rediss://" + open.Addr() + "?ca=" + certs.ServerKey, "no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.says == "" {
				c := mustOpen(t, Config{URL: tc.url})
				set(t, c, name, "1")
				return
			}
			c, err := Open(t.Context(), Config{URL: tc.url})
			if err == nil {
				c.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q, want it to say %q and no password", err, tc.says)
			}
			t.Log(err)
		})
	}
}
