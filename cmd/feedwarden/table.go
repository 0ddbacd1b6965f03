package main

import (
	"fmt"
	"slices"
	"strings"
)

// table collects rows for a person, or prints objects for a program: a command
// adds both and env.json decides.
type table struct {
	e      *env
	header []string
	cells  [][]string
	rows   int
	empty  string   // what to say, on standard error, when there is no row
	spare  []string // columns that may go unseen where there is no room
}

func (e *env) table(empty string, header ...string) *table {
	return &table{e: e, header: header, empty: empty}
}

// add writes one object as a JSON line, or keeps its cells as a row.
func (t *table) add(object any, cells ...string) error {
	t.rows++
	if t.e.json {
		return t.e.line(object)
	}
	for i := range cells {
		cells[i] = oneLine(cells[i])
	}
	t.cells = append(t.cells, cells)
	return nil
}

func (t *table) flush() error {
	if t.rows == 0 && !t.e.json {
		fmt.Fprintln(t.e.errOut, t.empty)
	}
	if len(t.cells) == 0 {
		return nil
	}
	_, err := fmt.Fprint(t.e.out, newGrid(t.header, t.cells, t.e.width, t.spare...).String())
	return err
}

const (
	gutter   = 2
	leastEnd = 32 // columns that a last column of long texts is cut down to before another way is found
	leastTop = 16 // columns that are left to the first one before another way is found
)

// grid lays rows out in a width. What does not fit is brought in, in this
// order, by cutting a long last column, by leaving out columns that say nothing
// or are to spare, by giving long names a line of their own, and by moving the last columns under
// their row. So a name, which somebody will type, is never cut, and nothing that
// says something goes unseen.
type grid struct {
	header []string
	rows   [][]string
	spare  []string
	width  int // 0: without end
	shown  []int
	under  []int // columns that stand below their row
	wide   []int // by column
	top    int   // width of the first column; a longer cell has a line of its own
	end    int   // width of the last shown column
}

func newGrid(header []string, rows [][]string, width int, spare ...string) *grid {
	g := &grid{header: header, rows: rows, spare: spare, width: width, wide: make([]int, len(header))}
	for i, name := range header {
		g.shown = append(g.shown, i)
		g.wide[i] = columns(name)
		for _, row := range rows {
			g.wide[i] = max(g.wide[i], columns(row[i]))
		}
	}
	for !g.fits() {
		if i := g.silent(); i > 0 {
			g.shown = slices.Delete(g.shown, i, i+1)
			continue
		}
		if g.breaks() {
			break
		}
		last := len(g.shown) - 1
		g.under = append([]int{g.shown[last]}, g.under...)
		g.shown = g.shown[:last]
	}
	return g
}

// others is the width of all shown columns but the first, with gutters.
func (g *grid) others(end int) int {
	sum := 0
	for n, i := range g.shown[1:] {
		w := g.wide[i]
		if n == len(g.shown)-2 {
			w = min(w, end)
		}
		sum += gutter + w
	}
	return sum
}

// fits says whether the shown columns have room, the last one cut if need be.
func (g *grid) fits() bool {
	g.top, g.end = g.wide[g.shown[0]], g.wide[g.shown[len(g.shown)-1]]
	if g.width <= 0 || len(g.shown) == 1 {
		return true
	}
	room := g.width - g.top - g.others(0) // for the last one
	g.end = min(g.end, room)
	return g.end == g.wide[g.shown[len(g.shown)-1]] || g.end >= leastEnd
}

// silent is the last shown column that says nothing in any row or is to spare; 0
// when there is none.
func (g *grid) silent() int {
	for n := len(g.shown) - 1; n > 0; n-- {
		if slices.Contains(g.spare, g.header[g.shown[n]]) || !slices.ContainsFunc(g.rows, func(row []string) bool { return says(row[g.shown[n]]) }) {
			return n
		}
	}
	return 0
}

func says(cell string) bool { return cell != "" && cell != "—" && cell != "0" }

// breaks gives the long ones of the first column a line of their own, where they
// are the exception.
func (g *grid) breaks() bool {
	room := g.width - g.others(leastEnd)
	if room < max(leastTop, columns(g.header[0])) {
		return false
	}
	long, top := 0, columns(g.header[0])
	for _, row := range g.rows {
		if w := columns(row[0]); w > room {
			long++
		} else {
			top = max(top, w)
		}
	}
	if 2*long > len(g.rows) && len(g.rows) > 1 {
		return false
	}
	g.top, g.end = top, min(g.wide[g.shown[len(g.shown)-1]], g.width-top-g.others(0))
	return true
}

func (g *grid) String() string {
	var b strings.Builder
	g.line(&b, g.header)
	for _, row := range g.rows {
		if columns(row[0]) > g.top {
			fmt.Fprintln(&b, row[0])
			row = append([]string{""}, row[1:]...)
		}
		g.line(&b, row)
		g.below(&b, row)
	}
	return b.String()
}

func (g *grid) line(b *strings.Builder, row []string) {
	var line strings.Builder
	for n, i := range g.shown {
		cell, w := row[i], g.wide[i]
		switch n {
		case 0:
			w = g.top
		case len(g.shown) - 1:
			cell = clip(cell, g.end)
		}
		line.WriteString(cell)
		line.WriteString(strings.Repeat(" ", max(w-columns(cell), 0)+gutter))
	}
	fmt.Fprintln(b, strings.TrimRight(line.String(), " "))
}

// below writes what of a row has no column, with its names, as many to a line as
// have room.
func (g *grid) below(b *strings.Builder, row []string) {
	const indent = "    "
	line := ""
	end := func() {
		if line != "" {
			fmt.Fprintln(b, indent+clip(line, g.width-len(indent)))
		}
		line = ""
	}
	for _, i := range g.under {
		if !says(row[i]) {
			continue
		}
		part := strings.ToLower(g.header[i]) + " " + row[i]
		if line != "" && len(indent)+columns(line)+gutter+min(columns(part), leastEnd) > g.width {
			end()
		}
		if line != "" {
			line += strings.Repeat(" ", gutter)
		}
		line += part
	}
	end()
}
