package config

import (
	"fmt"
	"strconv"

	"feedwarden/jobs/source"
)

// mostPages is how many pages a list may be followed for.
const mostPages = 400

// pagesOfALink is how many pages of a json source are read where the file does
// not say how many, and the paging has no number of its own.
const pagesOfALink = 10

// pages reads how many pages are read at most.
func (r *feedReader) pages(f *fields, to *Feed) {
	if to.Paging != nil {
		to.Pages = pagesOfALink
		if n := to.Paging.Page; n != nil {
			to.Pages = max(n.Max, 1)
		}
	}
	if e := f.have["pages"]; e.value != nil && e.value.kind == scalar && e.value.text() == "all" {
		f.node("pages")
		to.Pages = 0
	} else {
		whole(f, "pages", &to.Pages, 1, 100_000)
	}
	if to.Paging != nil && to.Paging.Page != nil && (to.Pages == 0 || to.Pages > to.Paging.Page.Max) {
		to.Pages = max(to.Paging.Page.Max, 1)
	}
	if to.Source == "json" && to.Pages != 1 && !f.has("paging") {
		r.fault(f.pos("pages"), fmt.Sprintf("%s: a json source without paging has one page", f.path.key("pages")), "want paging, or no pages")
	}
}

// paging reads the way to a json source's next page.
func (r *feedReader) paging(n *node, p path) *Paging {
	if n == nil {
		return nil
	}
	var g Paging
	f := r.section(n, p, n.pos)
	if page := f.node("page"); page != nil {
		g.Page = &PageNumbers{From: 1}
		one := r.section(page, p.key("page"), page.pos)
		whole(one, "from", &g.Page.From, 0, 1_000_000)
		whole(one, "max", &g.Page.Max, 1, mostPages)
		if !one.has("max") && page.kind != scalar {
			r.fault(page.pos, fmt.Sprintf("%s has no max", p.key("page")), "want {from: 1, max: 5}")
		}
		one.done(nil)
	}
	f.text("next", &g.Next)
	f.text("cursor", &g.Cursor)
	f.text("param", &g.Param)
	f.flag("link_header", &g.LinkHeader)
	f.done(nil)
	ways := 0
	for _, given := range []bool{f.has("page"), f.has("next"), f.has("cursor"), f.has("link_header")} {
		if given {
			ways++
		}
	}
	if ways != 1 && (n.kind == mapping || n.kind == nothing) {
		r.fault(n.pos, fmt.Sprintf("%s names %d ways", p, ways), "want one of page, next, cursor and link_header")
	}
	if f.has("cursor") != f.has("param") {
		r.fault(n.pos, fmt.Sprintf("%s has one of cursor and param", p), "want both: {cursor: .next, param: after}")
	}
	return &g
}

// next reads the link that a html source follows.
func (r *feedReader) next(n *node, p path) *NextPage {
	if n == nil {
		return nil
	}
	var g NextPage
	f := r.section(n, p, n.pos)
	f.text("css", &g.CSS)
	whole(f, "max", &g.Max, 1, mostPages)
	f.done(nil)
	if n.kind != scalar && n.kind != list && (!f.has("css") || !f.has("max")) {
		r.fault(n.pos, fmt.Sprintf("%s lacks css or max", p), `want {css: "a.next@href", max: 3}`)
	}
	return &g
}

// ban reads the signs of a target's ban page.
func (r *feedReader) ban(n *node, p path) *source.BanSigns {
	if n == nil {
		return nil
	}
	var b source.BanSigns
	f := r.section(n, p, n.pos)
	f.text("css", &b.CSS)
	f.text("text", &b.Text)
	const want = "want a status such as 403, or a list of them"
	status := f.node("status")
	items := []*node{status}
	if status == nil {
		items = nil
	} else if status.kind == list {
		items = f.list("status", want)
	}
	for _, item := range items {
		one := r.scalarOf(item, p.key("status"), want)
		if one == nil {
			continue
		}
		code, err := strconv.Atoi(one.text())
		if err != nil || code < 200 || code > 599 {
			r.bad(one, p.key("status"), "is no status", want)
			continue
		}
		b.Status = append(b.Status, code)
	}
	f.done(nil)
	if (n.kind == mapping || n.kind == nothing) && !f.has("css") && !f.has("text") && !f.has("status") {
		r.fault(n.pos, fmt.Sprintf("%s names no sign", p), `want one or more of css, text and status: {text: "unusual traffic", status: [403]}`)
	}
	return &b
}
