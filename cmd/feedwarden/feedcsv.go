package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"feedwarden/jobs/source"
)

// writeCSV has a column for every field that any item has, those of all items first.
func writeCSV(e *env, items []source.Item) error {
	fixed := []string{"id", "url", "title", "published", "first_seen", "rank"}
	extra := map[string]bool{}
	for _, it := range items {
		for k := range it.Fields {
			extra[k] = true
		}
	}
	var names []string
	for k := range extra {
		names = append(names, k)
	}
	slices.Sort(names)
	w := csv.NewWriter(e.out)
	if err := w.Write(append(fixed, names...)); err != nil {
		return err
	}
	for _, it := range items {
		published := ""
		if it.Published != nil {
			published = it.Published.UTC().Format(time.RFC3339)
		}
		row := []string{it.ID, it.URL, it.Title, published, it.FirstSeen.UTC().Format(time.RFC3339), strconv.Itoa(it.Rank)}
		for _, k := range names {
			row = append(row, cell(it.Fields[k]))
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// cell writes one field into a table of texts: plain values as they are, the
// rest as JSON.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
