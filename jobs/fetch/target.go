package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// policyError says that a rule of ours refused the request.
type policyError struct{ why string }

func (e *policyError) Error() string { return e.why }

// ErrRedirects says that a chain of redirects was longer than is followed.
var ErrRedirects = errors.New("too many redirects")

type redirectsError struct{ most int }

func (e *redirectsError) Error() string        { return fmt.Sprintf("more than %d redirects", e.most) }
func (e *redirectsError) Is(target error) bool { return target == ErrRedirects }

// followError is the caller's refusal to follow a redirect.
type followError struct{ err error }

func (e *followError) Error() string { return "a redirect is not followed: " + e.err.Error() }
func (e *followError) Unwrap() error { return e.err }

// reach is the policy on targets.
type reach struct {
	allowPrivate bool
	allowHosts   []string // lower case, ASCII
}

func newReach(c Config) reach {
	r := reach{allowPrivate: c.AllowPrivate}
	for _, h := range c.AllowHosts {
		wild := ""
		if rest, ok := strings.CutPrefix(h, "*."); ok {
			wild, h = "*.", rest
		}
		if a, err := asciiHost(h); err == nil {
			h = a
		}
		r.allowHosts = append(r.allowHosts, wild+h)
	}
	return r
}

// parseTarget reads a URL. Its errors quote nothing: net/url's own texts hold
// pieces of the URL, passwords among them.
func parseTarget(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, &policyError{"the URL cannot be parsed; it should look like https://host/path"}
	}
	return u, nil
}

// check says whether u may be asked for, and gives it back with the host as it
// will be looked up: full-width digits, upper case and other dots all end up
// as the ASCII that a resolver gets.
func (r reach) check(u *url.URL) (*url.URL, error) {
	if u.Scheme != "http" && u.Scheme != "https" {
		if u.Scheme == "" {
			return nil, &policyError{"the URL has no scheme; http and https are fetched"}
		}
		return nil, &policyError{fmt.Sprintf("scheme %q is refused; only http and https are fetched", clip(u.Scheme, 16))}
	}
	if u.Opaque != "" || u.Hostname() == "" {
		return nil, &policyError{"the URL has no host"}
	}
	host, err := asciiHost(u.Hostname())
	if err != nil {
		return nil, &policyError{"the host is refused: " + err.Error()}
	}
	if err := checkPort(u.Port()); err != nil {
		return nil, &policyError{err.Error()}
	}
	if len(r.allowHosts) > 0 && !r.listed(host) {
		return nil, &policyError{fmt.Sprintf("host %q is not in fetch.allow_hosts", clip(host, 80))}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := checkAddress(ip, r.allowPrivate); err != nil {
			return nil, &policyError{"the address is refused: " + err.Error()}
		}
	} else if err := checkName(host, r.allowPrivate); err != nil {
		return nil, &policyError{"the host is refused: " + err.Error()}
	}
	v := *u
	v.Host = host
	if strings.Contains(host, ":") {
		v.Host = "[" + host + "]"
	}
	if p := u.Port(); p != "" {
		v.Host += ":" + p
	}
	v.Fragment, v.RawFragment = "", ""
	v.RawQuery = sendableQuery(v.RawQuery)
	return &v, nil
}

// sendableQuery percent-encodes what may not stand in a request line (URL
// standard, "query percent-encode set"): net/url leaves a query as it came, and
// a blank in it would end the request's target.
func sendableQuery(q string) string {
	var b strings.Builder
	for _, c := range []byte(q) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"#<>`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (r reach) listed(host string) bool {
	return slices.ContainsFunc(r.allowHosts, func(a string) bool {
		if below, ok := strings.CutPrefix(a, "*."); ok {
			return strings.HasSuffix(host, "."+below)
		}
		return a == host
	})
}

// asciiHost is the host in the form that is looked up, without a last dot.
func asciiHost(h string) (string, error) {
	if ip, err := netip.ParseAddr(h); err == nil {
		return ip.String(), nil
	}
	if strings.Contains(h, ":") || strings.Contains(h, "%") {
		return "", errors.New("it is neither a name nor an address")
	}
	a, err := idna.Lookup.ToASCII(h)
	if err != nil {
		// Names with an underscore or a double hyphen resolve all the same.
		if !plainASCII(h) {
			return "", errors.New("it is not a valid host name")
		}
		a = strings.ToLower(h)
	}
	a = strings.TrimSuffix(a, ".")
	if len(a) > 253 {
		return "", errors.New("it is not a valid host name")
	}
	for label := range strings.SplitSeq(a, ".") {
		if label == "" || len(label) > 63 {
			return "", errors.New("it is not a valid host name")
		}
	}
	return a, nil
}

func plainASCII(h string) bool {
	for _, c := range []byte(h) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}

// privateSuffixes are names that no public server has: RFC 6761, 6762, 8375,
// and ICANN's reservation of .internal.
var privateSuffixes = []string{"localhost", "local", "internal", "home.arpa", "lan", "intranet"}

// metadataNames lead to a cloud machine's credentials, wherever they are looked
// up in such a cloud; by no leave are they targets.
var metadataNames = []string{"metadata.google.internal", "metadata.goog", "metadata.azure.internal", "metadata", "instance-data", "instance-data.ec2.internal"}

// checkName refuses names that mean a private machine, because a proxy would
// resolve them in its own network.
func checkName(host string, allowPrivate bool) error {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if numeric(last) {
		return errors.New("an IPv4 address is written as four decimal numbers")
	}
	for _, s := range metadataNames {
		if host == s || strings.Contains(s, ".") && strings.HasSuffix(host, "."+s) {
			return errors.New("it is a cloud's metadata service, which is never a target")
		}
	}
	if allowPrivate {
		return nil
	}
	for _, s := range privateSuffixes {
		if host == s || strings.HasSuffix(host, "."+s) {
			return fmt.Errorf("names under %q are private (fetch.allow_private would allow them)", s)
		}
	}
	if !strings.Contains(host, ".") {
		return errors.New("a name without a dot is private (fetch.allow_private would allow it)")
	}
	return nil
}

// numeric says that a last label makes resolvers read the host as an IPv4
// address in one of its old forms: 127.1, 0x7f000001, 0177.0.0.1, 2130706433.
func numeric(label string) bool {
	if rest, ok := strings.CutPrefix(strings.ToLower(label), "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// badPorts are ports of other protocols, which a crafted request could speak
// to: the Fetch standard's list (section 2.9), and Redis and memcached.
var badPorts = map[int]bool{
	0: true, 1: true, 7: true, 9: true, 11: true, 13: true, 15: true, 17: true, 19: true, 20: true, 21: true, 22: true,
	23: true, 25: true, 37: true, 42: true, 43: true, 53: true, 69: true, 77: true, 79: true, 87: true, 95: true,
	101: true, 102: true, 103: true, 104: true, 109: true, 110: true, 111: true, 113: true, 115: true, 117: true,
	119: true, 123: true, 135: true, 137: true, 139: true, 143: true, 161: true, 179: true, 389: true, 427: true,
	465: true, 512: true, 513: true, 514: true, 515: true, 526: true, 530: true, 531: true, 532: true, 540: true,
	548: true, 554: true, 556: true, 563: true, 587: true, 601: true, 636: true, 989: true, 990: true, 993: true,
	995: true, 1719: true, 1720: true, 1723: true, 2049: true, 3659: true, 4045: true, 4190: true, 5060: true,
	5061: true, 6000: true, 6379: true, 6566: true, 6665: true, 6666: true, 6667: true, 6668: true, 6669: true,
	6679: true, 6697: true, 10080: true, 11211: true,
}

func checkPort(p string) error {
	if p == "" {
		return nil
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return errors.New("the port is not a number from 1 to 65535")
	}
	if badPorts[int(n)] {
		return fmt.Errorf("port %d belongs to another protocol", n)
	}
	return nil
}

// clip bounds a piece of text that a stranger chose.
func clip(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
