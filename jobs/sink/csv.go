package sink

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"feedwarden/jobs/source"
)

// csvFixed are the columns that every table has, in this order.
var csvFixed = []string{"id", "url", "title", "published", "first_seen", "rank"}

// WriteCSV writes items as RFC 4180 has it: CRLF, a header, quotes where they
// are needed. After the fixed columns comes one for every field that any item
// has, by name: an object's parts are columns of their own (stats.views), a
// list is JSON. A field that is called like a fixed column is fields.NAME.
// A text that a spreadsheet would run as a formula begins with an apostrophe.
func WriteCSV(w io.Writer, items []source.Item) error {
	rows := make([]map[string]string, len(items))
	all := map[string]bool{}
	for i, it := range items {
		rows[i] = map[string]string{}
		flatten(rows[i], "", it.Fields)
		for name := range rows[i] {
			all[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(all))
	head := slices.Clone(csvFixed)
	for _, n := range names {
		if slices.Contains(csvFixed, n) {
			n = "fields." + n
		}
		head = append(head, safe(n))
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(head); err != nil {
		return err
	}
	for i, it := range items {
		published := ""
		if it.Published != nil {
			published = it.Published.UTC().Format(time.RFC3339)
		}
		row := []string{safe(it.ID), safe(it.URL), safe(it.Title), published, it.FirstSeen.UTC().Format(time.RFC3339), strconv.Itoa(it.Rank)}
		for _, n := range names {
			row = append(row, rows[i][n])
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// flatten puts a value into a row: an object by its parts.
func flatten(row map[string]string, name string, v any) {
	switch v := v.(type) {
	case nil:
		row[name] = ""
	case string:
		row[name] = safe(v)
	case float64:
		// None is written as 1e+21.
		if v == math.Trunc(v) && math.Abs(v) < 1e21 {
			row[name] = strconv.FormatFloat(v, 'f', -1, 64)
		} else {
			row[name] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	case map[string]any:
		if len(v) == 0 && name != "" {
			row[name] = ""
		}
		// In their order: two paths may spell one column, and the same one wins each time.
		for _, part := range slices.Sorted(maps.Keys(v)) {
			path := part
			if name != "" {
				path = name + "." + part
			}
			flatten(row, path, v[part])
		}
	default:
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte(fmt.Sprint(v))
		}
		row[name] = safe(string(b))
	}
}

// safe keeps a spreadsheet from running a stranger's text: one that begins with
// = + - @, a tab or a CR gets an apostrophe before it, a plain number does not.
func safe(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
