package web

import (
	"fmt"
	"net/url"
	"strconv"
)

// pager leads from page to page of a long list; empty where it is not long.
type pager struct {
	Of            string // what is paged
	Before, After string // links
	Says          string
}

// turn gives page n of a list, made into rows, and the way to its neighbours. A
// page beyond the end is the last. keep is what else the links carry.
func turn[T, R any](all []T, n, size int, of string, keep url.Values, row func(T) R) ([]R, pager) {
	last := max((len(all)+size-1)/size, 1)
	n = min(n, last)
	from, to := (n-1)*size, min(n*size, len(all))
	rows := make([]R, 0, to-from)
	for _, v := range all[from:to] {
		rows = append(rows, row(v))
	}
	p := pager{Of: of, Says: fmt.Sprintf("%s to %s of %s", grouped(int64(from+1)), grouped(int64(to)), grouped(int64(len(all))))}
	if n > 1 {
		p.Before = pageLink(keep, "page", strconv.Itoa(n-1))
	}
	if n < last {
		p.After = pageLink(keep, "page", strconv.Itoa(n+1))
	}
	return rows, p
}

// pageLink is a link to the same page with one more parameter.
func pageLink(keep url.Values, name, value string) string {
	q := url.Values{}
	for k, v := range keep {
		if len(v) > 0 && v[0] != "" {
			q[k] = v
		}
	}
	if q.Del(name); value != "" {
		q.Set(name, value)
	}
	return "?" + q.Encode()
}
