package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func (d *decoder) web(n *node, to *WebConfig, at Pos) {
	p := path{}.key("web")
	f := d.section(n, p, at)
	f.text("listen", &to.Listen, listenAddress)
	given := f.list("tokens", "want a list: [{name: ops, token: \"${OPS_TOKEN}\", role: write}]")
	names, values := map[string]bool{}, map[Secret]bool{}
	for i, item := range given {
		if t, ok := d.token(item, p.key("tokens").index(i), names, values); ok {
			to.Tokens = append(to.Tokens, t)
		}
	}
	for i, item := range f.list("hosts", "want a list of names: [feeds.example.org]") {
		if s, ok := d.item(item, p.key("hosts").index(i), hostName); ok {
			to.Hosts = append(to.Hosts, s)
		}
	}
	f.flag("insecure", &to.Insecure)
	f.text("base_path", &to.BasePath, func(s string) (string, string) {
		if s != "/" && !basePath.MatchString(s) || strings.Contains(s+"/", "/./") || strings.Contains(s+"/", "/../") {
			return "is no path", "want a path such as /feedwarden, of letters, digits, - . _ ~ and no / at its end"
		}
		return "", ""
	})
	d.tls(f.node("tls"), &to.TLS, f.pos("tls"))
	f.text("judge", &to.Judge, func(s string) (string, string) {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return "is no judge's address", "want an address such as https://feeds.example.org/judge"
		}
		return "", ""
	})
	f.done(nil)
	if len(given) == 0 && !to.Insecure && !loopback(to.Listen) {
		d.fault(f.pos("listen"), fmt.Sprintf("web.listen %s can be reached from other machines, and web.tokens is empty", quote(f.have["listen"].value.shown())),
			"want tokens, or listen: 127.0.0.1:8080, or insecure: true to let everybody in")
	}
}

func (d *decoder) tls(n *node, to *TLS, at Pos) {
	f := d.section(n, path{}.key("web").key("tls"), at)
	for key, to := range map[string]*string{"cert": &to.Cert, "key": &to.Key} {
		if n := f.scalar(key, "want a file's name"); n != nil {
			*to = n.text()
		}
	}
	f.done(nil)
	if to.Cert != "" {
		to.Pos = f.at
	}
	if (to.Cert == "") != (to.Key == "") {
		d.fault(f.at, "web.tls has one of cert and key", "want both, or neither")
	}
}

// basePath needs no escape, in a link, a header or a cookie.
var basePath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

var roles = []string{"read", "write", "admin"}

const shortestToken = 16

func (d *decoder) token(n *node, p path, names map[string]bool, values map[Secret]bool) (Token, bool) {
	var t Token
	before := d.count
	f := d.section(n, p, n.pos)
	if f.text("name", &t.Name, properName) == nil {
		if !f.has("name") {
			d.fault(n.pos, fmt.Sprintf("%s has no name", p), "want name: ops")
		}
	} else if names[t.Name] {
		f.bad("name", f.have["name"].value, "is the name of another token", "want a name of its own")
	}
	names[t.Name] = true
	if v := f.secret("token", &t.Token); v == nil {
		if !f.has("token") {
			d.fault(n.pos, fmt.Sprintf("%s has no token", p), `want token: "${NAME}"`)
		}
	} else if length := utf8.RuneCountInString(t.Token.Reveal()); length < shortestToken {
		d.fault(v.pos, fmt.Sprintf("%s.token has %d characters", p, length), fmt.Sprintf("want %d at least; `openssl rand -hex 24` makes a good one", shortestToken))
	} else if values[t.Token] {
		d.fault(v.pos, fmt.Sprintf("%s.token is the same as another's", p), "want a token of its own for each name")
	}
	values[t.Token] = true
	if f.choice("role", &t.Role, roles...) == nil && !f.has("role") {
		d.fault(n.pos, fmt.Sprintf("%s has no role", p), "want role: read, write or admin")
	}
	f.done(nil)
	return t, d.count == before
}

func listenAddress(s string) (problem, want string) {
	const example = "want an address such as 127.0.0.1:8080"
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		if _, err := strconv.ParseUint(s, 10, 16); err == nil {
			return "is no address", fmt.Sprintf("did you mean \"127.0.0.1:%s\"?", s)
		}
		return "is no address", example
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "has a bad port", "want a port from 0 to 65535"
	}
	if host != "" && host != "localhost" {
		if _, err := netip.ParseAddr(host); err != nil {
			if problem, _ := hostName(host); problem != "" {
				return "has a bad host", example
			}
		}
	}
	return "", ""
}

// loopback tells that an address can be reached from this machine alone. A name
// other than localhost may mean anything.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return true // its own fault is reported
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func (d *decoder) worker(n *node, to *WorkerConfig, at Pos) {
	f := d.section(n, path{}.key("worker"), at)
	whole(f, "concurrency", &to.Concurrency, 1, 10_000)
	// A small worker keeps one slot for scheduled jobs, whatever the default.
	to.InteractiveSlots = min(to.InteractiveSlots, to.Concurrency-1)
	if n := whole(f, "interactive_slots", &to.InteractiveSlots, 0, 10_000); n != nil && to.InteractiveSlots >= to.Concurrency {
		f.bad("interactive_slots", n, fmt.Sprintf("leaves none of %d slots for scheduled jobs", to.Concurrency), fmt.Sprintf("want at most %d", to.Concurrency-1))
	}
	f.duration("shutdown", &to.Shutdown, time.Second)
	f.done(nil)
}

func (d *decoder) queues(n *node, to map[string]QueueConfig, at Pos) {
	p := path{}.key("queues")
	f := d.section(n, p, at)
	for _, name := range []string{"interactive", "scheduled"} {
		q := to[name]
		one := d.section(f.node(name), p.key(name), f.pos(name))
		whole(one, "limit", &q.Limit, 1, 100_000_000)
		one.done(nil)
		to[name] = q
	}
	f.done(func(key string) string {
		if strings.ContainsAny(key, "{}") {
			return "a queue's name has no braces; the queues are interactive and scheduled"
		}
		if near(key, f.known) == "" {
			return "the queues are interactive and scheduled"
		}
		return ""
	})
}

func (d *decoder) fetch(n *node, to *FetchConfig, at Pos) {
	p := path{}.key("fetch")
	f := d.section(n, p, at)
	f.text("user_agent", &to.UserAgent, headerValue)
	f.duration("timeout", &to.Timeout, time.Second)
	f.size("max_body", &to.MaxBody)
	f.flag("allow_private", &to.AllowPrivate)
	for i, item := range f.list("allow_hosts", "want a list of names: [example.org, \"*.example.org\"]") {
		if s, ok := d.item(item, p.key("allow_hosts").index(i), func(s string) (string, string) {
			return hostName(strings.TrimPrefix(s, "*."))
		}); ok {
			to.AllowHosts = append(to.AllowHosts, s)
		}
	}
	perHost := d.section(f.node("per_host"), p.key("per_host"), f.pos("per_host"))
	perHost.duration("delay", &to.PerHost.Delay, 0)
	whole(perHost, "running", &to.PerHost.Running, 1, 10_000)
	perHost.done(nil)
	d.perSource(f, p.key("per_source"), to)
	f.flag("robots", &to.Robots)
	f.done(nil)
}

// perSource reads how many jobs of each kind of source may run at a time.
func (d *decoder) perSource(f *fields, p path, to *FetchConfig) {
	kinds := d.section(f.node("per_source"), p, f.pos("per_source"))
	for _, s := range sourceKeys {
		var n int
		if s.name != "push" && whole(kinds, s.name, &n, 1, 10_000) != nil && n > 0 {
			if to.PerSource == nil {
				to.PerSource = map[string]int{}
			}
			to.PerSource[s.name] = n
		}
	}
	kinds.done(nil)
}

// item reads one text of a list.
func (d *decoder) item(n *node, p path, checks ...check) (string, bool) {
	if n = d.scalarOf(n, p, "want a text"); n == nil {
		return "", false
	}
	for _, c := range checks {
		if problem, want := c(n.text()); problem != "" {
			d.bad(n, p, problem, want)
			return "", false
		}
	}
	return n.text(), true
}
