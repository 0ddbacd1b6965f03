package web

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is openapi.yaml as a test reads it: closed, so that a field which the
// document does not have is a fault.
type document struct {
	root     map[string]any
	compiler *jsonschema.Compiler

	mu      sync.Mutex
	schemas map[string]*jsonschema.Schema
}

// operation is one method on one path of it.
type operation struct {
	doc          *document
	method, path string
	at           string // JSON pointer
	body         map[string]any
}

var readDocument = sync.OnceValues(func() (*document, error) {
	text, err := loadOpenAPI("")
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text.json))
	if err != nil {
		return nil, err
	}
	d := &document{root: v.(map[string]any), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	d.inlineAllOf(d.root)
	closeObjects(d.root, false)
	d.compiler.AssertFormat()
	return d, d.compiler.AddResource("openapi.json", d.root)
})

func apiDocument(t testing.TB) *document {
	t.Helper()
	d, err := readDocument()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// inlineAllOf puts a copy where an allOf refers: what is closed there must stay
// open here.
func (d *document) inlineAllOf(v any) {
	switch v := v.(type) {
	case map[string]any:
		if all, ok := v["allOf"].([]any); ok {
			for i := range all {
				all[i] = maps.Clone(d.deref(all[i].(map[string]any)))
			}
		}
		for _, e := range v {
			d.inlineAllOf(e)
		}
	case []any:
		for _, e := range v {
			d.inlineAllOf(e)
		}
	}
}

func closeObjects(v any, open bool) {
	switch v := v.(type) {
	case map[string]any:
		_, has := v["properties"].(map[string]any)
		if _, said := v["additionalProperties"]; has && !said && !open {
			v["unevaluatedProperties"] = false
		}
		for k, e := range v {
			closeObjects(e, k == "allOf")
		}
	case []any:
		for _, e := range v {
			closeObjects(e, open)
		}
	}
}

// deref follows a $ref within the document.
func (d *document) deref(v map[string]any) map[string]any {
	ref, ok := v["$ref"].(string)
	if !ok {
		return v
	}
	var at any = d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[part]
	}
	return at.(map[string]any)
}

func (d *document) operations() []operation {
	var all []operation
	paths := d.root["paths"].(map[string]any)
	for _, path := range sortedKeys(paths) {
		item := paths[path].(map[string]any)
		for _, method := range []string{get, put, post, del} {
			if body, ok := item[strings.ToLower(method)].(map[string]any); ok {
				at := "/paths/" + strings.ReplaceAll(path, "/", "~1") + "/" + strings.ToLower(method)
				all = append(all, operation{doc: d, method: method, path: path, at: at, body: body})
			}
		}
	}
	return all
}

func (d *document) operation(name string) (operation, bool) {
	for _, op := range d.operations() {
		if op.name() == name {
			return op, true
		}
	}
	return operation{}, false
}

// match finds the operation of a request's path.
func (d *document) match(method, path string) (operation, bool) {
	got := strings.Split(path, "/")
	var best operation
	for _, op := range d.operations() {
		want := strings.Split(op.path, "/")
		fits := op.method == method && len(want) == len(got)
		for i := 0; fits && i < len(want); i++ {
			fits = want[i] == got[i] || strings.HasPrefix(want[i], "{") && got[i] != ""
		}
		if fits && (best.doc == nil || !strings.Contains(op.path, "{")) {
			best = op
		}
	}
	return best, best.doc != nil
}

func (o operation) name() string { return o.method + " " + o.path }

func (o operation) text(key string) string {
	s, _ := o.body[key].(string)
	return s
}

func (o operation) queryNames() []string {
	var names []string
	list, _ := o.body["parameters"].([]any)
	for _, p := range list {
		if p := o.doc.deref(p.(map[string]any)); p["in"] == "query" {
			names = append(names, p["name"].(string))
		}
	}
	return names
}

func (o operation) checkRequest(kind string, body []byte) error {
	request, ok := o.body["requestBody"].(map[string]any)
	if !ok {
		return errors.New("no body is documented")
	}
	return o.doc.checkContent(request, o.at+"/requestBody", kind, body)
}

// checkAnswer holds a whole answer against what is documented for its status.
func (o operation) checkAnswer(status int, header http.Header, body []byte) error {
	responses := o.body["responses"].(map[string]any)
	key := strconv.Itoa(status)
	if _, ok := responses[key]; !ok {
		if key = "default"; status < 400 {
			return fmt.Errorf("status %d is not documented", status)
		}
	}
	response := responses[key].(map[string]any)
	at := o.at + "/responses/" + key
	if ref, ok := response["$ref"].(string); ok {
		response, at = o.doc.deref(response), strings.TrimPrefix(ref, "#")
	}
	if _, ok := response["content"]; !ok {
		return nil
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		if n, err := strconv.Atoi(header.Get("Retry-After")); err != nil || n < 1 {
			return fmt.Errorf("Retry-After %q: whole seconds are documented", header.Get("Retry-After"))
		}
	}
	return o.doc.checkContent(response, at, contentKind(header), body)
}

func (d *document) checkContent(of map[string]any, at, kind string, body []byte) error {
	content := of["content"].(map[string]any)
	if _, ok := content[kind]; !ok {
		if _, any := content["*/*"]; any && kind != problemType {
			return nil
		}
		return fmt.Errorf("media type %q is not documented, but %q", kind, sortedKeys(content))
	}
	if _, ok := content[kind].(map[string]any)["schema"]; !ok || kind == yamlType {
		return nil
	}
	schema, err := d.schema(at + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema")
	if err != nil {
		return err
	}
	texts := [][]byte{body}
	if kind == ndjsonType {
		texts = bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	}
	for _, text := range texts {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		if err := schema.Validate(v); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.schemas[pointer]; ok {
		return s, nil
	}
	s, err := d.compiler.Compile("openapi.json#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
	if err == nil {
		d.schemas[pointer] = s
	}
	return s, err
}
