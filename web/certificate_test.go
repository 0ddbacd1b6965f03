package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// pair is a certificate for localhost that signs itself, and its key, as PEM.
func pair(t *testing.T, serial int64, ends time.Time) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost", "feeds.example.org"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: ends.Add(-24 * time.Hour), NotAfter: ends, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// pairFiles are a directory with a certificate and its key.
func pairFiles(t *testing.T, serial int64, ends time.Time) (TLS, []byte) {
	t.Helper()
	dir := t.TempDir()
	files := TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	cert, key := pair(t, serial, ends)
	replace(t, files.Cert, cert)
	replace(t, files.Key, key)
	return files, cert
}

// replace puts a file in the place of another, as those who renew certificates do.
func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func overTLSWith(files TLS) setting { return func(c *Config, _ *Parts, _ *pace) { c.TLS = files } }

// clientOf trusts one certificate, and makes a connection for each request.
func clientOf(cert []byte) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       10 * time.Second,
	}
}

func TestServesTLS(t *testing.T) {
	t.Parallel()
	files, cert := pairFiles(t, 1, time.Now().Add(time.Hour))
	w := newWorld(t, withTokens, overTLSWith(files), func(c *Config, _ *Parts, _ *pace) { c.Hosts = []string{"feeds.example.org"} })
	w.start()
	addr := w.server.Addr().String()
	if want := "url=https://" + addr + "/"; !strings.Contains(w.logs.String(), want) {
		t.Errorf("no %q in the log: %s", want, w.logs)
	}
	client := clientOf(cert)
	for host, strict := range map[string]string{addr: "", "localhost": "", "feeds.example.org": "max-age=15552000"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://"+addr+"/login", strings.NewReader(url.Values{"token": {readToken}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 303 || len(resp.Cookies()) != 1 || !resp.Cookies()[0].Secure || resp.ProtoMajor != 2 {
			t.Errorf("%s: status %d, %s, cookies %v; want 303, HTTP/2 and one that is Secure", host, resp.StatusCode, resp.Proto, resp.Cookies())
		}
		if got := resp.Header.Get("Strict-Transport-Security"); got != strict {
			t.Errorf("%s: Strict-Transport-Security %q, want %q", host, got, strict)
		}
	}
	// Plain HTTP, and a TLS that is too old, get nothing.
	if resp, err := http.Get("http://" + addr + "/healthz"); err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP: status %d, want 400", resp.StatusCode)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	for version, taken := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version})
		if err == nil {
			c.Close()
		}
		if (err == nil) != taken {
			t.Errorf("%s: %v, want it taken = %v", tls.VersionName(version), err, taken)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestACookieBehindATLSProxyIsSecure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTokens)
	for proto, secure := range map[string]bool{"https": true, "http": false, "": false} {
		rec := w.logIn(readToken, "/", "X-Forwarded-Proto", proto)
		if c := rec.Result().Cookies(); len(c) != 1 || c[0].Secure != secure {
			t.Errorf("X-Forwarded-Proto %q: cookies %v, Secure should be %v", proto, c, secure)
		}
		if got := rec.Header().Get("Strict-Transport-Security"); got != "" {
			t.Errorf("over plain HTTP: Strict-Transport-Security %q", got)
		}
	}
}

// A renewal replaces one file after the other, and each connection gets a pair
// that fits: the old one until both are there.
func TestARenewedCertificateIsTakenUp(t *testing.T) {
	t.Parallel()
	files, first := pairFiles(t, 1, time.Now().Add(time.Hour))
	w := newWorld(t, overTLSWith(files))
	start := time.Now()
	var passed atomic.Int64
	w.server.tls.now = func() time.Time { return start.Add(time.Duration(passed.Load())) }
	w.start()
	served := func() int64 {
		t.Helper()
		passed.Add(int64(lookEvery))
		c, err := tls.Dial("tcp", w.server.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // which one is served is what is asked
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	second, key := pair(t, 2, start.Add(2*time.Hour))
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"at first", func() {}, 1},
		{"the certificate alone is new", func() { replace(t, files.Cert, second) }, 1},
		{"the key is new too", func() { replace(t, files.Key, key) }, 2},
		{"half a file", func() { replace(t, files.Cert, first[:len(first)/2]) }, 2},
		{"no file", func() {
			if err := os.Remove(files.Cert); err != nil {
				t.Fatal(err)
			}
		}, 2},
		{"it is back", func() { replace(t, files.Cert, second) }, 2},
	} {
		step.do()
		for range 2 {
			if got := served(); got != step.want {
				t.Errorf("%s: certificate %d is served, want %d", step.name, got, step.want)
			}
		}
	}
	log := w.logs.String()
	for _, part := range []string{"certificate taken up", "new certificate not taken up; the old one is served", "cert.pem"} {
		if !strings.Contains(log, part) {
			t.Errorf("no %q in the log", part)
		}
	}
	if strings.Contains(log, string(key[40:80])) {
		t.Error("a part of the key is in the log")
	}
}

func TestACertificateThatCannotBeServedIsAnError(t *testing.T) {
	t.Parallel()
	good, _ := pairFiles(t, 1, time.Now().Add(time.Hour))
	other, _ := pairFiles(t, 2, time.Now().Add(time.Hour))
	rubbish := filepath.Join(t.TempDir(), "rubbish.pem")
	replace(t, rubbish, []byte("no PEM at all"))
	for _, c := range []struct {
		name  string
		files TLS
		says  []string
		is    error
	}{
		{"no such certificate", TLS{"/nowhere/cert.pem", good.Key}, []string{"tls.cert", "/nowhere/cert.pem"}, fs.ErrNotExist},
		{"no such key", TLS{good.Cert, "/nowhere/key.pem"}, []string{"tls.key", "/nowhere/key.pem"}, fs.ErrNotExist},
		{"another's key", TLS{good.Cert, other.Key}, []string{good.Cert, other.Key, "does not match"}, nil},
		{"not PEM", TLS{rubbish, good.Key}, []string{rubbish}, nil},
		{"swapped", TLS{good.Key, good.Cert}, []string{good.Cert, good.Key}, nil},
		{"one alone", TLS{Cert: good.Cert}, []string{"both"}, nil},
	} {
		err := c.files.Check()
		if !errors.Is(err, ErrCertificate) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want ErrCertificate and %v", c.name, err, c.is)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: no %q in %q", c.name, part, err)
			}
		}
		if _, err := New(Config{Listen: "127.0.0.1:0", TLS: c.files}, Parts{}); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: a server is made all the same: %v", c.name, err)
		}
	}
	if err := good.Check(); err != nil || (TLS{}).Check() != nil {
		t.Errorf("a good pair: %v", err)
	}
}

func TestACertificateThatHasEndedIsWarnedOf(t *testing.T) {
	t.Parallel()
	files, _ := pairFiles(t, 1, time.Now().Add(-time.Hour))
	w := newWorld(t, overTLSWith(files))
	w.start()
	if !strings.Contains(w.logs.String(), "clients will refuse the certificate") {
		t.Errorf("no warning in the log: %s", w.logs)
	}
}

func TestAHandshakeThatDoesNotGoOnIsDropped(t *testing.T) {
	t.Parallel()
	files, _ := pairFiles(t, 1, time.Now().Add(time.Hour))
	w := newWorld(t, overTLSWith(files), func(_ *Config, _ *Parts, p *pace) { p.header = 150 * time.Millisecond })
	w.start()
	for name, text := range map[string]string{"nothing at all": "", "half a hello": "\x16\x03\x01\x02\x00\x01"} {
		c := w.dial()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
