package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedwarden/internal/units"
)

// query is a request's query: the names that its route knows, each once.
type query map[string]string

// readQuery refuses names that the route does not know: a slip would answer
// another question than the one asked.
func readQuery(r *http.Request, known ...string) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badQuery("the query cannot be read: percent-encode it")
	}
	q := query{}
	for name, v := range values {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				return nil, badQuery(fmt.Sprintf("%q: no parameter is known here", name))
			}
			return nil, badQuery(fmt.Sprintf("%q is not known; known are %s", name, strings.Join(known, ", ")))
		}
		if len(v) > 1 {
			return nil, badQuery(name + " stands more than once")
		}
		q[name] = v[0]
	}
	return q, nil
}

func badQuery(detail string) *Problem { return problem(http.StatusBadRequest, "invalid-query", detail) }

// number reads a whole number from 1 to high; other where it is not given.
func (q query) number(name string, other, high int) (int, error) {
	text, ok := q[name]
	if !ok || text == "" {
		return other, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > high {
		return 0, badQuery(fmt.Sprintf("%s %q: a whole number from 1 to %d is wanted", name, text, high))
	}
	return n, nil
}

// duration reads a duration, cut at most; 0 where it is not given.
func (q query) duration(name string, most time.Duration) (time.Duration, error) {
	text, ok := q[name]
	if !ok || text == "" {
		return 0, nil
	}
	d, err := units.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, badQuery(fmt.Sprintf("%s %q: a duration such as 10s is wanted", name, text))
	}
	return min(d, most), nil
}
