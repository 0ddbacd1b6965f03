package probe

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config is what checks and lists need to know. A zero field takes the default
// named beside it.
type Config struct {
	// Judge is the judge's URL; "" is none, and nothing can be checked.
	Judge string
	// Own says that it is the local address of a web role of ours, which nobody named.
	Own bool
	// Parallel is how many endpoints are checked at a time: 64.
	Parallel int
	// Timeout bounds all that is asked of one endpoint: 10 s.
	Timeout time.Duration
	// UserAgent is sent to the judge.
	UserAgent string
	// RootCAs verify an https judge and https proxies; nil takes the system's.
	RootCAs *x509.CertPool
	// Lists are the pools' lists at web addresses.
	Lists map[string]List
}

const (
	defaultParallel = 64
	defaultTimeout  = 10 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Parallel <= 0 {
		c.Parallel = defaultParallel
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.UserAgent == "" {
		c.UserAgent = "feedwarden/1"
	}
	return c
}

var (
	// ErrNoJudge: the config names no judge that the endpoints could reach.
	ErrNoJudge = errors.New("no judge")
	// ErrJudgeAway: the judge does not answer us directly. Nothing was checked.
	ErrJudgeAway = errors.New("the judge does not answer")
)

// judge is a judge's URL, read.
type judge struct {
	*url.URL
	private bool // only proxies in a private network can reach it
}

func readJudge(text string) (judge, error) {
	if text == "" {
		return judge{}, fmt.Errorf("%w: set web.judge to the public address of a web role, such as https://feeds.example.org%s", ErrNoJudge, Path)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return judge{}, fmt.Errorf("%w: web.judge wants an address such as https://feeds.example.org%s", ErrNoJudge, Path)
	}
	return judge{u, privateHost(u.Hostname())}, nil
}

// ask is the URL of one question.
func (j judge) ask(nonce string, page bool) string {
	u := *j.URL
	q := u.Query()
	q.Set(NonceParam, nonce)
	if page {
		q.Set(PageParam, PageValue)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// privateHost says of a host that it is in a private network by its form.
func privateHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".")
}
