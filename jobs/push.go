package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
)

// Put is content that a script hands over for a feed of source push.
type Put struct {
	ContentType string // "" is known by the content
	Body        []byte
	// Onto is the version that it is to follow: ErrMoved where another is the
	// newest. Nil follows whatever stands; 0 only nothing.
	Onto *int64
	// AllowEmpty takes a list without items for a feed that had some.
	AllowEmpty bool
}

// Pushed says what became of it.
type Pushed struct {
	Feed    string `json:"feed"`
	Version int64  `json:"version"`
	New     bool   `json:"new"` // false: the same as before, whose age is renewed
	Items   int    `json:"items"`
	First   bool   `json:"-"` // the feed was empty
}

// ErrMoved says that another version is the newest than was thought.
var ErrMoved = errors.New("jobs: another version is the newest by now")

// NotPushedError says of a feed that its source is another than push.
type NotPushedError struct{ Feed, Source string }

func (e *NotPushedError) Error() string {
	return fmt.Sprintf("feed %s is fetched from its source, %s; only a feed of source push takes content", e.Feed, e.Source)
}

// EmptyPutError says that a list without items was put where there were some.
type EmptyPutError struct {
	Feed  string
	Items int
}

func (e *EmptyPutError) Error() string {
	return fmt.Sprintf("an empty list for feed %s, which has items (%d): say so where that is meant", e.Feed, e.Items)
}

// Push stores content as the newest version of a push feed: it is fresh for
// the feed's ttl, and the same again renews that. Errors: *UnknownFeedError,
// *NotPushedError, *source.AnswerError for content that cannot be read,
// *EmptyPutError, ErrMoved.
func (c *Client) Push(ctx context.Context, name string, p Put) (Pushed, error) {
	f, err := c.Feed(name)
	if err != nil {
		return Pushed{}, err
	}
	if !f.Pushed() {
		return Pushed{}, &NotPushedError{Feed: name, Source: f.Source.Kind}
	}
	ans, err := source.ReadPushed(p.ContentType, p.Body, f.Source)
	if err != nil {
		return Pushed{}, err
	}
	content := feed.Content{Items: ans.Items, Raw: [][]byte{p.Body}, ContentType: p.ContentType, Lossy: ans.Lossy}
	if content.ContentType == "" {
		content.ContentType = typeOf(p.Body)
	}
	for range pushTries {
		pushed, older, err := c.push(ctx, f, p, content)
		if err != nil || !older {
			return pushed, err
		}
	}
	return Pushed{}, fmt.Errorf("jobs: put into %q: %w", name, errPushedBefore)
}

// pushTries is how often content is put that others were quicker than.
const pushTries = 100

var errPushedBefore = errors.New("the newest version is of a later instant than Redis's clock says it is now")

// push puts content once. older: another has put some since this one began, and
// nothing was stored; whoever puts content was told to follow what stands.
func (c *Client) push(ctx context.Context, f Feed, p Put, content feed.Content) (pushed Pushed, older bool, err error) {
	key := feed.Key(f.Name, nil)
	// Redis's clock orders what several writers put.
	now, err := c.rdb.Time(ctx).Result()
	if err != nil {
		return Pushed{}, false, fmt.Errorf("jobs: put into %q: %w", f.Name, err)
	}
	head, err := c.store.Head(ctx, key)
	if err != nil {
		return Pushed{}, false, err
	}
	if p.Onto != nil && *p.Onto != head.Version {
		return Pushed{}, false, ErrMoved
	}
	if len(content.Items) == 0 && head.Items > 0 && !p.AllowEmpty {
		return Pushed{}, false, &EmptyPutError{Feed: f.Name, Items: head.Items}
	}
	put := c.store.Put
	if p.Onto != nil {
		put = c.store.PutOnto
	}
	st, err := put(ctx, head, now, now, content, f.History)
	switch {
	case errors.Is(err, feed.ErrMoved), err == nil && st.Older && p.Onto != nil:
		return Pushed{}, false, ErrMoved
	case err != nil:
		return Pushed{}, false, err
	}
	return Pushed{Feed: f.Name, Version: st.Version, New: st.New, Items: len(content.Items), First: head.Empty() && st.New}, st.Older, nil
}

// typeOf names the type of content that came without one.
func typeOf(body []byte) string {
	if strings.HasPrefix(strings.TrimSpace(strings.TrimPrefix(string(body[:min(len(body), 512)]), "\ufeff")), "<") {
		return "application/xml"
	}
	return "application/json"
}
