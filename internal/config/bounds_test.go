package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Files that are made to hurt end in faults, soon.
func TestHostileFilesEndSoon(t *testing.T) {
	const mega = 1 << 17
	bomb := "a0: &a0 [x, x]\n"
	for i := 1; i < 60; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1)
	}
	var merges, wide strings.Builder
	wide.WriteString("web: &w {")
	for i := range 2000 {
		fmt.Fprintf(&wide, "k%d: 1, ", i)
	}
	wide.WriteString("}\n")
	merges.WriteString(wide.String() + "feeds:\n")
	shared := wide.String() + "feeds:\n"
	for i := range 400 {
		fmt.Fprintf(&merges, "  f%d: {<<: *w}\n", i)
		shared += fmt.Sprintf("  f%d: *w\n", i)
	}
	for name, c := range map[string]struct{ src, want string }{
		"flow lists in each other":       {"web: " + strings.Repeat("[", mega), "nested too deep"},
		"flow mappings in each other":    {"web: " + strings.Repeat("{a: ", mega/4), "nested too deep"},
		"closed ones":                    {"web: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested too deep"},
		"dashes in each other":           {strings.Repeat("- ", mega/2) + "x", "nested too deep"},
		"question marks":                 {strings.Repeat("? ", mega/2) + "x", "nested too deep"},
		"tags":                           {"web: " + strings.Repeat("!a ", mega/3), "nested too deep"},
		"anchors":                        {"web: " + strings.Repeat("&a ", mega/3), "nested too deep"},
		"indentation":                    {indented(1000), "nested too deep"},
		"a mapping of very many keys":    {manyKeys(25_000), "too many lines in one block"},
		"blocks of many keys each":       {"a:\n" + indent(manyKeys(15_000)) + "b:\n" + indent(manyKeys(15_000)) + "c:\n" + indent(manyKeys(15_000)), "too many lines in one block"},
		"an alias bomb":                  {bomb + "web: *a59\n", "unknown key"},
		"an alias bomb where lists go":   {bomb + "web: {hosts: *a59}\n", "is a list"},
		"merge keys of a wide mapping":   {merges.String(), "too large once its merge keys are followed"},
		"a wide mapping under each name": {shared, "too large once its aliases are followed"},
		"each that multiplies":           {"feeds:\n  a: {source: syndication, url: \"https://example.org/\", each: {" + dimensions(12) + "}}\n", "makes too many feeds"},
		"each of a long text":            {"feeds:\n  a: {source: syndication, url: \"https://example.org/" + strings.Repeat("x", mega) + "\", each: {" + dimensions(3) + "}}\n", "makes too many feeds"},
		"a long key":                     {strings.Repeat("k", mega) + ": 1", "unknown key"},
		"a long text":                    {"web: {listen: \"" + strings.Repeat("k", mega) + "\"}", "is no address"},
		"very many faults":               {"web: {" + strings.Repeat("a: 1, ", 20_000) + "}", "19000 more faults are not shown"},
		"colons":                         {"web: " + strings.Repeat(":", mega), "YAML"},
		"many documents":                 {strings.Repeat("---\n", 10_000), "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse("f.yaml", []byte(c.src), nothingSet)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %.300v, want …%s…", err, c.want)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if len(fmt.Sprint(err)) > 1<<20 {
				t.Errorf("the error has %d bytes", len(fmt.Sprint(err)))
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d:\n", i)
	}
	return b.String()
}

func indent(s string) string {
	return " " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n ") + "\n"
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func dimensions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "d%d: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ", i)
	}
	return b.String()
}

// A file of as many feeds as a person can have loads in a few seconds.
func TestALargeFileLoads(t *testing.T) {
	var b strings.Builder
	b.WriteString("feeds:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  f%d:\n    source: syndication\n    url: https://example.org/%d\n    schedule: \"*/15 * * * *\"\n    timezone: Asia/Dhaka\n    each: {x: [a, b, c]}\n", i, i)
	}
	f := mustParse(t, b.String())
	if len(f.Feeds) != 3000 {
		t.Errorf("%d feeds, want 3000", len(f.Feeds))
	}
}
