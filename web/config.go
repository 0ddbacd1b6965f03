package web

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Config is what the package needs to know.
type Config struct {
	// Listen is host:port; port 0 takes a free one.
	Listen string
	// Tokens are who may come in; none: everybody who reaches the address.
	Tokens []Token
	// Hosts are further names by which we may be called.
	Hosts []string
	// Insecure allows an address off loopback without tokens.
	Insecure bool
	// BasePath is where a proxy in front shows us, such as /feedwarden; "" and "/"
	// are the root.
	BasePath string
	// TLS makes it HTTPS; the files are read anew when they change.
	TLS TLS
	// Version is shown on pages and in a metric.
	Version string
}

// minToken is the shortest token: below it, guessing is no longer hopeless.
const minToken = 16

// ErrOpen is returned for a server off loopback that asks for no token.
var ErrOpen = errors.New("listens off loopback and asks for no token: set web.tokens, listen on 127.0.0.1, or say web.insecure: true")

// check finds every fault of a config.
func (c Config) check() error {
	var all []error
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		all = append(all, fmt.Errorf("listen %q: an address such as 127.0.0.1:8080 is wanted", c.Listen))
	} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		all = append(all, fmt.Errorf("listen %q: a port from 0 to 65535 is wanted", c.Listen))
	} else if len(c.Tokens) == 0 && !c.Insecure && !loopback(host) {
		all = append(all, fmt.Errorf("listen %q: %w", c.Listen, ErrOpen))
	}
	for _, h := range c.Hosts {
		if hostName(h) == "" {
			all = append(all, fmt.Errorf("hosts: %q: a name such as feeds.example.org is wanted", h))
		}
	}
	if b := c.BasePath; b != "" && !strings.HasPrefix(b, "/") || strings.ContainsAny(b, "?#%\\\"<>; ") {
		all = append(all, fmt.Errorf("base path %q: a path such as /feedwarden is wanted", b))
	}
	all = append(all, checkTokens(c.Tokens)...)
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("web: %w", err)
	}
	return nil
}

func checkTokens(tokens []Token) []error {
	var all []error
	for i, t := range tokens {
		earlier := tokens[:i]
		switch {
		case t.Name == "":
			all = append(all, fmt.Errorf("token %d has no name", i+1))
		case slices.ContainsFunc(earlier, func(o Token) bool { return o.Name == t.Name }):
			all = append(all, fmt.Errorf("token %q: two have this name", t.Name))
		case slices.ContainsFunc(earlier, func(o Token) bool { return o.Token == t.Token }):
			all = append(all, fmt.Errorf("token %q: another has the same text; each needs its own", t.Name))
		}
		if len(t.Token) < minToken {
			all = append(all, fmt.Errorf("token %q has %d characters: %d at least", t.Name, len(t.Token), minToken))
		}
		if strings.TrimSpace(t.Token) != t.Token {
			all = append(all, fmt.Errorf("token %q begins or ends with a blank, which no header carries", t.Name))
		}
		if t.Role.rank() == 0 {
			all = append(all, fmt.Errorf("token %q: role %q: it is read, write or admin", t.Name, t.Role))
		}
	}
	return all
}

// loopback says that a host to listen on can be reached from this machine alone.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}
