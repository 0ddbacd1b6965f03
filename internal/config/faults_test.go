package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// environment is what tests find in their environment.
var environment = map[string]string{
	"WORD":  "canary-word-from-the-environment",
	"LINES": "canary\nlines",

	"STRUCTURE": "x: y, z",
	"BRACES":    "{x}",
	"N":         "7",
	"YES":       "true",
	"AGAIN":     "${N}",
}

func getenv(name string) (string, bool) {
	v, ok := environment[name]
	return v, ok
}

// Each case is a file and the places of all its faults. What they say is in
// testdata/faults.golden, which a person reads.
func TestEachFaultIsReportedAtItsPlace(t *testing.T) {
	cases := readCases(t)
	golden := readGolden(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.yaml), getenv)
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("error is %v, want Faults", err)
			}
			var places []string
			for _, f := range faults {
				places = append(places, fmt.Sprintf("%d:%d", f.Line, f.Col))
			}
			if got, want := strings.Join(places, " "), strings.Join(c.places, " "); got != want {
				t.Errorf("faults at %s, want %s:\n%v", got, want, err)
			}
			if got := err.Error(); got != golden[c.name] {
				t.Errorf("it says\n%s\nwant\n%s", got, golden[c.name])
			}
			if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a fault quotes what it must not:\n%v", err)
			}
		})
	}
}

type faultCase struct {
	name, yaml string
	places     []string
}

func readCases(t testing.TB) []faultCase {
	t.Helper()
	src, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	var cases []faultCase
	for _, block := range strings.Split(string(src), "=== ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		c := faultCase{name: name}
		for line := range strings.Lines(rest) {
			if place, ok := strings.CutPrefix(line, "--- "); ok {
				c.places = append(c.places, strings.TrimSpace(place))
			} else {
				c.yaml += line
			}
		}
		cases = append(cases, c)
	}
	return cases
}

func readGolden(t *testing.T) map[string]string {
	t.Helper()
	src, err := os.ReadFile("testdata/faults.golden")
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]string{}
	for _, block := range strings.Split(string(src), "=== ")[1:] {
		name, text, _ := strings.Cut(block, "\n")
		golden[name] = strings.TrimSuffix(text, "\n")
	}
	return golden
}
