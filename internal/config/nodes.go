package config

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

type kind int

const (
	nothing kind = iota // null, or a key with no value
	scalar
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"empty", "a single value", "a list", "a mapping"}[k]
}

// node is a value of the file, its aliases followed and its environment filled
// in. An anchor's node is shared by all that name it, so nodes form a graph
// without cycles and cost no more than the text did.
type node struct {
	kind    kind
	pos     Pos
	parts   []part // of a scalar
	shape   shape
	broken  bool // a variable of it could not be filled in, or an alias followed, which is reported
	items   []*node
	entries []entry
}

// shape is how a scalar was written.
type shape int

const (
	plain shape = iota
	quoted
	number // digits, perhaps with a point
	boolean
)

type entry struct {
	key   string
	pos   Pos
	value *node
}

// builder makes nodes of the parser's tree.
type builder struct {
	d       *decoder
	cols    columns
	anchors map[string]*node
	open    map[string]bool // anchors whose value is being built
	merged  int             // entries copied by merge keys
}

func (b *builder) build(n ast.Node, depth int) *node {
	if n == nil {
		return &node{pos: Pos{1, 1}}
	}
	pos := b.cols.start(n)
	if depth > maxDepth {
		b.d.fault(pos, "nested too deep", fmt.Sprintf("want at most %d levels", maxDepth))
		return &node{pos: pos}
	}
	switch x := n.(type) {
	case *ast.NullNode:
		return &node{pos: pos}
	case *ast.BoolNode:
		return b.scalar(x.Token.Value, boolean, pos)
	case *ast.IntegerNode, *ast.FloatNode:
		return b.scalar(n.GetToken().Value, number, pos)
	case *ast.InfinityNode, *ast.NanNode:
		return b.scalar(n.GetToken().Value, plain, pos)
	case *ast.StringNode:
		how := plain
		if x.Token.Type == token.SingleQuoteType || x.Token.Type == token.DoubleQuoteType {
			how = quoted
		}
		return b.scalar(x.Value, how, pos)
	case *ast.LiteralNode:
		return b.scalar(x.Value.Value, quoted, b.cols.pos(x.Start))
	case *ast.SequenceNode:
		out := &node{kind: list, pos: pos}
		for i, v := range x.Values {
			item := b.build(v, depth+1)
			if item.kind == nothing && !x.IsFlowStyle && i < len(x.Entries) { // it stands where its dash does
				item = &node{pos: b.cols.pos(x.Entries[i].Start), broken: item.broken}
			}
			out.items = append(out.items, item)
		}
		return out
	case *ast.MappingNode:
		return b.mapping(x.Values, pos, depth)
	case *ast.MappingValueNode:
		return b.mapping([]*ast.MappingValueNode{x}, b.cols.pos(x.Key.GetToken()), depth)
	case *ast.AnchorNode:
		return b.anchor(x, depth)
	case *ast.AliasNode:
		return b.alias(x)
	case *ast.TagNode:
		return b.tagged(x, depth)
	}
	b.d.fault(pos, "this is no value that a config file can have", "")
	return &node{pos: pos}
}

func (b *builder) scalar(text string, how shape, pos Pos) *node {
	parts, ok := b.d.expand(text, pos)
	return &node{kind: scalar, pos: pos, shape: how, parts: parts, broken: !ok}
}

// tagged reads !!str; other tags have no use in this file.
func (b *builder) tagged(x *ast.TagNode, depth int) *node {
	out := b.build(x.Value, depth+1)
	if tag := x.GetToken().Value; tag != "!!str" || out.kind != scalar {
		b.d.fault(b.cols.pos(x.GetToken()), fmt.Sprintf("the tag %s", tag), "want no tag: write the value alone")
		return out
	}
	asText := *out
	asText.shape = quoted
	return &asText
}

func (b *builder) anchor(x *ast.AnchorNode, depth int) *node {
	name := x.Name.GetToken().Value
	outer := b.open[name]
	b.open[name] = true
	out := b.build(x.Value, depth+1)
	b.open[name] = outer
	b.anchors[name] = out
	return out
}

func (b *builder) alias(x *ast.AliasNode) *node {
	name := x.Value.GetToken().Value
	pos := b.cols.pos(x.GetToken())
	if b.open[name] {
		b.d.fault(pos, fmt.Sprintf("*%s stands inside what it names", clip(name)), "")
		return &node{pos: pos, broken: true}
	}
	if out, ok := b.anchors[name]; ok {
		return out
	}
	names := make([]string, 0, len(b.anchors))
	for n := range b.anchors {
		names = append(names, n)
	}
	want := fmt.Sprintf("want an anchor &%s before it, or quotes if the text starts with a *", clip(name))
	if n := near(name, names); n != "" {
		want = fmt.Sprintf("did you mean *%s?", n)
	}
	b.d.fault(pos, fmt.Sprintf("*%s names no anchor", clip(name)), want)
	return &node{pos: pos, broken: true}
}

func (b *builder) mapping(values []*ast.MappingValueNode, pos Pos, depth int) *node {
	out := &node{kind: mapping, pos: pos}
	seen := make(map[string]Pos, len(values))
	var merges []*node
	for _, v := range values {
		key, keyPos, ok := b.key(v.Key, depth)
		value := b.build(v.Value, depth+1)
		if !ok {
			continue
		}
		if key == "<<" && v.Key.IsMergeKey() {
			merges = append(merges, value)
			continue
		}
		if first, twice := seen[key]; twice {
			b.d.fault(keyPos, fmt.Sprintf("key %s is given twice", quote(key)), fmt.Sprintf("it stands at line %d already", first.Line))
			continue
		}
		seen[key] = keyPos
		if value.kind == nothing {
			value = &node{pos: keyPos, broken: value.broken}
		}
		out.entries = append(out.entries, entry{key: key, pos: keyPos, value: value})
	}
	for _, m := range merges {
		b.merge(out, m, seen)
	}
	return out
}

// maxMerged bounds what merge keys may copy.
const maxMerged = 200_000

// merge adds the entries of a `<<` value that the mapping does not have itself.
func (b *builder) merge(into, from *node, seen map[string]Pos) {
	switch from.kind {
	case list:
		for _, item := range from.items {
			if item.kind == list {
				b.d.fault(item.pos, "a list of lists under <<", "want mappings to merge")
				return
			}
			b.merge(into, item, seen)
		}
	case mapping:
		if b.merged += len(from.entries); b.merged > maxMerged {
			b.d.fault(from.pos, "the file is too large once its merge keys are followed", "")
			return
		}
		for _, e := range from.entries {
			if _, have := seen[e.key]; !have {
				seen[e.key] = e.pos
				into.entries = append(into.entries, e)
			}
		}
	default:
		b.d.fault(from.pos, "<< is given "+from.kind.String(), "want a mapping to merge, such as *name")
	}
}

// key is a mapping's key as text. The environment has no say in keys.
func (b *builder) key(k ast.Node, depth int) (string, Pos, bool) {
	pos := b.cols.pos(k.GetToken())
	switch x := k.(type) {
	case *ast.MappingKeyNode:
		if x.Value == nil || depth > maxDepth {
			break
		}
		return b.key(x.Value, depth+1)
	case *ast.AnchorNode:
		if inner, ok := x.Value.(ast.MapKeyNode); ok && depth <= maxDepth {
			return b.key(inner, depth+1)
		}
	case *ast.StringNode:
		return x.Value, pos, true
	case *ast.MergeKeyNode:
		return "<<", pos, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return k.GetToken().Value, pos, true
	}
	b.d.fault(pos, "a key that is no plain text", "want a name before the colon")
	return "", pos, false
}

// text is the scalar's whole text, the environment filled in.
func (n *node) text() string {
	if len(n.parts) == 1 {
		return n.parts[0].text
	}
	var b strings.Builder
	for _, p := range n.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// shown is the scalar as the file has it.
func (n *node) shown() string {
	var b strings.Builder
	for _, p := range n.parts {
		b.WriteString(p.shown())
	}
	return b.String()
}

// mayHoldKeys tells that keys can be missing from the node: nothing else is wrong
// with it.
func (n *node) mayHoldKeys() bool { return n.kind == mapping || n.kind == nothing && !n.broken }

// fromEnv tells that a part of the scalar came from the environment.
func (n *node) fromEnv() bool {
	for _, p := range n.parts {
		if p.env != "" {
			return true
		}
	}
	return false
}
