package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// dimension is one name under `each` and its values.
type dimension struct {
	name   string
	pos    Pos
	values []*node
}

var dimensionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// each reads the dimensions in the order of the file.
func (r *feedReader) each(f *fields) []dimension {
	var dims []dimension
	p := f.path.key("each")
	r.named(f.node("each"), p, f.pos("each"), func(e entry, p path) {
		dim := dimension{name: e.key, pos: e.pos}
		switch {
		case !dimensionName.MatchString(e.key):
			r.fault(e.pos, fmt.Sprintf("%s.each: %s is no placeholder's name", f.path, quote(e.key)), "want letters, digits, _ and -, such as region")
		case e.value.kind == list && len(e.value.items) > 0:
			if !r.spend(len(e.value.items)) {
				return
			}
			for i, item := range e.value.items {
				if r.scalarOf(item, p.index(i), "want a text") != nil {
					dim.values = append(dim.values, item)
				}
			}
		case e.value.kind == list || e.value.kind == nothing:
			r.fault(e.value.pos, fmt.Sprintf("%s is empty", p), "want a list of values: [BD, PH]")
		default:
			r.wrongKind(e.value, p, "want a list of values: [BD, PH]")
		}
		dims = append(dims, dim)
	})
	if n := f.have["each"].value; n != nil && (n.kind == nothing || n.kind == mapping && len(n.entries) == 0) {
		r.fault(n.pos, fmt.Sprintf("%s is empty", p), "want values: {region: [BD, PH]}")
	}
	return dims
}

// maxExpanded bounds the memory that `each` can make of a small file, in bytes.
const (
	maxExpanded  = 64 << 20
	maxFeeds     = 100_000
	bytesPerFeed = 256
)

// expandEntry makes the entry's feeds: one, or one for each combination.
func (r *feedReader) expandEntry(t *template) {
	r.checkTexts(t)
	count, size := 1, bytesPerFeed+t.size()
	for _, dim := range t.dims {
		count *= len(dim.values)
		if count > maxFeeds {
			break
		}
	}
	if len(r.out)+count > maxFeeds || count*size > maxExpanded-r.size {
		r.fault(t.pos, fmt.Sprintf("%s makes too many feeds", t.path), fmt.Sprintf("want at most %d in a file", maxFeeds))
		return
	}
	r.size += count * size
	pick := make([]int, len(t.dims))
	for i := range count {
		for d, rest := len(t.dims)-1, i; d >= 0; d-- { // the last dimension turns fastest
			n := len(t.dims[d].values)
			pick[d], rest = rest%n, rest/n
		}
		r.one(t, i, count, pick)
	}
}

// size is about what the texts of one feed take.
func (t *template) size() int {
	n := 0
	add := func(v *node) {
		if v == nil {
			return
		}
		for _, p := range v.parts {
			n += 2 * len(p.text)
		}
	}
	add(t.url)
	add(t.baseURL)
	for _, entries := range [][]entry{t.params, t.headers} {
		for _, e := range entries {
			n += 128
			add(e.value)
		}
	}
	return n
}

// fromEnv is what the environment gave to the texts of a feed, but a whole
// address: that is no secret.
func (t *template) fromEnv() []Value {
	var out []Value
	add := func(n *node) {
		if n == nil {
			return
		}
		for _, p := range n.parts {
			if p.env != "" && !strings.Contains(p.text, "://") {
				out = append(out, NewValue(p.text, p.shown()))
			}
		}
	}
	add(t.url)
	add(t.baseURL)
	for _, entries := range [][]entry{t.params, t.headers} {
		for _, e := range entries {
			add(e.value)
		}
	}
	return out
}

// checkTexts looks at the placeholders once for all feeds of the entry.
func (r *feedReader) checkTexts(t *template) {
	var paging []string
	if t.feed.Paging != nil && t.feed.Paging.Page != nil {
		paging = []string{"page"}
	}
	used := map[string]bool{}
	look := func(n *node, p path) {
		if n != nil {
			r.checkPlaceholders(n, p, t.dims, paging, used)
		}
	}
	look(t.url, t.path.key("url"))
	look(t.baseURL, t.path.key("base_url"))
	for _, e := range t.params {
		look(e.value, t.path.key("params").name(e.key))
	}
	for _, e := range t.headers {
		look(e.value, t.path.key("headers").name(e.key))
	}
	for _, dim := range t.dims {
		if !used[dim.name] && t.feed.Source != "push" {
			r.warn(dim.pos, fmt.Sprintf("%s.each: {%s} stands in no url, params or headers", t.path, dim.name), "so these feeds all fetch the same")
		}
	}
}

// one makes a feed of the entry with the picked values.
func (r *feedReader) one(t *template, index, of int, pick []int) {
	feed := t.feed
	feed.Index, feed.Of = index, of
	at := t.pos
	parts := []string{feed.Entry}
	if len(t.dims) > 0 {
		feed.Each = make(map[string]string, len(t.dims))
		for d, dim := range t.dims {
			v := dim.values[pick[d]]
			feed.Each[dim.name] = v.text()
			parts = append(parts, strings.ToLower(v.text()))
			at = v.pos
		}
	}
	feed.Name = strings.Join(parts, "-")
	if len(t.dims) > 0 && goodName.MatchString(feed.Entry) {
		if problem, want := properName(feed.Name); problem != "" {
			r.fault(at, fmt.Sprintf("%s: `each` makes a feed %s, which %s", t.path, quote(feed.Name), problem), want)
			return
		}
	}
	if first, twice := r.taken[feed.Name]; twice {
		r.fault(at, fmt.Sprintf("feeds: a second feed %s", quote(feed.Name)), fmt.Sprintf("want another name: line %d makes one already", first.Line))
		return
	}
	r.taken[feed.Name] = at
	r.fill(t, &feed)
	r.out = append(r.out, feed)
}

// fill sets the texts that differ from feed to feed, and checks them as they
// came out. What is wrong with many feeds of an entry is said once.
func (r *feedReader) fill(t *template, feed *Feed) {
	web := func(n *node, key string) Value {
		if n == nil {
			return Value{}
		}
		text, shown := render(n, feed.Each)
		if t.feed.Paging != nil && t.feed.Paging.Page != nil {
			text = strings.ReplaceAll(text, "{page}", "1")
		}
		if problem, want := webURL(text); problem != "" && !t.faulty {
			r.fault(n.pos, fmt.Sprintf("%s %s", t.path.key(key), problem), want)
			t.faulty = true
		}
		text, _ = render(n, feed.Each)
		return NewValue(text, hideQuery(shown))
	}
	feed.URL = web(t.url, "url")
	switch {
	case t.baseURL != nil:
		feed.BaseURL = web(t.baseURL, "base_url")
	case feed.Source == "youtube":
		feed.BaseURL = NewValue(youtubeURL, youtubeURL)
	}
	feed.Params = values(t.params, feed.Each)
	feed.Headers = values(t.headers, feed.Each)
	feed.fromEnv = t.fromEnv()
	if t.faulty || r.unset || feed.Source == "" || feed.Index >= checkedFeeds {
		return
	}
	for _, problem := range r.check(feed.SourceConfig()) {
		if problem = r.scrub(problem); !slices.Contains(t.said, problem) {
			r.fault(t.place(problem), fmt.Sprintf("%s: %s", t.path, problem), "")
			t.said = append(t.said, problem)
		}
	}
}

// place is where the key stands that a source's complaint begins with, such as
// params.maxResults or items; of what stands nowhere, the source.
func (t *template) place(problem string) Pos {
	at := t.kind.pos
	keys, _, _ := strings.Cut(strings.NewReplacer(":", " ").Replace(problem), " ")
	in := t.body
	for key := range strings.SplitSeq(keys, ".") {
		if in == nil || in.kind != mapping {
			break
		}
		i := slices.IndexFunc(in.entries, func(e entry) bool { return e.key == key })
		if i < 0 {
			break
		}
		in = in.entries[i].value
		at = in.pos
	}
	return at
}

// checkedFeeds is how many feeds of an entry the source looks at: compiling
// the same expressions for thousands of them would take seconds.
const checkedFeeds = 100

func values(entries []entry, each map[string]string) map[string]Value {
	if len(entries) == 0 {
		return nil
	}
	out := make(map[string]Value, len(entries))
	for _, e := range entries {
		text, shown := render(e.value, each)
		if mayHoldSecret.MatchString(e.key) && !e.value.fromEnv() && text != "" {
			shown = redacted
		}
		out[e.key] = NewValue(text, shown)
	}
	return out
}

var secretQuery = regexp.MustCompile(`(?i)([?&][^=&#]*(?:auth|key|password|passwd|secret|session|signature|token)[^=&#]*=)([^&#]+)`)

// hideQuery takes what looks like a secret out of a URL as the file has it.
func hideQuery(shown string) string {
	return secretQuery.ReplaceAllStringFunc(shown, func(m string) string {
		name, value, _ := strings.Cut(m, "=")
		if strings.HasPrefix(value, "${") {
			return m
		}
		return name + "=" + redacted
	})
}
