package source

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bucket is a budget that a provider keeps: so many units a calendar day of
// its zone.
type Bucket struct {
	Name  string // DefaultBucket, or the one method that is charged to it
	Limit int64
	Zone  string
}

// DefaultBucket is the one that the methods without a bucket of their own share.
const DefaultBucket = "default"

//go:embed youtube_costs.tsv
var costData string

type preset struct {
	buckets []Bucket
	costs   map[string]cost
}

type cost struct {
	bucket string
	units  int64
}

var presets = mustCosts(costData)

// Cost is what one request of a method takes, and from which bucket, under a
// preset ("youtube-2026-06", "youtube-legacy"). Every page costs anew, an
// invalid request and a 304 as much as any.
func Cost(preset, method string) (bucket string, units int64, ok bool) {
	c, ok := presets[preset].costs[method]
	return c.bucket, c.units, ok
}

// Presets names the cost tables, sorted.
func Presets() []string {
	out := make([]string, 0, len(presets))
	for name := range presets {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Buckets are a preset's budgets, in the table's order; nil for one that is
// not known.
func Buckets(preset string) []Bucket { return slices.Clone(presets[preset].buckets) }

// Methods are the methods that a preset knows, sorted.
func Methods(preset string) []string {
	var out []string
	for m := range presets[preset].costs {
		out = append(out, m)
	}
	slices.Sort(out)
	return out
}

// mustCosts reads the embedded table; a fault in it is a fault of the build.
func mustCosts(data string) map[string]preset {
	out := map[string]preset{}
	for i, line := range strings.Split(data, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			panic(fmt.Sprintf("youtube_costs.tsv:%d: five columns are needed", i+1))
		}
		n, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil || n < 1 {
			panic(fmt.Sprintf("youtube_costs.tsv:%d: %q is not a number of units", i+1, f[3]))
		}
		p := out[f[1]]
		switch f[0] {
		case "bucket":
			p.buckets = append(p.buckets, Bucket{Name: f[2], Limit: n, Zone: f[4]})
		case "cost":
			if p.costs == nil {
				p.costs = map[string]cost{}
			}
			p.costs[f[2]] = cost{bucket: f[4], units: n}
		default:
			panic(fmt.Sprintf("youtube_costs.tsv:%d: a row is a bucket or a cost", i+1))
		}
		out[f[1]] = p
	}
	return out
}
