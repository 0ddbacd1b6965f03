package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedwarden/internal/units"
)

var policies = []string{"least-used", "random", "shuffled", "no-repeat", "least-busy", "sticky"}

func (d *decoder) pools(n *node, at Pos) []Pool {
	var out []Pool
	d.named(n, path{}.key("pools"), at, func(e entry, p path) {
		if problem, want := properName(e.key); problem != "" {
			d.fault(e.pos, fmt.Sprintf("pools: %s %s", quote(e.key), problem), want)
		} else if e.key == Direct {
			d.fault(e.pos, "pools: direct is built in: it means no proxy", "want another name")
		} else if e.key == Environment {
			d.fault(e.pos, "pools: environment is built in: it means the proxies that HTTP_PROXY and HTTPS_PROXY name", "want another name")
		}
		out = append(out, d.pool(e, p))
	})
	slices.SortFunc(out, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (d *decoder) pool(e entry, p path) Pool {
	q := defaultPool(e.key)
	q.Pos = e.pos
	f := d.section(e.value, p, e.pos)
	f.choice("policy", &q.Policy, policies...)
	f.choice("alone", &q.Alone, "wait", "reuse", "stop")
	f.text("start", &q.Start, func(s string) (string, string) {
		if s == "floor" || s == "zero" {
			return "", ""
		}
		if n, err := strconv.ParseUint(s, 10, 64); err != nil || n > maxStart {
			return "is no start", fmt.Sprintf("want floor, zero, or a whole number up to %d", int64(maxStart))
		}
		return "", ""
	})
	whole(f, "cap", &q.Cap, 1, 1_000_000)
	f.duration("lease", &q.Lease, time.Second)
	f.flag("gateway", &q.Gateway)
	if n := f.node("require"); n != nil && n.kind != nothing {
		q.Require = d.require(n, p.key("require"))
	}
	d.quarantine(f.node("quarantine"), p.key("quarantine"), &q.Quarantine, f.pos("quarantine"))
	d.proxyList(f, &q)
	if n := f.duration("list_every", &q.ListEvery, leastEvery); n != nil && q.ListURL == (Value{}) {
		f.bad("list_every", n, "is for a list at a web address", "remove it: a file is read again when it changes")
	}
	f.choice("list_format", &q.ListFormat, "auto", "user-first")
	f.flag("allow_private", &q.AllowPrivate)
	f.done(nil)
	return q
}

const maxStart = 1 << 40 // above it scores would not stay exact

// leastEvery keeps checks and lists from becoming a load.
const leastEvery = 10 * time.Second

// proxyList reads a file's name or a web address. An address may hold a login
// or a key, so no fault quotes it.
func (d *decoder) proxyList(f *fields, q *Pool) {
	n := f.scalar("list", "want a file's name, such as proxies.txt, or a web address")
	if n == nil {
		return
	}
	text, shown := render(n, nil)
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		f.text("list", &q.List, noControl)
		q.ListPos = n.pos
		return
	}
	u, err := url.Parse(text)
	switch {
	case scheme != "http" && scheme != "https":
		d.fault(n.pos, fmt.Sprintf("%s has the scheme of neither a file nor a web address", f.path.key("list")), "want a file's name, such as proxies.txt, or https://…")
	case err != nil || u.Hostname() == "" || rest == "" || strings.ContainsFunc(text, notVisible):
		d.fault(n.pos, fmt.Sprintf("%s cannot be read", f.path.key("list")), "want https://host/path, with / ? # @ % in a user or password percent-encoded")
	default:
		q.ListURL = NewValue(text, hideQuery(hidePassword(shown)))
	}
}

func (d *decoder) require(n *node, p path) *Require {
	r := Require{Every: time.Hour}
	f := d.section(n, p, n.pos)
	f.flag("https", &r.HTTPS)
	f.duration("max_latency", &r.MaxLatency, time.Millisecond)
	f.flag("anonymous", &r.Anonymous)
	f.duration("every", &r.Every, leastEvery)
	f.done(nil)
	return &r
}

func (d *decoder) quarantine(n *node, p path, q *Quarantine, at Pos) {
	f := d.section(n, p, at)
	f.duration("base", &q.Base, time.Second)
	// A base longer than the default cap moves the cap.
	q.Max = max(q.Max, q.Base)
	if n := f.duration("max", &q.Max, time.Second); n != nil && q.Max < q.Base {
		f.bad("max", n, "is shorter than base, "+units.FormatDuration(q.Base), "want base or longer")
	}
	f.fraction("blame_target_above", &q.BlameTargetAbove)
	f.done(nil)
}
