package source

import (
	"time"
)

// identify names each entry: by its guid, where that tells it from the others;
// else by its link; else by its content. Two entries may get one name: then
// they are the same entry, given twice. "" has nothing to be known by.
func identify(entries []entry) []string {
	guids, links := map[string][]int{}, map[string][]int{}
	hashes := make([]string, len(entries))
	for i, e := range entries {
		hashes[i] = e.hash()
		if e.guid != "" {
			guids[e.guid] = append(guids[e.guid], i)
		}
		if e.link != "" {
			links[e.link] = append(links[e.link], i)
		}
	}
	sameContent := func(group []int) bool {
		for _, i := range group {
			if hashes[i] != hashes[group[0]] {
				return false
			}
		}
		return true
	}
	sameLink := func(group []int) bool {
		for _, i := range group {
			if entries[i].link == "" || entries[i].link != entries[group[0]].link {
				return false
			}
		}
		return true
	}
	out := make([]string, len(entries))
	for i, e := range entries {
		g, l := guids[e.guid], links[e.link]
		switch {
		// A guid that every entry of the feed has names none of them.
		case len(g) == 1, len(g) > 1 && sameContent(g), len(g) > 1 && len(g) < len(entries) && sameLink(g):
			out[i] = boundedID(e.guid)
		case len(l) == 1, len(l) > 1 && sameContent(l):
			out[i] = boundedID(e.link)
		default:
			out[i] = hashes[i]
		}
	}
	return out
}

// hash names an entry by its content; "" when it has none.
func (e entry) hash() string {
	if e.guid+e.link+e.title+e.summary+e.content == "" && len(e.enclosures) == 0 {
		return ""
	}
	published := ""
	if e.published != nil {
		published = e.published.Format(time.RFC3339)
	}
	first := ""
	if len(e.enclosures) > 0 {
		if m, ok := e.enclosures[0].(map[string]any); ok {
			first, _ = m["url"].(string)
		}
	}
	return contentID(e.title, e.link, published, e.summary, e.content, first)
}
