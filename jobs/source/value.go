package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// decodeJSON reads one JSON value. Whole numbers stay exact: an ID may be
// longer than a float holds.
func decodeJSON(text string) (any, *AnswerError) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var doc any
	err := d.Decode(&doc)
	switch {
	case err == nil:
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return nil, notAFeed("more than one JSON value", text)
		}
		return exact(doc), nil
	case strings.TrimSpace(text) == "":
		return nil, notAFeed("an empty answer", "")
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return nil, &AnswerError{Kind: Truncated, Reason: "the JSON stops in the middle"}
	}
	return nil, notAFeed("not JSON", text)
}

// exact turns numbers into the types that jq computes with, in place.
func exact(v any) any {
	switch x := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(string(x)); err == nil {
			return n
		}
		if n, ok := new(big.Int).SetString(string(x), 10); ok && len(x) < 400 {
			return n
		}
		f, err := x.Float64()
		if err != nil {
			return string(x)
		}
		return f
	case []any:
		for i := range x {
			x[i] = exact(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = exact(x[k])
		}
	}
	return v
}

// scalar is a value as a text: strings, numbers and booleans.
func scalar(v any) string {
	switch x := v.(type) {
	case string:
		return strings.TrimSpace(x)
	case int, bool:
		return fmt.Sprint(x)
	case *big.Int:
		return x.String()
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return ""
}

// looseInstant reads what APIs and pages write as a time: RFC 3339 with its
// shorter forms (HTML's datetime among them), HTTP and mail dates, a day with
// its month's English name, seconds or milliseconds since 1970. Without a zone
// it is UTC.
func looseInstant(v any) *time.Time {
	var t time.Time
	switch x := v.(type) {
	case int:
		t = epoch(float64(x))
	case float64:
		t = epoch(x)
	case string:
		t = dated(strings.TrimSpace(x))
	}
	return sane(&t)
}

func dated(s string) time.Time {
	if t, ok := civil(s); ok {
		return t
	}
	for _, layout := range []string{
		"2006-01-02", "2006/01/02", time.RFC1123, time.ANSIC, "2 January 2006", "January 2, 2006", "2 Jan 2006", "Jan 2, 2006",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && len(s) >= 9 {
		return epoch(n)
	}
	return time.Time{}
}

// epoch takes a number for seconds, or for milliseconds when it would lie
// beyond the year 5000.
func epoch(n float64) time.Time {
	const year5000 = 95617584000
	if n > year5000 {
		n /= 1000
	}
	if !(n > 0 && n <= year5000) {
		return time.Time{}
	}
	return time.UnixMilli(int64(n * 1000))
}

// storable is a value as JSON can hold it: jq knows numbers that JSON does not.
func storable(v any) any {
	switch x := v.(type) {
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	case []any:
		for i := range x {
			x[i] = storable(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = storable(x[k])
		}
	}
	return v
}

// contentID names an item by what it holds.
func contentID(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:16])
}

// boundedID keeps an ID short enough for a key.
func boundedID(id string) string {
	if len(id) > 512 {
		return contentID(id)
	}
	return id
}
