package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Whatever the bytes: no panic, no hang, and an error is always a Faults whose
// places are in the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "../../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	for _, c := range readCases(f) {
		f.Add([]byte(c.yaml))
	}
	for _, s := range []string{
		"a: &a\n  <<: *a\n", "? \n: ", "- - - {a: [", "a: |2-\n   x\n", "\"\\x41\": '", "%YAML 1.2\n---\n...\n", "a: !!str\n", "&a : *a", "<<: [*x]\n",
		"feeds: {a: {each: {x: [${}]}}}", "web: {tokens: [&t {name: a}, *t, {<<: *t}]}", "web:\n tokens:\n    -", "\t", "a:\r\tb: {\r", "- a: 1\n- a", "a: \"\\", "a\n  <<:<<:\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		start := time.Now()
		file, err := Parse("f.yaml", src, canaries)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if err == nil {
			_ = file.Effective()
			return
		}
		var faults Faults
		if !errors.As(err, &faults) || len(faults) == 0 || file != nil {
			t.Fatalf("error is %#v", err)
		}
		text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(src), "\xef\xbb\xbf"))
		lines := strings.Split(text, "\n")
		for _, one := range faults {
			if one.Problem == "" || (one.Line > 0) != (one.Col > 0) {
				t.Errorf("fault %+v", one)
			}
			if one.Line > len(lines) || one.Line > 0 && one.Col > utf8.RuneCountInString(lines[one.Line-1])+1 {
				t.Errorf("fault %v is not in the file", one)
			}
		}
	})
}
