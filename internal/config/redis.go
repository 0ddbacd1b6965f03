package config

import (
	"fmt"
	"net"
	slash "path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (d *decoder) redis(n *node, to *RedisConfig, at Pos) {
	f := d.section(n, path{}.key("redis"), at)
	if n := f.scalar("url", "want embedded or a URL such as redis://127.0.0.1:6379/0"); n != nil {
		text, shown := render(n, nil)
		if problem, want := redisURL(text); problem != "" {
			d.fault(n.pos, "redis.url "+problem, want)
		} else {
			to.URL = NewValue(text, hideQuery(hidePassword(shown)))
		}
	}
	f.text("data", &to.Data, noControl)
	f.done(nil)
}

var redisSchemes = []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "unix"}

// redisURL checks the outline of the URL; the package that dials reads the
// rest. What is wrong is said without quoting it, for the password's sake.
func redisURL(s string) (problem, want string) {
	if s == "embedded" {
		return "", ""
	}
	scheme, rest, found := strings.Cut(s, "://")
	if !found {
		return "is neither embedded nor a URL", "want embedded, or a URL such as redis://127.0.0.1:6379/0"
	}
	if !slices.Contains(redisSchemes, scheme) {
		want = "want redis://, rediss://, redis+sentinel:// or redis+cluster://"
		if n := near(scheme, redisSchemes); n != "" && utf8.RuneCountInString(scheme) < 20 {
			want = fmt.Sprintf("did you mean %s://?", n)
		}
		return "has a scheme that is not known", want
	}
	if strings.ContainsFunc(rest, notVisible) {
		return "holds a blank or a control character", "want them percent-encoded, such as %20"
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if strings.ContainsAny(tail, "@#") {
		return "cannot be read", "want / ? # @ in a user or password percent-encoded: %2F %3F %23 %40"
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	place, _, _ := strings.Cut(tail, "?")
	if scheme == "unix" {
		if authority != "" || !slash.IsAbs(place) || place == "/" {
			return "names no socket", "want unix:///path/to/redis.sock"
		}
		return "", ""
	}
	hosts := strings.Split(authority, ",")
	if len(hosts) > 1 && !strings.Contains(scheme, "+") {
		return "names several hosts", "want one, or redis+sentinel:// or redis+cluster://"
	}
	if !allHostPorts(hosts) {
		return "has no host, or a bad port", "want " + scheme + "://host:port"
	}
	if strings.HasSuffix(scheme, "+sentinel") && strings.Trim(place, "/") == "" {
		return "has no name of the primary", "want redis+sentinel://host:26379,host2:26379/mymaster"
	}
	return "", ""
}

func allHostPorts(hosts []string) bool {
	return !slices.ContainsFunc(hosts, func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		if err != nil { // no port, or brackets alone
			host, port, err = net.SplitHostPort(s + ":1")
		}
		n, bad := strconv.ParseUint(port, 10, 16)
		return err != nil || host == "" || bad != nil || n == 0
	})
}

// hidePassword takes the password out of a URL as the file has it.
func hidePassword(shown string) string {
	scheme, rest, found := strings.Cut(shown, "://")
	at := strings.LastIndexByte(rest, '@')
	if !found || at < 0 {
		return shown
	}
	user, password, has := strings.Cut(rest[:at], ":")
	if has && password != "" {
		user += ":" + redacted
	}
	return scheme + "://" + user + rest[at:]
}
