package source

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// trail is where the reading of a list stands: what came before this page, and
// where this page is. It travels as the text of a cursor, from a page to the
// next and through a job that sleeps in between, and from a request to its
// answer in the Label.
type trail struct {
	pages int      // before this one
	items int      // before this page
	seen  []string // marks of the places, or of the pages, that came before
	at    string   // a link or the API's cursor; "" on the first page
}

// longestPlace bounds a link or cursor that an answer gives.
const longestPlace = 4096

func (t trail) String() string {
	return fmt.Sprintf("%d %d %s %s", t.pages, t.items, strings.Join(t.seen, ","), t.at)
}

func parseTrail(s string) (trail, error) {
	if s == "" {
		return trail{}, nil
	}
	f := strings.SplitN(s, " ", 4)
	if len(f) == 4 {
		pages, err1 := strconv.Atoi(f[0])
		items, err2 := strconv.Atoi(f[1])
		if err1 == nil && err2 == nil && pages >= 0 && items >= 0 && pages <= mostPages && items < 1<<30 {
			t := trail{pages: pages, items: items, at: f[3]}
			if f[2] != "" {
				t.seen = strings.Split(f[2], ",")
			}
			return t, nil
		}
	}
	return trail{}, fmt.Errorf("the cursor %q is none of this source", clip(s))
}

// mark is a short name of a place.
func mark(place string) string {
	h := sha256.Sum256([]byte(place))
	return base64.RawURLEncoding.EncodeToString(h[:9])
}

func (t trail) marked(place string) trail {
	if m := mark(place); !slices.Contains(t.seen, m) {
		t.seen = append(slices.Clone(t.seen), m)
	}
	return t
}

func (t trail) has(place string) bool { return slices.Contains(t.seen, mark(place)) }

// after is the trail one page further on.
func (t trail) after(items int, at string) trail {
	return trail{pages: t.pages + 1, items: t.items + items, seen: t.seen, at: at}
}

// placeOf is a link as it is compared: a fragment leads nowhere else.
func placeOf(u *url.URL) string {
	v := *u
	v.Fragment, v.RawFragment, v.User = "", "", nil
	return v.String()
}

// sameOrigin says that two URLs share scheme, host and port.
func sameOrigin(a, b *url.URL) bool {
	return a != nil && b != nil && a.Scheme == b.Scheme && hostOf(a) == hostOf(b)
}

// sameSite is sameOrigin, or the same host's way from http to https.
func sameSite(from, to *url.URL) bool {
	return sameOrigin(from, to) || from != nil && to != nil && from.Scheme == "http" && to.Scheme == "https" &&
		strings.EqualFold(from.Hostname(), to.Hostname()) && from.Port() == "" && to.Port() == ""
}

// elsewhere refuses a link of an answer.
func elsewhere(to *url.URL, why string) *AnswerError {
	return &AnswerError{Kind: Invalid, Reason: fmt.Sprintf("the next page's link leads to %s: %s", clip(to.Scheme+"://"+to.Host), why)}
}

// roundAndRound refuses a list whose pages lead back to where they began.
func roundAndRound() *AnswerError {
	return &AnswerError{Kind: Truncated, Reason: "the list has no end: its pages go round"}
}

// endless refuses a list that is to be read to its end, and has none.
func endless() *AnswerError {
	return &AnswerError{Kind: Truncated, Reason: fmt.Sprintf("the list did not end within %d pages", mostPages)}
}
