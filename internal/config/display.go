package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"feedwarden/internal/units"
)

// Effective is the whole config as it works, in the form of a config file:
// defaults filled in, each feed by itself, secrets redacted. It is for people
// to read; a redacted one does not load again.
func (f *File) Effective() string {
	out, err := yaml.MarshalWithOptions(f.display(), yaml.IndentSequence(true))
	if err != nil {
		return fmt.Sprintf("# %v\n", err) // texts, numbers and lists alone: there is nothing to fail
	}
	return string(out)
}

// ordered builds a mapping in the order of the documentation.
type ordered yaml.MapSlice

func (o *ordered) set(key string, value any) {
	*o = append(*o, yaml.MapItem{Key: key, Value: value})
}

// some adds a text that is not empty.
func (o *ordered) some(key, value string) {
	if value != "" {
		o.set(key, value)
	}
}

func (o *ordered) duration(key string, d time.Duration) { o.set(key, units.FormatDuration(d)) }

func (o ordered) done() yaml.MapSlice { return yaml.MapSlice(o) }

func (f *File) display() yaml.MapSlice {
	var o, redis, worker, queues ordered
	redis.set("url", f.Redis.URL.String())
	redis.set("data", f.Redis.Data)
	o.set("redis", redis.done())
	o.set("web", f.Web.display())
	worker.set("concurrency", f.Worker.Concurrency)
	worker.set("interactive_slots", f.Worker.InteractiveSlots)
	worker.duration("shutdown", f.Worker.Shutdown)
	o.set("worker", worker.done())
	for _, name := range slices.Sorted(maps.Keys(f.Queues)) {
		queues.set(name, yaml.MapSlice{{Key: "limit", Value: f.Queues[name].Limit}})
	}
	o.set("queues", queues.done())
	o.set("fetch", f.Fetch.display())
	var quotas, pools, feeds ordered
	for _, q := range f.Quotas {
		if q.Bucket == "" { // an entry's preset brings the other buckets by itself
			quotas.set(q.Name, q.display())
		}
	}
	for _, p := range f.Pools {
		pools.set(p.Name, p.display())
	}
	for _, one := range f.Feeds {
		feeds.set(one.Name, one.display())
	}
	o.set("quotas", quotas.done())
	o.set("pools", pools.done())
	o.set("feeds", feeds.done())
	return o.done()
}

func (w WebConfig) display() yaml.MapSlice {
	var o ordered
	o.set("listen", w.Listen)
	var tokens []yaml.MapSlice
	for _, t := range w.Tokens {
		tokens = append(tokens, yaml.MapSlice{
			{Key: "name", Value: t.Name}, {Key: "token", Value: t.Token.String()}, {Key: "role", Value: t.Role},
		})
	}
	o.set("tokens", orNone(tokens))
	o.set("hosts", orNone(w.Hosts))
	o.set("insecure", w.Insecure)
	o.set("base_path", w.BasePath)
	o.some("judge", w.Judge)
	o.set("tls", yaml.MapSlice{{Key: "cert", Value: w.TLS.Cert}, {Key: "key", Value: w.TLS.Key}})
	return o.done()
}

func (c FetchConfig) display() yaml.MapSlice {
	var o ordered
	o.set("user_agent", c.UserAgent)
	o.duration("timeout", c.Timeout)
	o.set("max_body", units.FormatSize(c.MaxBody))
	o.set("allow_private", c.AllowPrivate)
	o.set("allow_hosts", orNone(c.AllowHosts))
	o.set("per_host", yaml.MapSlice{{Key: "delay", Value: units.FormatDuration(c.PerHost.Delay)}, {Key: "running", Value: c.PerHost.Running}})
	if len(c.PerSource) > 0 {
		var kinds yaml.MapSlice
		for _, kind := range slices.Sorted(maps.Keys(c.PerSource)) {
			kinds = append(kinds, yaml.MapItem{Key: kind, Value: c.PerSource[kind]})
		}
		o.set("per_source", kinds)
	}
	o.set("robots", c.Robots)
	return o.done()
}

func (q Quota) display() yaml.MapSlice {
	var o ordered
	o.some("preset", q.Preset)
	var windows []yaml.MapSlice
	for _, w := range q.Windows {
		var one ordered
		one.set("limit", w.Limit)
		if w.Calendar != "" {
			one.set("per", w.Calendar)
			one.set("timezone", w.Location.String())
		} else {
			one.duration("per", w.Per)
		}
		windows = append(windows, one.done())
	}
	o.set("windows", orNone(windows))
	o.set("reserve", q.Reserve)
	if q.Running > 0 {
		o.set("running", q.Running)
	}
	o.duration("grace", q.Grace)
	return o.done()
}

func (p Pool) display() yaml.MapSlice {
	var o ordered
	o.set("policy", p.Policy)
	o.set("alone", p.Alone)
	o.set("start", p.Start)
	o.set("cap", p.Cap)
	o.duration("lease", p.Lease)
	o.set("gateway", p.Gateway)
	if r := p.Require; r != nil {
		var one ordered
		one.set("https", r.HTTPS)
		if r.MaxLatency > 0 {
			one.duration("max_latency", r.MaxLatency)
		}
		one.set("anonymous", r.Anonymous)
		one.duration("every", r.Every)
		o.set("require", one.done())
	}
	o.set("quarantine", yaml.MapSlice{
		{Key: "base", Value: units.FormatDuration(p.Quarantine.Base)}, {Key: "max", Value: units.FormatDuration(p.Quarantine.Max)},
		{Key: "blame_target_above", Value: p.Quarantine.BlameTargetAbove},
	})
	o.some("list", p.List)
	if list := p.ListURL.String(); list != "" {
		o.set("list", list)
		o.duration("list_every", p.ListEvery)
	}
	o.set("list_format", p.ListFormat)
	o.set("allow_private", p.AllowPrivate)
	return o.done()
}

func (f Feed) display() yaml.MapSlice {
	var o ordered
	o.set("source", f.Source)
	o.some("method", f.Method)
	o.some("key", f.Key.String())
	o.some("base_url", f.BaseURL.String())
	o.some("url", f.URL.String())
	if len(f.Params) > 0 {
		o.set("params", texts(f.Params))
	}
	if len(f.Headers) > 0 {
		o.set("headers", texts(f.Headers))
	}
	o.some("items", f.Items)
	if len(f.Map) > 0 {
		o.set("map", texts(f.Map))
	}
	f.displayPages(&o)
	if f.Source != "push" {
		o.some("schedule", f.Schedule)
		o.set("timezone", f.Timezone)
		o.duration("jitter", f.Jitter)
		o.set("overlap", f.Overlap)
		o.set("catch_up", yaml.MapSlice{{Key: "policy", Value: f.CatchUp.Policy}, {Key: "within", Value: units.FormatDuration(f.CatchUp.Within)}})
		o.some("quota", f.Quota)
		o.set("cost", f.Cost)
		o.set("pool", f.Pool)
		o.set("attempts", f.Attempts)
		o.duration("max_snooze", f.MaxSnooze)
		o.duration("spread", f.Spread)
		o.duration("expires", f.Expires)
	}
	o.set("history", f.History)
	var sinks []yaml.MapSlice
	for _, s := range f.Sinks {
		sinks = append(sinks, s.display())
	}
	o.set("sinks", orNone(sinks))
	o.duration("ttl", f.TTL)
	return o.done()
}

func (f Feed) displayPages(o *ordered) {
	switch {
	case f.Source == "html":
	case f.Source != "youtube" && f.Paging == nil && f.Pages == 1:
	case f.Pages == 0:
		o.set("pages", "all")
	default:
		o.set("pages", f.Pages)
	}
	if g := f.Paging; g != nil {
		var one ordered
		if g.Page != nil {
			one.set("page", yaml.MapSlice{{Key: "from", Value: g.Page.From}, {Key: "max", Value: g.Page.Max}})
		}
		one.some("next", g.Next)
		one.some("cursor", g.Cursor)
		one.some("param", g.Param)
		if g.LinkHeader {
			one.set("link_header", true)
		}
		o.set("paging", one.done())
	}
	if n := f.Next; n != nil {
		o.set("next", yaml.MapSlice{{Key: "css", Value: n.CSS}, {Key: "max", Value: n.Max}})
	}
	if b := f.Ban; b != nil {
		var one ordered
		one.some("css", b.CSS)
		one.some("text", b.Text)
		if len(b.Status) > 0 {
			one.set("status", b.Status)
		}
		o.set("ban", one.done())
	}
}

func (s Sink) display() yaml.MapSlice {
	var o ordered
	o.some("file", s.File)
	o.some("webhook", s.Webhook.String())
	o.some("s3", s.S3.String())
	o.some("key", s.Key.String())
	o.some("secret", s.Secret.String())
	o.some("region", s.Region)
	o.some("stream", s.Stream)
	if s.Stdout {
		o.set("stdout", true)
	}
	return o.done()
}

// texts is a mapping by name. A text that YAML would read as a number stays
// one that reads back the same.
func texts[T any](m map[string]T) yaml.MapSlice {
	var o ordered
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text := fmt.Sprint(m[k])
		if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
			o.set(k, n)
			continue
		}
		o.set(k, strings.ToValidUTF8(text, "�"))
	}
	return o.done()
}

// orNone is a list that prints as [] when it is empty.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
