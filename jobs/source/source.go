package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedwarden/jobs/fetch"
)

// Item is one entry of a feed, the same shape for every source.
type Item struct {
	// ID tells items of one feed apart, and stays the same from fetch to fetch.
	ID    string `json:"id"`
	URL   string `json:"url"` // http or https, or empty
	Title string `json:"title"`
	// Published is null where the source does not say.
	Published *time.Time `json:"published"`
	// FirstSeen is the instant of this reading; the feed's store keeps the
	// earliest.
	FirstSeen time.Time `json:"first_seen"`
	// Rank is the place in the answer, 1 first, continuing over its pages.
	Rank int `json:"rank"`
	// RankChange is how many places it has risen since the version before, less
	// than 0 when it fell; absent where it was not there. The feed's store sets it.
	RankChange *int `json:"rank_change,omitempty"`
	// Fields hold what JSON can: whole numbers of any size are int or *big.Int.
	Fields map[string]any `json:"fields"`
}

// stored is an item without a reader of its own.
type stored Item

// UnmarshalJSON reads a stored item: its whole numbers are as exact as they came.
func (it *Item) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode((*stored)(it)); err != nil {
		return err
	}
	exact(it.Fields)
	return nil
}

// ReadItems reads stored items as json.Unmarshal would, in one pass over them all.
func ReadItems(b []byte) ([]Item, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var all []stored
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	items := make([]Item, len(all))
	for i, it := range all {
		exact(it.Fields)
		items[i] = Item(it)
	}
	return items, nil
}

// Config says what to ask and how to read. Which fields a kind takes is said
// at its constructor.
type Config struct {
	Kind    string // one of Kinds
	URL     string // syndication, json, html
	BaseURL string // youtube; default https://www.googleapis.com/youtube/v3
	Method  string // youtube: videos.list, search.list, playlistItems.list, channels.list
	Key     string // youtube: sent as X-Goog-Api-Key
	Params  map[string]string
	Headers map[string]string
	// Secrets are texts that URL, Params and Headers hold and that nothing may
	// show, also where a target echoes them. A key, a header's value, and a
	// parameter whose name says what it is are known for ones without it.
	Secrets []string
	// Pages is how many pages are read at most; 0 is to the end.
	Pages int
	// Items yields the items: a jq expression; a CSS selector; json, html.
	Items string
	// Map gives an item's fields: jq expressions on it; "selector@attribute",
	// "@attribute" of the item itself, "selector" for its text; json, html.
	Map map[string]string
	// Paging is how the next page is found; json. Nil is one page.
	Paging *Paging
	// Next is the link to the next page; html. Nil is one page.
	Next *NextPage
	// Ban tells the target's ban page from an answer; every kind but push.
	Ban *BanSigns
	// MaxItems caps the items read of one page: 2000.
	MaxItems int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Paged says that more than one page may be read, so that a validator of one
// answer does not speak for all.
func (c Config) Paged() bool {
	switch c.Kind {
	case "youtube":
		return c.Pages != 1
	case "json":
		return c.Paging != nil && c.Pages != 1
	case "html":
		return c.Next != nil && c.Pages != 1 && c.Next.Max != 1
	}
	return false
}

// Page names one page of a feed.
type Page struct {
	Cursor string            // "" is the first; else an Answer's Next
	Params map[string]string // override the configured ones
}

// Answer is what a page held.
type Answer struct {
	Items []Item
	Next  string // the next page's cursor; "" is the end
	// Lossy says that bytes could not be decoded and were replaced.
	Lossy bool
	// Capped says that there were more items than MaxItems.
	Capped bool
	// Dropped counts entries that could not be told apart from others or had
	// nothing to know them by.
	Dropped int
}

// Source is one feed's way to ask and to read. It is safe for concurrent use.
type Source interface {
	// Request builds the request for a page. An error means that the
	// parameters can never work.
	Request(p Page) (fetch.Request, error)
	// Read reads an answer to a request of this source; its errors are
	// *AnswerError.
	Read(resp *fetch.Response) (Answer, error)
	// Host is the target's host, with its port where that is not the scheme's.
	Host() string
}

const defaultMaxItems = 2000

var kinds = map[string]func(Config) (Source, error){
	"html":        newHTML,
	"json":        newJSON,
	"push":        newPush,
	"syndication": newSyndication,
	"youtube":     newYouTube,
}

// Kinds names the kinds of source, sorted.
func Kinds() []string {
	out := make([]string, 0, len(kinds))
	for k := range kinds {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// New makes a source. The error joins every fault of the Config.
func New(c Config) (Source, error) {
	build, ok := kinds[c.Kind]
	if !ok {
		return nil, fmt.Errorf("source: kind %q is not known; it is one of %s", c.Kind, strings.Join(Kinds(), ", "))
	}
	if c.MaxItems <= 0 {
		c.MaxItems = defaultMaxItems
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s, err := build(c)
	rule, banErr := newBanRule(c.Ban)
	if err := errors.Join(err, banErr); err != nil {
		return nil, fmt.Errorf("source: %s: %w", c.Kind, err)
	}
	return &watched{Source: s, ban: rule, secrets: secretsOf(c), now: c.Now}, nil
}

// unused names the fields that are set though the kind does not take them.
func unused(c Config, takes ...string) []error {
	var out []error
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"ban", c.Ban != nil},
		{"base_url", c.BaseURL != ""},
		{"headers", len(c.Headers) > 0},
		{"items", c.Items != ""},
		{"key", c.Key != ""},
		{"map", len(c.Map) > 0},
		{"method", c.Method != ""},
		{"next", c.Next != nil},
		{"paging", c.Paging != nil},
		{"params", len(c.Params) > 0},
		{"url", c.URL != ""},
	} {
		if f.set && !slices.Contains(takes, f.name) {
			out = append(out, fmt.Errorf("%s is not used by this kind of source", f.name))
		}
	}
	return out
}

// parseURL reads a configured URL. The error quotes nothing of it.
func parseURL(name, raw string) (*url.URL, error) {
	if raw == "" {
		return nil, fmt.Errorf("%s is missing", name)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be parsed; it should look like https://host/path", name)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s should begin with https:// or http://", name)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%s has no host", name)
	}
	return u, nil
}

func hostOf(u *url.URL) string {
	h := strings.ToLower(u.Host)
	for scheme, p := range map[string]string{"http": ":80", "https": ":443"} {
		if u.Scheme == scheme {
			h = strings.TrimSuffix(h, p)
		}
	}
	return h
}

// headers gives the configured headers, and whether one of them may hold a
// secret: any that is not known to hold none.
func headers(c Config, accept string) (h http.Header, secret bool) {
	h = http.Header{}
	for name, v := range c.Headers {
		h.Set(name, v)
		secret = secret || !plainHeader(name)
	}
	if h.Get("Accept") == "" {
		h.Set("Accept", accept)
	}
	return h, secret
}

// overridden lays a page's parameters over the configured ones.
func overridden(base, over map[string]string) map[string]string {
	out := make(map[string]string, len(base)+len(over))
	for k, v := range base {
		out[k] = v
	}
	for k, v := range over {
		out[k] = v
	}
	return out
}

// withParams lays parameters over a URL's query.
func withParams(u *url.URL, params map[string]string) *url.URL {
	v := *u
	if len(params) > 0 {
		q := v.Query()
		for k, val := range params {
			q.Set(k, val)
		}
		v.RawQuery = q.Encode()
	}
	return &v
}

// webLink resolves a link against base, and keeps it only if it is http or
// https: a page shows it as a link.
func webLink(base *url.URL, raw string) string {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return ""
	}
	u.User = nil
	return u.String()
}

var errOnePage = errors.New("this source has one page; pages must be 0 or 1")
