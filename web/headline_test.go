package web

import (
	"strings"
	"testing"
	"time"

	"feedwarden/internal/roster"
)

func TestHeadline(t *testing.T) {
	t.Parallel()
	fresh, stale := FeedView{Name: "a", State: "fresh"}, FeedView{Name: "b", State: "stale"}
	for want, feeds := range map[string][]FeedView{
		"No feeds yet.": nil, "The feed is fresh.": {fresh}, "All 2 feeds are fresh.": {fresh, fresh}, "None of 1 feed is fresh.": {stale},
		"1 of 2 feeds is not fresh.": {fresh, stale}, "2 of 3 feeds are not fresh.": {fresh, stale, stale},
	} {
		if got := headline(&snapshot{Feeds: feeds}); got != want {
			t.Errorf("headline of %d feeds: %q, want %q", len(feeds), got, want)
		}
	}
	until := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	ahead := &outlook{Forecast: &Forecast{From: until, To: until.Add(24 * time.Hour), Quotas: []QuotaForecast{{Name: "youtube", Ticks: 96, Needed: 9600, Granted: 4800, DryTimes: 3}}}}
	got := troubles(&snapshot{
		At:     until.Add(-time.Hour),
		Quotas: []part[Quota]{{Name: "youtube", View: Quota{BlockedUntil: &until, BlockReason: "quotaExceeded"}}},
		Pools:  []part[Pool]{{Name: "p", View: Pool{Total: 3}}, {Name: "q"}},
	}, ahead)
	want := []string{"Quota youtube is closed until 08:00:00 UTC: quotaExceeded.", "Pool p has no eligible endpoint: its feeds wait.", "Quota youtube will not last: the schedules ask for 200 % of what they get in the coming 24 h.", "Pool q has no endpoints: its feeds wait."}
	if len(got) != len(want) {
		t.Fatalf("troubles %+v", got)
	}
	for i := range want {
		if got[i].Text != want[i] {
			t.Errorf("trouble %d: %q, want %q", i, got[i].Text, want[i])
		}
	}
}

func TestABlockThatEndsAnotherDaySaysWhich(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 12, 2, 8, 0, 0, 0, time.UTC)
	got := troubles(&snapshot{At: until.Add(-30 * time.Hour), Quotas: []part[Quota]{{Name: "q", View: Quota{BlockedUntil: &until}}}}, nil)
	if want := "Quota q is closed until 2 December, 08:00:00 UTC."; len(got) != 1 || got[0].Text != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

func TestWhatIsAskedForBeyondReasonIsSaidInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		needed, granted int64
		want            string
	}{
		{9600, 4800, "200 % of what they get"}, {101, 100, "101 % of what they get"}, {999, 100, "999 % of what they get"},
		{1000, 100, "10 times what they get"}, {10000, 100, "100 times what they get"}, {10001, 100, "more than 100 times what they get"},
		{43200000, 10000, "more than 100 times what they get"}, {1 << 62, 1, "more than 100 times what they get"}, {100, 0, "what they cannot get"},
	} {
		if got := excess(c.needed, c.granted); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.needed, c.granted, got, c.want)
		}
	}
}

func TestProcessesThatAreNotThereOrDoNothingAreWrong(t *testing.T) {
	t.Parallel()
	fetched, pushed := FeedView{Name: "a", State: "fresh", Source: "json"}, FeedView{Name: "b", State: "fresh", Source: "push"}
	tick := []ScheduleView{{Name: "a"}}
	for name, c := range map[string]struct {
		shot snapshot
		want []string
	}{
		"nobody is wanted":  {snapshot{Feeds: []FeedView{pushed}}, nil},
		"nobody is there":   {snapshot{Feeds: []FeedView{fetched}, Schedules: tick}, []string{"No worker runs", "No scheduler runs"}},
		"all are there":     {snapshot{Feeds: []FeedView{fetched}, Schedules: tick, Processes: []roster.Process{{Roles: []string{"web", "worker"}}, {Roles: []string{"scheduler"}}}}, nil},
		"it is not known":   {snapshot{Feeds: []FeedView{fetched}, Schedules: tick, ProcessesErr: errNoLine}, []string{"Some of what stands here"}},
		"one keeps from it": {snapshot{Processes: []roster.Process{{Roles: []string{"worker"}, Host: "h", PID: 7, Refused: "it is a replica"}}}, []string{"Process 7 on h (worker) writes nothing to Redis: it is a replica."}},
	} {
		got := troubles(&c.shot, nil)
		ok := len(got) == len(c.want)
		for i := range c.want {
			ok = ok && strings.HasPrefix(got[i].Text, c.want[i])
		}
		if !ok {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

func TestTheOverviewShowsWhatIsWorstOfMany(t *testing.T) {
	t.Parallel()
	o := &outlook{Forecast: &Forecast{Quotas: []QuotaForecast{{Name: "short", Needed: 2, Granted: 1, DryTimes: 1}}}}
	until := time.Now()
	quotas := []part[Quota]{
		{Name: "idle", View: Quota{Windows: []Used{{Limit: 10}}}}, {Name: "full", View: Quota{Windows: []Used{{Limit: 10, Used: 10}}}}, {Name: "short"},
		{Name: "closed", View: Quota{BlockedUntil: &until}}, {Name: "unread", Err: errNoLine},
	}
	order := ""
	for _, q := range worstQuotas(quotas, o) {
		order += q.Name + " "
	}
	if order != "unread closed short full idle " {
		t.Errorf("quotas: %s", order)
	}
	order = ""
	for _, p := range worstPools([]part[Pool]{{Name: "well", View: Pool{Total: 2, Eligible: 2}}, {Name: "half", View: Pool{Total: 2, Eligible: 1}}, {Name: "empty"}, {Name: "unread", Err: errNoLine}}) {
		order += p.Name + " "
	}
	if order != "unread empty half well " {
		t.Errorf("pools: %s", order)
	}
	order = ""
	for _, f := range worstFirst([]FeedView{{Name: "new", Schedule: "@hourly"}, {Name: "tried", Schedule: "@hourly", LastError: "x"}, {Name: "old", Version: new(int64), AgeMS: 9, TTLMS: 1}}) {
		order += f.Name + " "
	}
	if order != "tried new old " {
		t.Errorf("feeds: %s", order)
	}
}

func TestATroubleLeadsToWhereItCanBeLookedInto(t *testing.T) {
	t.Parallel()
	got := troubles(&snapshot{
		Feeds: []FeedView{{Name: "a/b", State: "stale", Source: "push", Sinks: []SinkView{{LastError: "x"}}}, {Name: "c", State: "fresh", Source: "push", LastError: "x"}, {Name: "d", State: "fresh", Source: "push", LastError: "x"}},
		Pools: []part[Pool]{{Name: "p", View: Pool{Total: 1}}},
	}, nil)
	want := map[string]string{"/feeds?state=failing": "The failing feeds", "/pools/p": "Pool p", "/feeds/a%2Fb": "Feed a/b"}
	found := map[string]bool{}
	for _, tr := range got {
		if want[tr.Link] != tr.Where || tr.Link == "" {
			t.Errorf("%+v: no such link is wanted", tr)
		}
		found[tr.Link] = true
	}
	if len(found) != len(want) || len(got) != 4 {
		t.Errorf("%+v, want links to %v", got, want)
	}
}
