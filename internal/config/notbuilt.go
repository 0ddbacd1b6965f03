package config

import (
	"fmt"
	"slices"
)

// unbuilt is a documented key, or some of its values, that this version can
// not do yet. `*` stands for a name or a place in a list.
type unbuilt struct {
	key  string
	when func(f *fields, n *node) bool // nil: whatever the value
	want string                        // what to write meanwhile
}

// notBuilt is all that is documented and not built. A feature that comes takes
// its row away.
var notBuilt = []unbuilt{
	{"web.base_path", anyBut("/"), "want / until then"},
	{"web.tls.cert", anyBut(""), "a proxy in front can do TLS"},
	{"web.tls.key", anyBut(""), "a proxy in front can do TLS"},
}

func anyBut(value string) func(*fields, *node) bool {
	return func(_ *fields, n *node) bool { return n.kind == scalar && n.text() != value }
}

// builtWords leaves out the values that are not built.
func builtWords(p path, words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return slices.ContainsFunc(notBuilt, func(row unbuilt) bool {
			return row.key == p.pattern && row.when != nil && row.when(nil, &node{kind: scalar, parts: []part{{text: w}}})
		})
	})
}

// checkBuilt reports a key or a value of the table.
func (d *decoder) checkBuilt(f *fields, p path, e entry) {
	if d.allBuilt {
		return
	}
	for _, row := range notBuilt {
		if row.key != p.pattern {
			continue
		}
		at, what := e.pos, p.shown
		if row.when != nil {
			if !row.when(f, e.value) {
				continue
			}
			at = e.value.pos
			what += ": " + quote(e.value.shown())
		}
		d.note(Fault{
			Line: at.Line, Col: at.Col,
			Problem: fmt.Sprintf("%s is %v", what, ErrNotBuilt), Want: row.want, Err: ErrNotBuilt,
		})
	}
}
