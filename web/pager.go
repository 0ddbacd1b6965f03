package web

import (
	"fmt"
	"strconv"
)

// pager leads from page to page of a long list; empty where it is not long.
type pager struct {
	Of            string // what is paged
	Before, After string // links
	Says          string
}

// turn gives page n of a list, made into rows, and the way to its neighbours. A
// page beyond the end is the last.
func turn[T, R any](all []T, n int, of string, row func(T) R) ([]R, pager) {
	last := max((len(all)+perPage-1)/perPage, 1)
	n = min(n, last)
	from, to := (n-1)*perPage, min(n*perPage, len(all))
	rows := make([]R, 0, to-from)
	for _, v := range all[from:to] {
		rows = append(rows, row(v))
	}
	p := pager{Of: of, Says: fmt.Sprintf("%d to %d of %d", from+1, to, len(all))}
	link := func(n int) string { return "?" + of + "=" + strconv.Itoa(n) + "#" + of }
	if n > 1 {
		p.Before = link(n - 1)
	}
	if n < last {
		p.After = link(n + 1)
	}
	return rows, p
}
