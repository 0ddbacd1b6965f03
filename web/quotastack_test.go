package web

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/quota"
)

// foretold is what is to come, whatever was.
type foretold map[string][]FeedUnits

func (f foretold) Forecast(_ context.Context, _ map[string][]Point, from time.Time, span, slot time.Duration) (*Forecast, error) {
	out := &Forecast{From: from, To: from.Add(span), Slot: slot}
	for name, feeds := range f {
		q := QuotaForecast{Name: name, Feeds: feeds}
		for _, u := range feeds {
			q.Needed, q.Granted, q.Ticks = q.Needed+u.Units, q.Granted+u.Units, q.Ticks+len(u.Slots)
		}
		out.Quotas = append(out.Quotas, q)
	}
	return out, nil
}

// always is a feed that will take so many units each quarter of an hour.
func always(feed string, units int64) FeedUnits {
	return FeedUnits{Feed: feed, Units: 96 * units, Slots: slices.Repeat([]int64{units}, 96)}
}

// charted is a world with one quota, what it was charged in quarters of an hour
// that are over, so many ago, and what is to come to it.
func charted(t *testing.T, ahead []FeedUnits, past map[int][]quota.Request) *world {
	t.Helper()
	configs := []quota.Config{{Name: "q", Windows: []quota.Window{{Limit: quota.MaxLimit, Per: time.Hour}}}}
	now := time.Now()
	w := newWorld(t, func(_ *Config, p *Parts, _ *pace) {
		var err error
		if p.Quotas, err = quota.New(p.Redis, configs, quota.WithClock(func() time.Time { return now })); err != nil {
			t.Fatal(err)
		}
		if ahead != nil {
			p.Forecast = foretold{"q": ahead}
		}
	})
	at := now
	l, err := quota.New(w.rdb, configs, quota.WithClock(func() time.Time { return at }))
	if err != nil {
		t.Fatal(err)
	}
	for ago := 95; ago >= 0; ago-- {
		at = now.Add(-time.Duration(ago) * 15 * time.Minute)
		for i := range past[ago] {
			past[ago][i].Quota, past[ago][i].ID = "q", fmt.Sprint("past-", ago, "-", i)
		}
		for _, a := range l.ChargeAll(t.Context(), past[ago]) {
			if a.Err != nil || !a.Granted {
				t.Fatalf("%+v", a)
			}
		}
	}
	return w
}

var (
	legendOf = regexp.MustCompile(`<li class="([a-z0-9]+)">([^<]*) <b>([^<]*)</b>(?: \+ ([^<]*))?</li>`)
	pathOf   = regexp.MustCompile(`<path class="([a-z0-9]+)" d="([^"]*)"`)
	columnOf = regexp.MustCompile(`M(\d+) [\d.]+h8v`)
	rowOf    = regexp.MustCompile(`<tr><th scope="row">([^<]*)</th>((?:<td class="num">[^<]*</td>)*)</tr>`)
)

// timeline is the quota's page taken apart: the legend by class, of which columns
// each class has one, and the rows of the tables.
func timeline(t *testing.T, w *world) (page string, legend map[string]string, columns map[string][]string, rows [][]string) {
	t.Helper()
	rec := w.get("/quotas/q", "Accept", "text/html")
	w.wantStatus(rec, 200)
	page, legend, columns = rec.Body.String(), map[string]string{}, map[string][]string{}
	units, _, _ := strings.Cut(page[strings.Index(page, `id="p-units"`):], `class="next"`)
	for _, m := range legendOf.FindAllStringSubmatch(units, -1) {
		legend[m[1]] = strings.Join(m[2:], "|")
	}
	for _, m := range pathOf.FindAllStringSubmatch(units, -1) {
		for _, c := range columnOf.FindAllStringSubmatch(m[2], -1) {
			columns[m[1]] = append(columns[m[1]], c[1])
		}
	}
	for _, m := range rowOf.FindAllStringSubmatch(units, -1) {
		cells := strings.ReplaceAll(strings.TrimSuffix(m[2], "</td>"), `<td class="num">`, "")
		rows = append(rows, append([]string{m[1]}, strings.Split(cells, "</td>")...))
	}
	return page, legend, columns, rows
}

// One timeline: what was granted and what will be, one colour a feed on both sides
// of now, and the same as tables.
func TestAQuotasTimelineIsStackedByFeedOnBothSidesOfNow(t *testing.T) {
	t.Parallel()
	w := charted(t, []FeedUnits{always("trending-bd", 2), always("trending-ph", 1)}, map[int][]quota.Request{
		95: {{Cost: 7, Label: "trending-ph"}, {Cost: 4, Label: "trending-bd"}},
		1:  {{Cost: 3}},
		0:  {{Cost: 2, Label: "trending-bd"}, {Cost: 5, Label: "gone"}},
	})
	page, legend, columns, rows := timeline(t, w)
	want := map[string]string{"s0": "gone|5|0", "s1": "trending-bd|6|192", "s2": "trending-ph|7|96", "unnamed": "other charges|3|"}
	if fmt.Sprint(legend) != fmt.Sprint(want) {
		t.Errorf("legend %v, want %v", legend, want)
	}
	// 96 columns are past, ten wide; the marker of now stands after them.
	bd, ph := columns["s1"], columns["s2"]
	if len(bd) != 98 || bd[0] != "1" || bd[1] != "951" || bd[2] != "961" || len(ph) != 97 || ph[0] != "1" || ph[1] != "961" ||
		fmt.Sprint(columns["s0"], columns["unnamed"]) != "[951] [941]" {
		t.Errorf("columns %v", columns)
	}
	wantParts(t, page, `<path class="present" d="M960 0V100"/>`, ">now<", "feed by feed: 21 granted in the past 24 hours, 288 to be granted in the coming 24 h")
	if len(rows) != 24+24+4 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, want := range map[int]string{
		0: "granted 11 0 4 7 0", 23: "granted 10 5 2 0 3", 24: "to come 12 0 8 4 0", 47: "to come 12 0 8 4 0",
	} {
		if got := strings.Join(rows[i][1:], " "); got != want {
			t.Errorf("row %d %q, want %q", i, got, want)
		}
	}
	if got := fmt.Sprint(rows[48:]); got != "[[trending-bd 6 192] [trending-ph 7 96] [gone 5 0] [other charges 3 0]]" {
		t.Errorf("feed by feed %s", got)
	}
}

func TestAQuotasTimelineSaysWhenThereIsNothing(t *testing.T) {
	t.Parallel()
	w := charted(t, []FeedUnits{}, nil)
	rec := w.get("/quotas/q", "Accept", "text/html")
	wantParts(t, rec.Body.String(), "Nothing was granted in the past day, and nothing is planned.")
	if strings.Contains(rec.Body.String(), "Feed by feed") {
		t.Error("there is a table of nothing")
	}
}

// Where nobody plans, the past is told all the same.
func TestAQuotasTimelineWithoutAPlan(t *testing.T) {
	t.Parallel()
	w := charted(t, nil, map[int][]quota.Request{3: {{Cost: 7, Label: "trending-ph"}}})
	_, legend, columns, rows := timeline(t, w)
	if fmt.Sprint(legend, columns) != "map[s0:trending-ph|7|] map[s0:[921]]" || len(rows) != 24+1 {
		t.Errorf("%v, %v, %d rows", legend, columns, len(rows))
	}
}

// Of 1,000 feeds those that take the most have a colour; the others are one, and
// nothing of them is lost.
func TestAQuotasTimelineOfAThousandFeeds(t *testing.T) {
	t.Parallel()
	var past []quota.Request
	var ahead []FeedUnits
	feeds := int64(1000)
	for i := range feeds {
		name := fmt.Sprintf("feed-%04d", i)
		past = append(past, quota.Request{Cost: 1 + i, Label: name})
		ahead = append(ahead, always(name, 1))
	}
	w := charted(t, ahead, map[int][]quota.Request{2: past})
	page, legend, columns, rows := timeline(t, w)
	if len(legend) != seriesInColour+1 || legend["s0"] != "feed-0993|994|96" || legend["s6"] != "feed-0999|1\u202f000|96" || len(columns["muted"]) != 97 {
		t.Errorf("legend %v", legend)
	}
	all := (feeds*(feeds+1)/2 - 994 - 995 - 996 - 997 - 998 - 999 - 1000)
	if want := "993 others|" + grouped(all) + "|" + grouped(993*96); legend["muted"] != want {
		t.Errorf("others %q, want %q", legend["muted"], want)
	}
	if n := len(rows); n != 48+mostTakers+1 || rows[n-1][0] != "800 others" || rows[48][0] != "feed-0999" {
		t.Errorf("%d rows, the last %v", n, rows[n-1])
	}
	if len(page) > 300<<10 {
		t.Errorf("the page has %d KB", len(page)>>10)
	}
}

// A feed keeps its colour from one look to the next while the same feeds take the most.
func TestColoursStayWhenAFeedOvertakesAnother(t *testing.T) {
	t.Parallel()
	for _, units := range [][2]int64{{1, 2}, {2, 1}, {5, 5}} {
		named, rest := layersOf(nil, nil, QuotaForecast{Feeds: []FeedUnits{always("b", units[0]), always("a", units[1])}})
		if got := inColour(named, rest); len(got) != 2 || got[0].Name != "a" || got[0].Class != "s0" || got[1].Class != "s1" {
			t.Errorf("%v: %+v", units, got)
		}
	}
}

// Eight feeds have eight colours: one alone is never called "others".
func TestOneFeedIsNotCalledOthers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "s0", 8: "s7", 9: "muted", 20: "muted"} {
		var feeds []FeedUnits
		for i := range n {
			feeds = append(feeds, always(fmt.Sprint("feed-", i), 1))
		}
		got := inColour(layersOf(nil, nil, QuotaForecast{Feeds: feeds}))
		if last := got[len(got)-1]; last.Class != want || len(got) > seriesInColour+1 {
			t.Errorf("%d feeds: the last of %d is %s of %s", n, len(got), last.Name, last.Class)
		}
	}
}

// What is given back in a later quarter than it was taken in makes no column below 0.
func TestWhatWasGivenBackLaterIsNotDrawnBelowZero(t *testing.T) {
	t.Parallel()
	past := []Point{{Units: 10}, {Units: 1, RefundedUnits: 6}}
	named, rest := layersOf(past, []quota.Share{{Label: "a", Units: []int64{6, 0}, Refunded: []int64{0, 6}}}, QuotaForecast{})
	if fmt.Sprint(named[0].Past, rest.Past) != "[6 0] [4 1]" {
		t.Errorf("%v, %v", named[0].Past, rest.Past)
	}
}
