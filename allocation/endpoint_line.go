package allocation

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

var defaultPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

const wantURL = "write scheme://user:password@host:port"

// endpoint reads one endpoint in any form of ParseList. Its errors hold no part of text.
func (o ListOptions) endpoint(text string) (*url.URL, error) {
	u, err := o.form(text)
	if err == nil && len(u.String()) > maxEndpoint {
		return nil, errLongEndpoint // percent-encoded it is longer than it was; what is kept can be read again
	}
	return u, err
}

// form tells the forms apart.
func (o ListOptions) form(text string) (*url.URL, error) {
	if len(text) > maxEndpoint {
		return nil, errLongEndpoint
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, &LineError{"a blank or control character inside an endpoint", "one endpoint a line, without blanks"}
	}
	if scheme, rest, ok := cutScheme(text); ok {
		if _, known := defaultPorts[scheme]; !known {
			return nil, schemeError(scheme)
		}
		return o.urlForm(scheme, rest, true)
	}
	if a, err := netip.ParseAddr(text); err == nil {
		if a.Is6() {
			return nil, errBareIPv6
		}
		return nil, errNoPort
	}
	if o.Format == FormatUserFirst && colonFields(text) {
		return o.userFirst(text)
	}
	switch loose := o.loose(); {
	case strings.Contains(text, "@"):
		if _, err := loose.hostFirst(text); err != nil {
			return o.urlForm(o.Scheme, text, false)
		}
		if loose.holdsURL(text) {
			return nil, &LineError{"the line can be read as user:password@host:port and as host:port:user:password", wantURL}
		}
		return o.hostFirst(text)
	case colonFields(text):
		if looksIPv6(text) {
			return nil, errBareIPv6
		}
		_, first := loose.hostFirst(text)
		if _, other := loose.userFirst(text); other == nil {
			if first == nil {
				return nil, &LineError{"the line can be read as host:port:user:password and as user:password:host:port",
					wantURL + ", or say that the list's format is user-first"}
			}
			return nil, &LineError{"the line looks like user:password:host:port, which is read only when the list's format says so",
				wantURL + ", or host:port:user:password, or say that the list's format is user-first"}
		}
		return o.hostFirst(text)
	}
	return o.urlForm(o.Scheme, text, false)
}

// insideOut tells whether user:password@host:port is host:port@user:password: an
// address and a port in front, and behind no name that the net could resolve.
func insideOut(rest string) bool {
	i := strings.LastIndexByte(rest, '@')
	if i < 0 {
		return false
	}
	front, port, ok := strings.Cut(rest[:i], ":")
	if n, err := strconv.ParseUint(port, 10, 16); !ok || err != nil || n == 0 {
		return false
	}
	if _, err := netip.ParseAddr(front); err != nil {
		return false
	}
	behind, _, _ := strings.Cut(rest[i+1:], ":")
	behind = strings.TrimRight(behind, ".") // a name's end, which says nothing
	return !strings.ContainsAny(behind, ".[") && !strings.EqualFold(behind, "localhost")
}

// loose is o with private addresses allowed: what a line says does not hang on
// what the pool allows.
func (o ListOptions) loose() ListOptions {
	o.AllowPrivate = true
	return o
}

// holdsURL tells whether text is user:password@host:port, with or without a scheme.
func (o ListOptions) holdsURL(text string) bool {
	scheme, rest, written := cutScheme(text)
	if !written {
		scheme, rest = o.Scheme, text
	}
	if _, known := defaultPorts[scheme]; !known || !strings.Contains(rest, "@") {
		return false
	}
	_, err := o.urlForm(scheme, rest, written)
	return err == nil
}

// colonFields tells whether text can be the colon form: four fields or more.
func colonFields(text string) bool { return strings.Count(colonHost(text), ":") >= 3 }

// colonHost hides the colons of a leading [IPv6] address.
func colonHost(text string) string {
	if end := strings.IndexByte(text, ']'); strings.HasPrefix(text, "[") && end > 0 {
		return "v6" + text[end+1:]
	}
	return text
}

// hostFirst reads host:port:user:password; all after the third colon is the password.
func (o ListOptions) hostFirst(text string) (*url.URL, error) {
	var host, rest string
	if end := strings.IndexByte(text, ']'); strings.HasPrefix(text, "[") && end > 0 {
		host, rest = text[:end+1], strings.TrimPrefix(text[end+1:], ":")
	} else {
		host, rest, _ = strings.Cut(text, ":")
	}
	f := strings.SplitN(rest, ":", 3)
	if len(f) != 3 {
		return nil, &LineError{"the line is not host:port:user:password", wantURL}
	}
	return o.build(o.Scheme, host, f[0], url.UserPassword(f[1], f[2]))
}

// userFirst reads user:password:host:port; all between is the password.
func (o ListOptions) userFirst(text string) (*url.URL, error) {
	head, port := cutLast(text, ":")
	var host string
	if i := strings.LastIndex(head, ":["); i >= 0 && strings.HasSuffix(head, "]") {
		head, host = head[:i], head[i+1:]
	} else {
		head, host = cutLast(head, ":")
	}
	user, password, ok := strings.Cut(head, ":")
	if !ok {
		return nil, &LineError{"the line is not user:password:host:port", wantURL}
	}
	if insideOut(user + ":" + password + "@" + host) {
		return nil, &LineError{"host and port stand in front of user and password", "write user:password:host:port, as the list's format says"}
	}
	return o.build(o.Scheme, host, port, url.UserPassword(user, password))
}

// urlForm reads [user[:password]@]host[:port][/]; only after a written scheme
// does a missing port mean the scheme's own.
func (o ListOptions) urlForm(scheme, text string, written bool) (*url.URL, error) {
	if insideOut(text) {
		return nil, &LineError{"host and port stand in front of user and password", wantURL}
	}
	var user *url.Userinfo
	authority := text
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		var err error
		if user, err = userinfo(text[:i]); err != nil {
			return nil, err
		}
		authority = text[i+1:]
	}
	authority = strings.TrimSuffix(authority, "/")
	if strings.ContainsAny(authority, "/?#\\") {
		return nil, &LineError{"something follows the host and port",
			"an endpoint has no path or query; percent-encode / ? # inside a user or password"}
	}
	host, port, hasPort := authority, "", false
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return nil, &LineError{"the IPv6 address has no closing bracket", "write [address]:port"}
		}
		host = authority[:end+1]
		if rest := authority[end+1:]; rest != "" {
			if port, hasPort = strings.CutPrefix(rest, ":"); !hasPort {
				return nil, &LineError{"something stands between the IPv6 address and the port", "write [address]:port"}
			}
		}
	} else if n := strings.Count(authority, ":"); n > 1 {
		if looksIPv6(authority) {
			return nil, errBareIPv6
		}
		return nil, &LineError{"more than one colon in host:port", wantURL}
	} else if n == 1 {
		host, port, hasPort = strings.Cut(authority, ":")
	}
	if !hasPort {
		if !written {
			return nil, errNoPort
		}
		port = defaultPorts[scheme]
	}
	return o.build(scheme, host, port, user)
}

// build checks the parts and makes the normal URL of an endpoint.
func (o ListOptions) build(scheme, host, port string, user *url.Userinfo) (*url.URL, error) {
	if err := checkPort(port); err != nil {
		return nil, err
	}
	host, private, err := normalHost(host)
	if err != nil {
		return nil, err
	}
	if private && !o.AllowPrivate {
		return nil, &LineError{"the address is private, loopback or reserved", "use a public one, or set allow_private for the pool"}
	}
	if err := checkUser(scheme, user); err != nil {
		return nil, err
	}
	return &url.URL{Scheme: scheme, User: user, Host: net.JoinHostPort(host, port)}, nil
}

func userinfo(text string) (*url.Userinfo, error) {
	encode := &LineError{"the user or password has a character with a meaning of its own", "percent-encode it, as %25 for a percent sign and %40 for an at sign"}
	if strings.ContainsAny(text, "@/?#") {
		return nil, encode
	}
	name, secret, has := strings.Cut(text, ":")
	name, err := url.PathUnescape(name)
	if err != nil {
		return nil, encode
	}
	if secret, err = url.PathUnescape(secret); err != nil {
		return nil, encode
	}
	if !has {
		return url.User(name), nil
	}
	return url.UserPassword(name, secret), nil
}

func checkUser(scheme string, user *url.Userinfo) error {
	if user == nil {
		return nil
	}
	name := user.Username()
	password, _ := user.Password()
	if name == "" && password == "" {
		return &LineError{"the user and the password are empty", "write host:port where there are none"}
	}
	for _, s := range []string{name, password} {
		if strings.ContainsFunc(s, unicode.IsControl) {
			return &LineError{"the user or password has a control character", "no proxy takes one"}
		}
	}
	if scheme == "http" || scheme == "https" {
		if strings.Contains(name, ":") {
			return &LineError{"the user has a colon", "an http proxy cannot be given one (RFC 7617)"}
		}
		return nil
	}
	if name == "" || len(name) > 255 || len(password) > 255 {
		return &LineError{"the user or password does not fit socks5", "1 to 255 bytes for the user, at most 255 for the password (RFC 1929)"}
	}
	return nil
}

func checkPort(port string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' {
		return &LineError{"the port is not a number from 1 to 65535", "write host:port"}
	}
	return nil
}

// cutScheme splits "scheme://rest"; a password may hold "://" too, so what
// stands before it must look like a scheme.
func cutScheme(text string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(text, "://")
	if !ok || strings.ContainsFunc(scheme, func(r rune) bool {
		return r > unicode.MaxASCII || !isAlnum(byte(r)) && !strings.ContainsRune("+.-", r)
	}) {
		return "", "", false
	}
	return strings.ToLower(scheme), rest, true
}

func schemeError(scheme string) error {
	const want = "use http, https, socks5 or socks5h"
	switch scheme {
	case "socks4", "socks4a", "ftp":
		// Known words only: an unknown one may be a part of a secret.
		return &LineError{scheme + " proxies are not supported", want}
	}
	return &LineError{"the scheme is unknown", want}
}

var (
	errNoPort       = &LineError{"no port is given", "write host:port"}
	errLongEndpoint = &LineError{"the endpoint is longer than 2048 bytes", wantURL}
	errBareIPv6     = &LineError{"an IPv6 address needs brackets", "write [address]:port"}
)

func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return "", s
}
