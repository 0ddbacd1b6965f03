package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"feedwarden/jobs/fetch"
)

const youtubeBase = "https://www.googleapis.com/youtube/v3"

// youtubeMethod is what this source knows of a method of the YouTube Data API.
type youtubeMethod struct {
	path string
	part string // asked for when the feed names none
	// oneOf are the parameters of which exactly one says what to list.
	oneOf []string
	// mostResults is the largest maxResults.
	mostResults int
}

var youtubeMethods = map[string]youtubeMethod{
	"videos.list":        {"videos", "snippet,contentDetails,statistics", []string{"chart", "id"}, 50},
	"search.list":        {"search", "snippet", nil, 50},
	"playlistItems.list": {"playlistItems", "snippet,contentDetails", []string{"playlistId", "id"}, 50},
	"channels.list":      {"channels", "snippet,contentDetails,statistics", []string{"id", "forHandle", "forUsername"}, 50},
}

// mostIDs is how many IDs one request may name.
const mostIDs = 50

// mostPages bounds a feed that is read to its end: no list of this API gives
// more than 20 000 entries.
const mostPages = 400

type youtube struct {
	c      Config
	method youtubeMethod
	base   *url.URL
}

// newYouTube reads Method, Key, BaseURL, Params, Headers and Pages.
func newYouTube(c Config) (Source, error) {
	errs := unused(c, "method", "key", "base_url", "params", "headers", "ban")
	m, ok := youtubeMethods[c.Method]
	if !ok {
		errs = append(errs, fmt.Errorf("method %q is not known; it is one of %s", c.Method,
			strings.Join(slices.Sorted(maps.Keys(youtubeMethods)), ", ")))
	}
	if c.BaseURL == "" {
		c.BaseURL = youtubeBase
	}
	base, err := parseURL("base_url", c.BaseURL)
	if err != nil {
		errs = append(errs, err)
	} else if base.RawQuery != "" || base.User != nil {
		errs = append(errs, errors.New("base_url should hold neither a query nor a user"))
	}
	switch {
	case c.Key == "":
		errs = append(errs, errors.New("key is missing; set it from the environment, as in key: \"${YOUTUBE_API_KEY}\""))
	case strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		errs = append(errs, errors.New("key holds a blank or a character that no key has"))
	}
	if c.Pages < 0 {
		errs = append(errs, errors.New("pages should be 1 or more, or 0 for all"))
	}
	if ok {
		errs = append(errs, m.check(c.Params)...)
		errs = append(errs, checkValues(c.Method, c.Params)...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &youtube{c: c, method: m, base: base}, nil
}

// check finds the faults of a request's parameters.
func (m youtubeMethod) check(params map[string]string) []error {
	var errs []error
	for _, p := range []string{"key", "access_token", "pageToken", "callback", "alt"} {
		if _, ok := params[p]; ok {
			errs = append(errs, fmt.Errorf("params.%s is set by the source itself", p))
		}
	}
	if m.oneOf != nil {
		n := 0
		for _, p := range m.oneOf {
			if params[p] != "" {
				n++
			}
		}
		if n != 1 {
			errs = append(errs, fmt.Errorf("params should name exactly one of %s; it names %d", strings.Join(m.oneOf, ", "), n))
		}
	}
	if v, ok := params["maxResults"]; ok {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > m.mostResults {
			errs = append(errs, fmt.Errorf("params.maxResults is %q; it should be 1 to %d", clip(v), m.mostResults))
		}
	}
	if n := strings.Count(params["id"], ",") + 1; n > mostIDs {
		errs = append(errs, fmt.Errorf("params.id names %d; one request takes %d at most", n, mostIDs))
	}
	return errs
}

func (y *youtube) Host() string { return hostOf(y.base) }

// Request gives the GET for a page, with the key in a header.
func (y *youtube) Request(p Page) (fetch.Request, error) {
	params := overridden(y.c.Params, p.Params)
	if err := errors.Join(append(y.method.check(params), checkValues(y.c.Method, params)...)...); err != nil {
		return fetch.Request{}, fmt.Errorf("source: youtube: %w", err)
	}
	if params["part"] == "" {
		params["part"] = y.method.part
	}
	at := parseCursor(p.Cursor)
	if at.token != "" {
		params["pageToken"] = at.token
	}
	h, _ := headers(y.c, "application/json")
	h.Set("X-Goog-Api-Key", y.c.Key)
	return fetch.Request{
		URL:    withParams(y.base.JoinPath(y.method.path), params).String(),
		Header: h,
		Keyed:  true,
		Label:  label(at, params["regionCode"]),
	}, nil
}

// cursor is a place in a list: the API's own token, and what has been before.
// Its text is "page.items.token", with "~mark" behind the items.
type cursor struct {
	page  int // pages before this one
	items int // items before this page
	token string
	// mark is the name of a token that was come by: that of the page whose
	// number is the last power of two from 2 on (Brent's way to find a cycle).
	mark string
}

func (c cursor) String() string {
	items := strconv.Itoa(c.items)
	if c.mark != "" {
		items += "~" + c.mark
	}
	return strconv.Itoa(c.page) + "." + items + "." + c.token
}

// after is the cursor of the next page; ok is false where it was come by before.
func (c cursor) after(items int, token string) (next cursor, ok bool) {
	next = cursor{c.page + 1, c.items + items, token, c.mark}
	if token == c.token || c.mark != "" && mark(token) == c.mark {
		return next, false
	}
	if next.page > 1 && next.page&(next.page-1) == 0 {
		next.mark = mark(token)
	}
	return next, true
}

func parseCursor(s string) cursor {
	if f := strings.SplitN(s, ".", 3); len(f) == 3 {
		page, err1 := strconv.Atoi(f[0])
		before, mark, _ := strings.Cut(f[1], "~")
		items, err2 := strconv.Atoi(before)
		if err1 == nil && err2 == nil && page >= 0 && items >= 0 && page < 1<<30 && items < 1<<30 {
			return cursor{page, items, f[2], mark}
		}
	}
	return cursor{token: s}
}

// label carries what Read must know of its request.
func label(c cursor, region string) string {
	return url.Values{"at": {c.String()}, "region": {region}}.Encode()
}

func readLabel(s string) (c cursor, region string) {
	v, err := url.ParseQuery(s)
	if err != nil {
		return cursor{}, ""
	}
	return parseCursor(v.Get("at")), v.Get("region")
}

// Read reads one page of a list.
func (y *youtube) Read(resp *fetch.Response) (Answer, error) {
	at, region := readLabel(resp.Label)
	if region == "" && resp.URL != nil {
		region = resp.URL.Query().Get("regionCode")
	}
	if region == "" {
		region = y.c.Params["regionCode"]
	}
	if resp.Status != http.StatusOK {
		return Answer{}, youtubeFailure(resp, y.c.Now())
	}
	list, lossy, failure := decodeYouTube(resp.Body)
	if failure != nil {
		return Answer{}, failure
	}
	a := Answer{Lossy: lossy}
	now := y.c.Now().UTC()
	seen := map[string]bool{}
	for _, raw := range list.Items {
		if len(a.Items) >= y.c.MaxItems {
			a.Capped = true
			break
		}
		var e youtubeEntry
		if json.Unmarshal(raw, &e) != nil {
			a.Dropped++
			continue
		}
		it, ok := e.item(region)
		if !ok || seen[it.ID] {
			a.Dropped++
			continue
		}
		seen[it.ID] = true
		it.Rank, it.FirstSeen = at.items+len(a.Items)+1, now
		a.Items = append(a.Items, it)
	}
	next := string(list.NextPageToken)
	if next == "" || y.c.Pages > 0 && at.page+1 >= y.c.Pages {
		return a, nil
	}
	further, ok := at.after(len(a.Items), next)
	if !ok {
		return Answer{}, roundAndRound()
	}
	if further.page >= mostPages {
		return Answer{}, endless()
	}
	a.Next = further.String()
	return a, nil
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
