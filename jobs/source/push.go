package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"feedwarden/jobs/fetch"
)

// push is a feed that scripts fill: it asks nobody.
type push struct{}

// newPush reads nothing but Kind.
func newPush(c Config) (Source, error) {
	errs := unused(c)
	if c.Pages < 0 || c.Pages > 1 {
		errs = append(errs, errors.New("pages is not used by this kind of source"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return push{}, nil
}

var errPush = errors.New("source: push: this feed is filled by what is put into it, and never fetched")

// Request refuses: there is nobody to ask.
func (push) Request(Page) (fetch.Request, error) { return fetch.Request{}, errPush }

// Read refuses: no answer is of this source.
func (push) Read(*fetch.Response) (Answer, error) {
	return Answer{}, &AnswerError{Kind: Invalid, Err: errPush}
}

// Host is none.
func (push) Host() string { return "" }

// ReadPushed reads what a script puts into a push feed, by its form:
//
//   - items: a JSON array of them, {"items": [...]}, or one a line (NDJSON);
//   - any RSS, Atom, RDF or JSON Feed document.
//
// An item has id, url, title, published and fields, all optional but one of
// the first three or fields; rank and first_seen are taken and not used: rank
// is the place. Of c, MaxItems and Now count. An error is an *AnswerError of
// kind Invalid, NotAFeed or Truncated, and says where: the line and column, or
// the item. What is too much is refused, not cut.
func ReadPushed(contentType string, body []byte, c Config) (Answer, error) {
	if c.MaxItems <= 0 {
		c.MaxItems = defaultMaxItems
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	text, lossy := decodeText(body, contentType)
	a, err := readPushed(contentType, text, c)
	if err != nil {
		err.Keep(body, contentType)
		return Answer{}, err
	}
	a.Lossy = lossy
	return a, nil
}

func readPushed(contentType, text string, c Config) (Answer, *AnswerError) {
	trimmed := strings.TrimSpace(text)
	lines := slices.Contains([]string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json-seq"}, mediaType(contentType))
	switch {
	case trimmed == "":
		if lines {
			return Answer{}, nil
		}
		return Answer{}, invalid("nothing was put; an empty list is []")
	case lines:
		return pushedLines(text, c)
	case trimmed[0] == '<':
		return pushedFeed(c, func() ([]entry, bool, *AnswerError) { return readXMLFeed(trimmed, nil, c.MaxItems) })
	case trimmed[0] == '[':
		return pushedList(text, c)
	case trimmed[0] == '{':
		return pushedObject(text, c)
	}
	return Answer{}, notAFeed("neither JSON nor XML; want a list of items, an item a line, or a feed", text)
}

// pushedObject is {"items": [...]}, a JSON Feed, or the first of several lines.
func pushedObject(text string, c Config) (Answer, *AnswerError) {
	d := json.NewDecoder(strings.NewReader(text))
	var first map[string]json.RawMessage
	if err := d.Decode(&first); err != nil {
		return Answer{}, misread(err, text, 0)
	}
	items, wrapped := first["items"]
	version := ""
	_ = json.Unmarshal(first["version"], &version)
	if strings.Contains(version, "jsonfeed.org") {
		return pushedFeed(c, func() ([]entry, bool, *AnswerError) { return readJSONFeed(strings.TrimSpace(text), nil, c.MaxItems) })
	}
	if !wrapped {
		return pushedLines(text, c)
	}
	after := int(d.InputOffset())
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Answer{}, invalid("%s: something stands after the object with items", place(text, after))
	}
	if items[0] != '[' {
		return Answer{}, invalid("%s: items is no list", place(text, strings.Index(text, string(items))))
	}
	return pushedList(string(items), c)
}

// pushedList reads a JSON array.
func pushedList(text string, c Config) (Answer, *AnswerError) {
	var raws []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raws); err != nil {
		return Answer{}, misread(err, text, 0)
	}
	p := pushed{c: c}
	for i, raw := range raws {
		if failure := p.add(raw, fmt.Sprintf("item %d", i+1)); failure != nil {
			return Answer{}, failure
		}
	}
	return p.a, nil
}

// pushedLines reads one item a line; empty lines are passed over.
func pushedLines(text string, c Config) (Answer, *AnswerError) {
	p := pushed{c: c}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.Trim(line, " \t\r\n\x1e")
		if line == "" {
			continue
		}
		var raw json.RawMessage
		if err := json.Unmarshal([]byte(line), &raw); err != nil {
			failure := misread(err, line, n-1)
			if failure.Kind == Truncated {
				// A line that a line break ends is whole: the fault is in it.
				failure.Kind, failure.Reason = Invalid, fmt.Sprintf("line %d: the JSON stops in the middle", n)
			}
			return Answer{}, failure
		}
		if failure := p.add(raw, fmt.Sprintf("line %d", n)); failure != nil {
			return Answer{}, failure
		}
	}
	return p.a, nil
}

// pushedFeed reads a syndication document. It came from nowhere, so relative
// links lead nowhere.
func pushedFeed(c Config, read func() ([]entry, bool, *AnswerError)) (Answer, *AnswerError) {
	entries, capped, failure := read()
	if failure != nil {
		return Answer{}, failure
	}
	if capped {
		return Answer{}, tooMany(c.MaxItems)
	}
	return answerOf(entries, c.Now().UTC()), nil
}

// pushed gathers items.
type pushed struct {
	c  Config
	a  Answer
	n  int
	at map[string]string // where an ID stood
}

var pushedKeys = []string{"id", "url", "title", "published", "first_seen", "rank", "fields"}

func (p *pushed) add(raw json.RawMessage, where string) *AnswerError {
	if p.n++; p.n > p.c.MaxItems {
		return tooMany(p.c.MaxItems)
	}
	doc, failure := decodeJSON(string(raw))
	if failure != nil {
		return failure
	}
	o, ok := doc.(map[string]any)
	if !ok {
		return invalid("%s is no object; want {\"id\": …, \"url\": …, \"title\": …, \"published\": …, \"fields\": {…}}", where)
	}
	for k := range o {
		if !slices.Contains(pushedKeys, k) {
			return invalid("%s: an item has no %q; what is more than id, url, title and published goes into fields", where, clip(k))
		}
	}
	it := Item{Rank: len(p.a.Items) + 1, FirstSeen: p.c.Now().UTC(), Fields: map[string]any{}}
	for name, to := range map[string]*string{"id": &it.ID, "url": &it.URL, "title": &it.Title} {
		if v, given := o[name]; given && v != nil {
			if _, no := v.(bool); no || scalar(v) == "" && v != "" {
				return invalid("%s: %s should be a text", where, name)
			}
			*to = scalar(v)
		}
	}
	if raw := it.URL; raw != "" {
		if it.URL = webLink(nil, raw); it.URL == "" {
			return invalid("%s: url should begin with https:// or http://", where)
		}
	}
	if v := o["published"]; v != nil && v != "" {
		if it.Published = looseInstant(v); it.Published == nil {
			return invalid("%s: published is no instant; want 2026-11-30T08:00:00Z or null", where)
		}
	}
	if v := o["fields"]; v != nil {
		fields, ok := v.(map[string]any)
		if !ok {
			return invalid("%s: fields should be an object", where)
		}
		it.Fields = fields
	}
	if it.ID+it.URL+it.Title == "" && len(it.Fields) == 0 {
		return invalid("%s is empty; want an id, a url, a title or fields", where)
	}
	it.Title = oneLine(it.Title)
	if it.ID == "" {
		it.ID = it.URL
	}
	if it.ID == "" {
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return invalid("%s: %v", where, err)
		}
		it.ID = contentID(compact.String())
	}
	it.ID = boundedID(it.ID)
	if p.at == nil {
		p.at = map[string]string{}
	}
	if first, twice := p.at[it.ID]; twice {
		return invalid("%s has the same id as %s, %q", where, first, clip(it.ID))
	}
	p.at[it.ID] = where
	p.a.Items = append(p.a.Items, it)
	return nil
}

func invalid(format string, args ...any) *AnswerError {
	return &AnswerError{Kind: Invalid, Reason: fmt.Sprintf(format, args...)}
}

func tooMany(most int) *AnswerError {
	return invalid("more than %d items; a feed holds no more", most)
}

// misread is a fault of JSON's syntax in a text before which so many lines stand.
func misread(err error, text string, lines int) *AnswerError {
	var syntax *json.SyntaxError
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.As(err, &syntax) && syntax.Offset >= int64(len(text)) && strings.Contains(syntax.Error(), "unexpected end") {
		return &AnswerError{Kind: Truncated, Reason: "the JSON stops in the middle, in " + placeAfter(text, len(text), lines)}
	}
	if errors.As(err, &syntax) {
		return invalid("%s: not JSON: %s", placeAfter(text, int(syntax.Offset)-1, lines), snippet(syntax.Error()))
	}
	return invalid("not JSON: %s", snippet(err.Error()))
}

// place is an offset for a person.
func place(text string, at int) string { return placeAfter(text, at, 0) }

func placeAfter(text string, at, lines int) string {
	at = max(0, min(at, len(text)))
	line := before(text, at)
	return fmt.Sprintf("line %d, column %d", lines+line+1, at-strings.LastIndexByte(text[:at], '\n'))
}

// before is how many line breaks stand before an offset.
func before(text string, at int) int {
	return strings.Count(text[:max(0, min(at, len(text)))], "\n")
}
