// Package object reads what JSON objects of people and programs say more than
// encoding/json does.
package object

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Twice finds a name that an object has twice: which of its values is meant, nobody
// knows. Names are the same in any case, as encoding/json takes them; "" where none
// is, or where b is no object.
func Twice(b []byte) string {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return ""
		}
		if key := strings.ToLower(name); seen[key] {
			return name
		} else if seen[key] = true; dec.Decode(new(json.RawMessage)) != nil {
			return ""
		}
	}
	return ""
}
