package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLS names the PEM files of a certificate (its chain, the server's own first)
// and of its key; both empty: plain HTTP.
type TLS struct{ Cert, Key string }

// ErrCertificate is returned for a certificate that cannot be served.
var ErrCertificate = errors.New("no certificate to serve")

// Check says whether the files are there and fit together.
func (t TLS) Check() error {
	if !t.set() {
		return nil
	}
	_, err := newCertificate(t, slog.New(slog.DiscardHandler))
	return err
}

func (t TLS) set() bool { return t.Cert != "" || t.Key != "" }

// lookEvery is how often, at most, a handshake looks whether the files have changed.
const lookEvery = time.Second

// certificate is what handshakes are given: the files' newest pair that fits
// together. Who renews a certificate replaces two files, one after the other;
// in between, or when what came is broken, the pair before stays.
type certificate struct {
	files TLS
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	seen   [2]os.FileInfo // the files as they were when they were read last
	looked time.Time
}

// newCertificate reads the files; its error says which one is wrong, and how.
func newCertificate(files TLS, log *slog.Logger) (*certificate, error) {
	if files.Cert == "" || files.Key == "" {
		return nil, fmt.Errorf("web: %w: cert and key are both wanted, or neither", ErrCertificate)
	}
	c := &certificate{files: files, log: log, now: time.Now}
	seen, err := c.stat()
	if err != nil {
		return nil, err
	}
	if c.pair, err = c.read(); err != nil {
		return nil, err
	}
	c.seen, c.looked = seen, c.now()
	return c, nil
}

// config is for a listener.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// current is the pair to be served, after a look at the files when one is due.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		c.look()
	}
	return c.pair
}

func (c *certificate) look() {
	seen, err := c.stat()
	if err == nil && same(seen[0], c.seen[0]) && same(seen[1], c.seen[1]) {
		return
	}
	var pair *tls.Certificate
	if err == nil {
		pair, err = c.read()
		c.seen = seen
	}
	if err != nil {
		c.log.Warn("new certificate not taken up; the old one is served", "error", err, "ends", c.pair.Leaf.NotAfter)
		return
	}
	c.pair = pair
	c.log.Info("certificate taken up", "file", c.files.Cert, "ends", pair.Leaf.NotAfter)
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (c *certificate) stat() (seen [2]os.FileInfo, err error) {
	for i, f := range []struct{ key, path string }{{"cert", c.files.Cert}, {"key", c.files.Key}} {
		if seen[i], err = os.Stat(f.path); err != nil {
			return seen, fmt.Errorf("web: %w: tls.%s: %w", ErrCertificate, f.key, err)
		}
	}
	return seen, nil
}

// read does not quote the key's file: its errors name what is wrong with it.
func (c *certificate) read() (*tls.Certificate, error) {
	cert, err := os.ReadFile(c.files.Cert)
	if err != nil {
		return nil, fmt.Errorf("web: %w: tls.cert: %w", ErrCertificate, err)
	}
	key, err := os.ReadFile(c.files.Key)
	if err != nil {
		return nil, fmt.Errorf("web: %w: tls.key: %w", ErrCertificate, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("web: %w: %s with %s: %w", ErrCertificate, c.files.Cert, c.files.Key, err)
	}
	return &pair, nil
}

// outOfDate says what is wrong with the dates of the pair; "" when nothing is.
func (c *certificate) outOfDate() string {
	switch leaf, now := c.pair.Leaf, c.now(); {
	case now.After(leaf.NotAfter):
		return "it ended at " + leaf.NotAfter.Format(time.RFC3339)
	case now.Before(leaf.NotBefore):
		return "it begins at " + leaf.NotBefore.Format(time.RFC3339)
	}
	return ""
}
