package config

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"feedwarden/jobs/source"
)

// MethodCost is what a request of a method takes and from which bucket, under
// a preset; source.Cost is one.
type MethodCost func(preset, method string) (bucket string, cost int64, ok bool)

// CheckSource tells all that is wrong with a feed's source as a whole.
type CheckSource func(source.Config) (problems []string)

// checkSource asks the package that will build the requests, where it knows
// the kind.
func checkSource(c source.Config) []string {
	if !slices.Contains(source.Kinds(), c.Kind) {
		return nil
	}
	_, err := source.New(c)
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "source: "+c.Kind+": ")
	return strings.Split(text, "\n")
}

// SourceConfig is the feed's source with its secrets, for the package that
// fetches.
func (f Feed) SourceConfig() source.Config {
	return source.Config{
		Kind: f.Source, URL: f.URL.Reveal(), BaseURL: f.BaseURL.Reveal(), Method: f.Method, Key: f.Key.Reveal(),
		Params: RevealAll(f.Params), Headers: RevealAll(f.Headers), Secrets: f.secrets(), Pages: f.Pages, Items: f.Items, Map: f.Map,
		Paging: f.Paging, Next: f.Next, Ban: f.Ban,
	}
}

func (f Feed) secrets() []string {
	var out []string
	for _, s := range f.fromEnv {
		out = append(out, s.Reveal())
	}
	return out
}

// presets are the tables of costs; the first is what a quota without one means.
var presets = []string{"youtube-2026-06", "youtube-legacy"}

func methods(preset string) []string { return source.Methods(preset) }

// sourceKeys says which keys belong to which source, besides those that every
// feed has.
var sourceKeys = []struct {
	name string
	keys []string
}{
	{"youtube", []string{"method", "key", "base_url", "params", "headers", "pages", "ban"}},
	{"syndication", []string{"url", "params", "headers", "ban"}},
	{"json", []string{"url", "params", "headers", "items", "map", "paging", "pages", "ban"}},
	{"html", []string{"url", "params", "headers", "items", "map", "next", "ban"}},
	{"push", nil},
}

// otherSourceNames are what people call a source before they know its name.
var otherSourceNames = map[string]string{
	"rss": "syndication", "atom": "syndication", "feed": "syndication", "jsonfeed": "syndication", "xml": "syndication",
	"api": "json", "rest": "json", "page": "html", "web": "html", "css": "html", "scrape": "html", "script": "push", "file": "push",
}

func sourceNames() []string {
	var names []string
	for _, s := range sourceKeys {
		names = append(names, s.name)
	}
	return names
}

// misplaced says of a key that this source does not have which one does.
func misplaced(key, kind string) string {
	if kind == "" {
		return ""
	}
	var owners []string
	for _, s := range sourceKeys {
		if slices.Contains(s.keys, key) {
			owners = append(owners, s.name)
		}
	}
	if len(owners) > 0 {
		return fmt.Sprintf("%s is for source %s, and this is %s", key, strings.Join(owners, ", "), kind)
	}
	if kind == "push" && slices.Contains([]string{
		"schedule", "timezone", "jitter", "overlap", "catch_up", "spread", "quota", "pool", "cost", "attempts", "max_snooze", "expires",
	}, key) {
		return "a push feed is filled by scripts and never fetched"
	}
	return ""
}

// source reads the keys of the entry's source. Where the source is not known,
// all of them are allowed, so that one fault does not make ten.
func (r *feedReader) source(f *fields, t *template) {
	kind := t.feed.Source
	keys := map[string]bool{}
	for _, s := range sourceKeys {
		if kind == s.name || kind == "" {
			for _, k := range s.keys {
				keys[k] = true
			}
		}
	}
	need := func(key, example string) {
		if kind != "" && !f.has(key) {
			r.fault(f.at, fmt.Sprintf("%s has no %s", f.path, key), "want "+example)
		}
	}
	to := &t.feed
	if keys["method"] {
		f.text("method", &to.Method)
		need("method", "method: videos.list")
	}
	if keys["key"] {
		f.secret("key", &to.Key)
		need("key", `key: "${YOUTUBE_API_KEY}"`)
	}
	if keys["base_url"] {
		t.baseURL = f.scalar("base_url", "want "+youtubeURL)
	}
	if keys["url"] {
		t.url = f.scalar("url", "want a URL such as https://example.org/feed.xml")
		need("url", "url: https://example.org/feed.xml")
	}
	if keys["params"] {
		t.params = r.texts(f, "params")
	}
	if keys["headers"] {
		t.headers = r.headerTexts(f)
	}
	if keys["items"] {
		f.text("items", &to.Items)
		example := "items: .data[]"
		if kind == "html" {
			example = "items: article.item"
		}
		need("items", example)
	}
	if keys["map"] {
		for _, e := range r.texts(f, "map") {
			if to.Map == nil {
				to.Map = map[string]string{}
			}
			to.Map[e.key] = e.value.text()
		}
	}
	if keys["paging"] {
		to.Paging = r.paging(f.node("paging"), f.path.key("paging"))
	}
	if keys["next"] {
		to.Next = r.next(f.node("next"), f.path.key("next"))
	}
	if keys["pages"] {
		r.pages(f, to)
	}
	if kind == "html" && to.Next != nil {
		to.Pages = max(to.Next.Max, 1)
	}
	if keys["ban"] {
		to.Ban = r.ban(f.node("ban"), f.path.key("ban"))
	}
}

// texts reads a mapping of names to texts.
func (r *feedReader) texts(f *fields, key string) []entry {
	var out []entry
	r.named(f.node(key), f.path.key(key), f.pos(key), func(e entry, p path) {
		if r.scalarOf(e.value, p, "want a text") != nil {
			out = append(out, e)
		}
	})
	return out
}

func (r *feedReader) headerTexts(f *fields) []entry {
	lines := map[string]string{}
	return slices.DeleteFunc(r.texts(f, "headers"), func(e entry) bool {
		problem, want := headerName(e.key)
		canonical := textproto.CanonicalMIMEHeaderKey(e.key)
		if other, twice := lines[canonical]; problem == "" && twice {
			problem, want = "is given twice", fmt.Sprintf("it stands there as %q already", other)
		}
		if problem != "" {
			r.fault(e.pos, fmt.Sprintf("%s: %s %s", f.path.key("headers"), quote(e.key), problem), want)
			return true
		}
		lines[canonical] = e.key
		if problem, want := headerValue(e.value.text()); problem != "" {
			r.fault(e.value.pos, fmt.Sprintf("%s %s", f.path.key("headers").name(e.key), problem), want)
			return true
		}
		return false
	})
}
