package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// chart is columns over time, stacked by series, drawn as one path a series. It
// holds no text: labels stand around it, where they keep their size on a phone.
type chart struct {
	ID     string
	Says   string // what it shows, in a sentence
	Width  int
	Height int
	Top    string // what the upper edge stands for
	Series []series
	Guides []guide
	Now    float64  // where the present stands; 0: nowhere
	Axis   []string // evenly spaced beneath
	Table  table
}

// series is one colour of a chart.
type series struct {
	Name   string
	Class  string // s0 … s7, muted, unnamed
	Path   string
	Total  string
	Coming string // beside Total: what is ahead
}

// guide is a level across a chart.
type guide struct {
	Y     float64
	Class string
	Says  string
}

// table is a chart for reading.
type table struct {
	Caption string
	Head    []string
	Rows    [][]string
}

// seriesInColour is how many series have a colour; the rest are summed up.
const seriesInColour = 7

const chartHeight = 100

// columns lays columns of several series on one another. Values are by series and
// column; most is the upper edge.
func columns(values [][]int64, most float64) []string {
	paths := make([]string, len(values))
	if most <= 0 {
		return paths
	}
	n := 0
	for _, v := range values {
		n = max(n, len(v))
	}
	builders := make([]strings.Builder, len(values))
	for i := range n {
		var below int64
		for k, v := range values {
			if i >= len(v) || v[i] <= 0 {
				continue
			}
			top, bottom := level(below+v[i], most), level(below, most)
			below += v[i]
			if bottom-top >= 0.05 {
				column(&builders[k], i, top, bottom-top)
			}
		}
	}
	for k := range builders {
		paths[k] = builders[k].String()
	}
	return paths
}

// columnWidth leaves a gap between columns, which are ten wide.
const (
	columnStep  = 10
	columnWidth = 8
)

func column(b *strings.Builder, i int, y, h float64) {
	fmt.Fprintf(b, "M%d %sh%dv%sh-%dz", i*columnStep+1, short(y), columnWidth, short(h), columnWidth)
}

// level is where a value stands, from the upper edge down.
func level(v int64, most float64) float64 {
	return chartHeight - min(float64(v)/most, 1)*chartHeight
}

func short(f float64) string {
	return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64)
}

// curve is a line through values, one a column, and the area beneath it.
func curve(values []int64, from int, most float64) (line, area string) {
	if len(values) == 0 || most <= 0 {
		return "", ""
	}
	var b strings.Builder
	for i, v := range values {
		sign := "L"
		if i == 0 {
			sign = "M"
		}
		fmt.Fprintf(&b, "%s%d %s", sign, (from+i)*columnStep, short(level(v, most)))
	}
	line = b.String()
	return line, line + fmt.Sprintf("V%dH%dz", chartHeight, from*columnStep)
}

// roundUp is a number at or above v that reads well.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if m*step >= v && (m*step == math.Trunc(m*step)) {
			return m * step
		}
	}
	return math.Ceil(v)
}
