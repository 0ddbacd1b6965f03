package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// part is a piece of a scalar: as written, or what a variable held.
type part struct {
	text string
	env  string // the variable's name, or "" for text of the file
}

func (p part) shown() string {
	if p.env != "" {
		return "${" + p.env + "}"
	}
	return strings.ReplaceAll(p.text, "${", "$${")
}

// scrub takes what variables held out of another package's complaint about a
// value: it may quote one, whole or cut short.
func (d *decoder) scrub(complaint string) string {
	const telling = 8 // shorter ones are in too many words
	for _, name := range slices.Sorted(maps.Keys(d.env)) {
		value := d.env[name]
		if len(value) < telling {
			continue
		}
		var out strings.Builder
		for {
			before, after, found := strings.Cut(complaint, value[:telling])
			out.WriteString(before)
			if !found {
				break
			}
			out.WriteString("${" + name + "}")
			for _, b := range []byte(value[telling:]) {
				if after == "" || after[0] != b {
					break
				}
				after = after[1:]
			}
			complaint = after
		}
		complaint = out.String()
	}
	return complaint
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand cuts a scalar at its ${NAME}; $${ stands for a literal ${. What can
// not be filled in is reported, and ok is false.
func (d *decoder) expand(text string, pos Pos) (parts []part, ok bool) {
	if !strings.Contains(text, "${") {
		return []part{{text: text}}, true
	}
	ok = true
	wrong := func(problem, want string) {
		d.fault(pos, problem, want)
		ok = false
	}
	literal := func(s string) {
		if n := len(parts); n > 0 && parts[n-1].env == "" {
			parts[n-1].text += s
		} else if s != "" {
			parts = append(parts, part{text: s})
		}
	}
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			literal(text)
			break
		}
		if strings.HasSuffix(before, "$") {
			literal(before + "{")
			text = after
			continue
		}
		literal(before)
		name, rest, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			wrong("${ without its }", "want ${NAME}; a literal ${ is written $${")
			return []part{{text: text}}, false
		case !variable.MatchString(name):
			wrong(fmt.Sprintf("%s is no variable's name", quote("${"+name+"}")), "want ${NAME} of letters, digits and _; a literal ${ is written $${")
			literal("${" + name + "}")
		default:
			value, set := d.getenv(name)
			if !set {
				wrong(fmt.Sprintf("${%s} is not set", name), fmt.Sprintf("set the environment variable %s", name))
				d.unset = true
			}
			d.env[name] = value
			parts = append(parts, part{text: value, env: name})
		}
		text = rest
	}
	if len(parts) == 0 {
		parts = []part{{}}
	}
	return parts, ok
}

// placeholder is {name} in a URL, a parameter or a header of a feed with `each`.
// The brace of a literal ${ opens none.
var placeholder = regexp.MustCompile(`\$?\{([A-Za-z_][A-Za-z0-9_-]*)\}`)

// checkPlaceholders notes each {name} that neither `each` nor the feed's paging
// defines, and marks those that are used.
func (d *decoder) checkPlaceholders(n *node, where path, dims []dimension, paging []string, used map[string]bool) {
	for _, p := range n.parts {
		if p.env != "" {
			continue
		}
		for _, m := range placeholder.FindAllStringSubmatch(p.text, -1) {
			name := m[1]
			if m[0][0] == '$' {
				continue
			}
			if slices.ContainsFunc(dims, func(x dimension) bool { return x.name == name }) {
				used[name] = true
				continue
			}
			if slices.Contains(paging, name) {
				continue
			}
			names := slices.Clone(paging)
			for _, x := range dims {
				names = append(names, x.name)
			}
			want := fmt.Sprintf("define it: each: {%s: […]}", name)
			if near := near(name, names); near != "" {
				want = fmt.Sprintf("did you mean {%s}?", near)
			}
			d.fault(n.pos, fmt.Sprintf("%s: nothing defines {%s}", where, name), want)
		}
	}
}

// render is a scalar for one feed of an expansion: placeholders replaced in
// what the file says, and in nothing that the environment held.
func render(n *node, each map[string]string) (text, shown string) {
	var t, s strings.Builder
	for _, p := range n.parts {
		if p.env != "" {
			t.WriteString(p.text)
			s.WriteString(p.shown())
			continue
		}
		t.WriteString(fillIn(p.text, each))
		s.WriteString(fillIn(p.shown(), each))
	}
	return t.String(), s.String()
}

// fillIn replaces the placeholders that have a value.
func fillIn(text string, each map[string]string) string {
	if len(each) == 0 || !strings.Contains(text, "{") {
		return text
	}
	return placeholder.ReplaceAllStringFunc(text, func(m string) string {
		if v, ok := each[m[1:len(m)-1]]; ok && m[0] == '{' {
			return v
		}
		return m
	})
}
