package fetch

import (
	"crypto/x509"
	"net"
	"time"
)

// Config is what all fetches of a Client share. A zero field takes the default
// named beside it.
type Config struct {
	// UserAgent is sent where the request has none: "feedwarden/1".
	UserAgent string
	// Timeout bounds a whole fetch, redirects and body included: 30 s.
	Timeout time.Duration
	// DialTimeout bounds the TCP connection to the endpoint or target: 10 s.
	DialTimeout time.Duration
	// HeaderTimeout bounds the time from sending, connecting included, to the
	// answer's headers, each hop anew: 20 s.
	HeaderTimeout time.Duration
	// IdleBody bounds the silence within a body: 10 s.
	IdleBody time.Duration
	// MinRate is the least average rate of a body in bytes a second, asked for
	// once it has taken IdleBody: 256. Negative: none.
	MinRate int64
	// MaxBody caps the decoded bytes of a body: 16 MiB. The bytes on the wire
	// have the same cap.
	MaxBody int64
	// MaxRedirects is how many redirects are followed: 5. Negative: none.
	MaxRedirects int
	// AllowPrivate lets targets be private or loopback addresses. Link-local
	// ones (cloud metadata among them), multicast and reserved stay refused.
	AllowPrivate bool
	// AllowHosts, when not empty, are the only hosts: "example.org" is that
	// host, "*.example.org" every host below it.
	AllowHosts []string
	// MaxTransports bounds the endpoints whose connections are kept: 100.
	MaxTransports int
	// resolver looks names up where there is no proxy; nil is the system's.
	resolver *net.Resolver
	// RootCAs verify https targets and proxies; nil takes the system's.
	RootCAs *x509.CertPool
}

const (
	defaultUserAgent     = "feedwarden/1"
	defaultTimeout       = 30 * time.Second
	defaultDialTimeout   = 10 * time.Second
	defaultHeaderTimeout = 20 * time.Second
	defaultIdleBody      = 10 * time.Second
	defaultMinRate       = 256
	defaultMaxBody       = 16 << 20
	defaultMaxRedirects  = 5
	defaultMaxTransports = 100
)

func (c Config) withDefaults() Config {
	if c.UserAgent == "" {
		c.UserAgent = defaultUserAgent
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Timeout, defaultTimeout},
		{&c.DialTimeout, defaultDialTimeout},
		{&c.HeaderTimeout, defaultHeaderTimeout},
		{&c.IdleBody, defaultIdleBody},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if c.MinRate == 0 {
		c.MinRate = defaultMinRate
	}
	if c.MaxBody <= 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.MaxRedirects == 0 {
		c.MaxRedirects = defaultMaxRedirects
	}
	if c.MaxTransports <= 0 {
		c.MaxTransports = defaultMaxTransports
	}
	return c
}
