package redisconn

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

type kind string

const (
	kindEmbedded kind = "embedded"
	kindSingle   kind = "single"
	kindSentinel kind = "sentinel"
	kindCluster  kind = "cluster"
)

// target is a parsed URL.
type target struct {
	kind     kind
	network  string   // of a single server: tcp or unix
	addrs    []string // host:port, or the socket's path
	primary  string   // what Sentinels call the primary
	user     string
	password string
	db       int
	tls      *tlsFiles // nil: no TLS

	sentinelUser, sentinelPassword string
}

// scheme says what a URL's scheme means.
type scheme struct {
	kind   kind
	port   string // of a host that names none; "" for a path
	tls    bool
	params []string
}

var tlsParams = []string{"ca", "cert", "key", "server_name"}
var sentinelParams = []string{"sentinel_user", "sentinel_password"}

var schemes = map[string]scheme{
	"redis":           {kind: kindSingle, port: "6379"},
	"rediss":          {kind: kindSingle, port: "6379", tls: true, params: tlsParams},
	"redis+sentinel":  {kind: kindSentinel, port: "26379", params: sentinelParams},
	"rediss+sentinel": {kind: kindSentinel, port: "26379", tls: true, params: slices.Concat(sentinelParams, tlsParams)},
	"redis+cluster":   {kind: kindCluster, port: "6379"},
	"rediss+cluster":  {kind: kindCluster, port: "6379", tls: true, params: tlsParams},
	"unix":            {kind: kindSingle, params: []string{"db"}},
}

const wantURL = "embedded, redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"

// parseURL reads a URL by hand: net/url takes no list of hosts with ports. A
// fault never quotes what may be a part of a password.
func parseURL(raw string) (target, error) {
	if raw == string(kindEmbedded) {
		return target{kind: kindEmbedded}, nil
	}
	name, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return target{}, &URLError{Problem: "is not a Redis URL", Want: wantURL}
	}
	s, ok := schemes[name]
	if !ok {
		return target{}, &URLError{Problem: "has a scheme that is not known", Want: wantURL}
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if strings.ContainsAny(tail, "@#") {
		return target{}, errEncode
	}
	t := target{kind: s.kind, network: "tcp"}
	if s.tls {
		t.tls = &tlsFiles{}
	}
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		if err := t.readUser(authority[:i]); err != nil {
			return target{}, err
		}
		authority = authority[i+1:]
	}
	place, query, _ := strings.Cut(tail, "?")
	if err := t.readParams(query, s.params); err != nil {
		return target{}, err
	}
	var err error
	if s.port == "" {
		err = t.readSocket(authority, place)
	} else if err = t.readHosts(authority, s.port); err == nil {
		err = t.readPath(place)
	}
	return t, err
}

var errEncode = &URLError{
	Problem: "cannot be read",
	Want:    "USER:PASSWORD@HOST, with the characters / ? # @ : % of a password written as %2F %3F %23 %40 %3A %25",
}

func (t *target) readUser(info string) error {
	user, password, _ := strings.Cut(info, ":")
	if password == "" {
		return &URLError{Problem: "has something before the @ but no password", Want: ":PASSWORD@ or USER:PASSWORD@"}
	}
	var err1, err2 error
	t.user, err1 = url.PathUnescape(user)
	t.password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return errEncode
	}
	return nil
}

func (t *target) readHosts(list, port string) error {
	for host := range strings.SplitSeq(list, ",") {
		h, p, err := net.SplitHostPort(host)
		if err != nil { // no port, or brackets alone
			h, p, err = net.SplitHostPort(host + ":" + port)
		}
		if err != nil {
			return &URLError{Problem: "has a host that cannot be read", Want: "HOST, HOST:PORT or [IPV6]:PORT"}
		}
		if h == "" {
			return &URLError{Problem: "names no host", Want: "HOST:PORT after ://"}
		}
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return &URLError{Problem: "has a port that is not one", Want: "a number from 1 to 65535"}
		}
		t.addrs = append(t.addrs, net.JoinHostPort(h, p))
	}
	if t.kind == kindSingle && len(t.addrs) > 1 {
		return &URLError{Problem: "names several hosts", Want: "one host, or redis+sentinel:// or redis+cluster://"}
	}
	return nil
}

func (t *target) readSocket(authority, place string) error {
	file, err := url.PathUnescape(place)
	if err != nil || authority != "" || !path.IsAbs(file) || file == "/" {
		return &URLError{Problem: "names no socket", Want: "unix:///absolute/path/to/redis.sock"}
	}
	t.network, t.addrs = "unix", []string{file}
	return nil
}

// readPath reads what follows the hosts: /DB, /PRIMARY[/DB], or nothing for a Cluster.
func (t *target) readPath(place string) error {
	parts := strings.Split(strings.Trim(place, "/"), "/")
	if t.kind == kindSentinel {
		name, err := url.PathUnescape(parts[0])
		if err != nil || name == "" {
			return &URLError{Problem: "does not say which primary", Want: "redis+sentinel://HOST:26379/PRIMARY"}
		}
		t.primary, parts = name, parts[1:]
	}
	if len(parts) > 1 {
		return &URLError{Problem: "has a path that is too long", Want: "a database number at its end, or nothing"}
	}
	if len(parts) == 0 || parts[0] == "" {
		return nil
	}
	if err := t.readDB(parts[0]); err != nil {
		return err
	}
	if t.kind == kindCluster && t.db != 0 {
		return &URLError{Problem: "names a database", Want: "none: a Cluster has only database 0"}
	}
	return nil
}

func (t *target) readDB(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return &URLError{Problem: "has a database that is not one", Want: "a number from 0"}
	}
	t.db = n
	return nil
}

func (t *target) readParams(query string, known []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errEncode
	}
	for name, v := range values {
		if !slices.Contains(known, name) {
			want := "no parameter with this scheme"
			if len(known) > 0 {
				want = strings.Join(known, ", ")
			}
			return &URLError{Problem: fmt.Sprintf("has the parameter %q, which is not known", name), Want: want}
		}
		if len(v) != 1 || v[0] == "" {
			return &URLError{Problem: fmt.Sprintf("has the parameter %q empty or more than once", name), Want: "one value"}
		}
		switch name {
		case "ca":
			t.tls.ca = v[0]
		case "cert":
			t.tls.cert = v[0]
		case "key":
			t.tls.key = v[0]
		case "server_name":
			t.tls.serverName = v[0]
		case "sentinel_user":
			t.sentinelUser = v[0]
		case "sentinel_password":
			t.sentinelPassword = v[0]
		case "db":
			if err := t.readDB(v[0]); err != nil {
				return err
			}
		}
	}
	if t.tls != nil && (t.tls.cert == "") != (t.tls.key == "") {
		return &URLError{Problem: "has one of cert and key", Want: "both, or none"}
	}
	if t.sentinelUser != "" && t.sentinelPassword == "" {
		return &URLError{Problem: "has sentinel_user without sentinel_password", Want: "both, or the password alone"}
	}
	return nil
}

// String says which Redis, without a secret.
func (t target) String() string {
	var b strings.Builder
	switch t.kind {
	case kindSentinel:
		fmt.Fprintf(&b, "%q, primary of the Sentinels at ", t.primary)
	case kindCluster:
		b.WriteString("the Cluster at ")
	}
	b.WriteString(strings.Join(t.addrs, ", "))
	if t.db != 0 {
		fmt.Fprintf(&b, ", database %d", t.db)
	}
	if t.user != "" {
		fmt.Fprintf(&b, ", as %s", t.user)
	}
	if t.tls != nil {
		b.WriteString(", over TLS")
	}
	return b.String()
}
