package config

import (
	"fmt"
	"slices"
	"strings"

	"feedwarden/jobs/sink"
)

var sinkKinds = []string{"file", "webhook", "stream", "stdout", "s3"}

// sinks reads where a feed's versions go besides the cache.
func (r *feedReader) sinks(f *fields, to *Feed) {
	seen := map[string]bool{}
	for i, item := range f.list("sinks", "want a list: [{stdout: true}]") {
		p := f.path.key("sinks").index(i)
		s, ok := r.sink(item, p)
		if !ok {
			continue
		}
		if name := s.Config().Name(); seen[name] {
			r.fault(item.pos, fmt.Sprintf("%s names a place that stands before it", p), "remove one of them")
		} else {
			seen[name] = true
		}
		to.Sinks = append(to.Sinks, s)
	}
}

// sink reads one place for results.
func (r *feedReader) sink(n *node, p path) (Sink, bool) {
	var s Sink
	before := r.count
	f := r.section(n, p, n.pos)
	f.text("file", &s.File, noControl, sinkFile)
	s.Webhook = r.sinkURL(f, "webhook")
	f.secret("secret", &s.Secret)
	f.text("stream", &s.Stream, noControl, sinkStream)
	f.flag("stdout", &s.Stdout)
	s.S3 = r.sinkURL(f, "s3")
	f.secret("key", &s.Key)
	f.text("region", &s.Region, noControl)
	f.done(nil)
	ways := 0
	for _, k := range sinkKinds {
		if f.has(k) {
			ways++
		}
	}
	if ways != 1 && (n.kind == mapping || n.kind == nothing) {
		r.fault(n.pos, fmt.Sprintf("%s names %d places", p, ways), oneOf(sinkKinds))
	}
	if f.has("secret") && !f.has("webhook") && !f.has("s3") {
		r.fault(f.pos("secret"), fmt.Sprintf("%s is only for a webhook or s3", p.key("secret")), "")
	}
	for _, k := range []string{"key", "region"} {
		if f.has(k) && !f.has("s3") {
			r.fault(f.pos(k), fmt.Sprintf("%s is only for s3", p.key(k)), "")
		}
	}
	if f.has("stdout") && !s.Stdout && r.count == before {
		r.fault(f.pos("stdout"), fmt.Sprintf("%s is false, and so names no place", p.key("stdout")), "want stdout: true, or no such sink")
	}
	broken := slices.ContainsFunc(f.order, func(k string) bool { return f.have[k].value.broken }) // which is reported
	if r.count == before && ways == 1 && !broken {
		if err := s.Config().Check(); err != nil {
			r.fault(n.pos, fmt.Sprintf("%s: %s", p, strings.ReplaceAll(err.Error(), "\n", "; ")), "")
		}
	}
	return s, r.count == before && !broken
}

// sinkURL reads a place on the web; of what it shows, the query is hidden.
func (r *feedReader) sinkURL(f *fields, key string) Value {
	n := f.scalar(key, "want a URL")
	if n == nil {
		return Value{}
	}
	text, shown := render(n, nil)
	if problem, want := webURL(text); problem != "" {
		if problem == holdsUser { // a sink has no headers
			want = map[string]string{"webhook": "want secret: beside it, which signs what is sent", "s3": "want key: and secret: beside it"}[key]
		}
		r.fault(n.pos, fmt.Sprintf("%s %s", f.path.key(key), problem), want)
	}
	return NewValue(text, hideQuery(shown))
}

func sinkFile(s string) (problem, want string) {
	if err := (sink.Config{File: s}).Check(); err != nil {
		return "is no path for versions", err.Error()
	}
	return "", ""
}

func sinkStream(s string) (problem, want string) {
	if err := (sink.Config{Stream: s}).Check(); err != nil {
		return "is no name for a stream", err.Error()
	}
	return "", ""
}

// Config is the sink with its secrets, for the package that delivers.
func (s Sink) Config() sink.Config {
	c := sink.Config{File: s.File, Webhook: s.Webhook.Reveal(), Stream: s.Stream, Stdout: s.Stdout, S3: s.S3.Reveal()}
	if c.S3 != "" {
		c.S3Key, c.S3Secret, c.S3Region = s.Key.Reveal(), s.Secret.Reveal(), s.Region
	} else {
		c.Secret = s.Secret.Reveal()
	}
	return c
}
