package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"feedwarden/jobs"
)

// feeds are the feeds of the API by name.
func (w *world) feeds() map[string]FeedView {
	w.Helper()
	rec := w.get("/v1/feeds")
	w.wantStatus(rec, 200)
	out := map[string]FeedView{}
	for _, f := range decode[map[string][]FeedView](w, rec)["feeds"] {
		out[f.Name] = f
	}
	return out
}

// tick makes a job the one of a feed's last tick.
func (w *world) tick(name, job string) {
	w.Helper()
	if err := w.store.SetTickJob(w.Context(), name, job); err != nil {
		w.Fatal(err)
	}
}

// runs puts a pending job into a worker's hands, as asynq and a worker note it.
func (w *world) runs(id, name string) {
	w.Helper()
	ctx := w.Context()
	if _, err := w.jobs.Enqueue(ctx, jobs.Spec{Feed: name, ID: id, Priority: jobs.Background}); err != nil {
		w.Fatal(err)
	}
	pipe := w.rdb.Pipeline()
	pipe.LMove(ctx, "asynq:{scheduled}:pending", "asynq:{scheduled}:active", "right", "left")
	pipe.HSet(ctx, "asynq:{scheduled}:t:"+id, "state", "active")
	pipe.HSet(ctx, "fw:{job:"+id+"}:record", "feed", name, "queue", "scheduled", "state", "running")
	if _, err := pipe.Exec(ctx); err != nil {
		w.Fatal(err)
	}
}

func TestAFeedSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	until := time.Now().Add(45 * time.Minute).Truncate(time.Millisecond).UTC()
	w.put("trending-bd", time.Hour, nil, item("a", "A"))
	w.snoozed("tick", "trending-bd", "snoozed until 2026-11-30T08:15:00.000Z: quota youtube: place 2", until)
	w.tick("trending-bd", "tick")
	w.snoozed("reader", "news", "the target said 429", until)
	seen, err := w.store.Head(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Claim(t.Context(), seen, "reader", "", time.Minute); err != nil {
		t.Fatal(err)
	}
	feeds := w.feeds()
	if f := feeds["trending-bd"]; f.State != "stale" || f.Job != "tick" || f.JobState != "snoozed" || f.WaitingFor != "quota youtube: place 2" || f.JobAt == nil || !f.JobAt.Equal(until) {
		t.Errorf("the last tick's job sleeps: %+v", f)
	}
	if f := feeds["news"]; f.State != "empty" || f.Job != "reader" || f.WaitingFor != "the target said 429" {
		t.Errorf("a reader's job sleeps: %+v", f)
	}
	if f := feeds["by-hand"]; f.Job != "" || f.JobState != "" || f.WaitingFor != "" {
		t.Errorf("nothing waits: %+v", f)
	}
	body := w.page("/").Body.String()
	wantParts(t, body, "Older than their ttl, and the next fetch waits: trending-bd.", "Never fetched, and the first fetch waits: news.",
		"waits, goes on in 4", " min: quota youtube: place 2", "the target said 429")
	wantTidy(t, body)
	wantParts(t, w.page("/feeds/trending-bd").Body.String(), "The next fetch waits and goes on in 4", ": quota youtube: place 2.")
	wantParts(t, w.page("/feeds/news").Body.String(), "Never fetched: its first fetch waits and goes on in 4", ": the target said 429.")

	// A fresh feed needs no excuse.
	w.put("trending-bd", 0, nil, item("b", "B"))
	if f := w.feeds()["trending-bd"]; f.State != "fresh" || f.Job != "" || f.WaitingFor != "" {
		t.Errorf("a fresh feed: %+v", f)
	}
}

func TestAStaleFeedWhoseTickRunsIsUpdating(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("trending-bd", time.Hour, nil, item("a", "A"))
	w.put("news", time.Hour, nil, item("a", "A"))
	w.runs("running", "trending-bd")
	w.tick("trending-bd", "running")
	w.ended("over", "news", jobs.Done, "", `{"what":"unchanged","version":1}`)
	w.tick("news", "over")
	w.runs("first", "by-hand")
	w.tick("by-hand", "first")
	feeds := w.feeds()
	if f := feeds["trending-bd"]; f.State != "updating" || f.Job != "running" || f.JobState != "running" || f.JobAt != nil || f.WaitingFor != "" {
		t.Errorf("its job runs: %+v", f)
	}
	if f := feeds["news"]; f.State != "stale" || f.Job != "" {
		t.Errorf("its job has ended: %+v", f)
	}
	if f := feeds["by-hand"]; f.State != "empty" || f.JobState != "running" {
		t.Errorf("its first job runs: %+v", f)
	}
	wantParts(t, w.page("/").Body.String(), `<span class="pill updating">updating</span>`)
	wantParts(t, w.page("/feeds/trending-bd").Body.String(), `<span class="pill updating">updating</span>`)
	wantParts(t, w.page("/feeds/by-hand").Body.String(), "Its first fetch runs now.")

	// A record that cannot be read costs its feed no more than this.
	w.rdb.Set(t.Context(), "fw:{job:broken}:record", "of a wrong type", 0)
	w.tick("news", "broken")
	if f := w.feeds()["news"]; f.State != "stale" || f.Job != "broken" || f.JobState != jobUnreadable {
		t.Errorf("its job cannot be read: %+v", f)
	}
}

func TestWhichJobActsFirst(t *testing.T) {
	t.Parallel()
	soon, late := time.Now(), time.Now().Add(time.Minute)
	order := []jobs.Job{{State: jobs.Running}, {State: jobs.Pending}, {State: jobs.Snoozed, NextAt: &soon}, {State: jobs.Retrying, NextAt: &late}, {State: jobUnreadable}}
	for i, a := range order {
		for j, b := range order {
			if got := sooner(a, b); got != (i < j) {
				t.Errorf("%s before %s: %v", a.State, b.State, got)
			}
		}
	}
}

func TestPlightOfAFeed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	ago, soon, one := instant(now.Add(-4*time.Second)), instant(now.Add(8*time.Second)), int64(1)
	for _, c := range []struct {
		view FeedView
		want []string
	}{
		{FeedView{Version: &one}, nil},
		{FeedView{}, nil},
		{FeedView{Version: &one, LastError: "timeout", LastErrorAt: ago}, []string{"The last fetch, 4 s ago, brought nothing: timeout."}},
		{FeedView{LastError: "timeout.", LastErrorAt: ago}, []string{"Never fetched: the last try, 4 s ago, brought nothing: timeout."}},
		{FeedView{LastError: "timeout", LastErrorAt: ago, JobState: "retrying", JobAt: soon}, []string{"Never fetched: the last try, 4 s ago, brought nothing: timeout. It is tried again in 8 s."}},
		{FeedView{LastError: "timeout", LastErrorAt: ago, WaitingFor: "quota q", JobAt: soon}, []string{"Never fetched: the last try, 4 s ago, brought nothing: timeout.", "The next fetch waits and goes on in 8 s: quota q."}},
		{FeedView{WaitingFor: "quota q"}, []string{"Never fetched: its first fetch waits: quota q."}},
		{FeedView{Version: &one, Paused: &Pause{By: "ops", Until: &now}}, []string{"Its schedule is paused by ops until 2026-11-30 08:00 UTC."}},
	} {
		var got []string
		for _, tr := range plight(c.view, now) {
			got = append(got, tr.Text)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.view, got, c.want)
		}
	}
}

func TestAFailingFeedThatWasNeverFetchedSaysOneThing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wantParts(t, w.page("/feeds/news").Body.String(), "Its first fetch comes with the next tick, or with the first reader.")
	wantParts(t, w.page("/feeds/by-hand").Body.String(), "It has no schedule", "feedwarden enqueue by-hand")
	if err := w.store.Fail(t.Context(), "news", "job", "fetch: timeout", time.Now()); err != nil {
		t.Fatal(err)
	}
	body := w.page("/feeds/news").Body.String()
	wantParts(t, body, "Never fetched: the last try, ", "brought nothing: fetch: timeout.", "No version yet.")
	for _, wrong := range []string{"Its first fetch", "The last fetch", "›"} {
		if strings.Contains(body, wrong) {
			t.Errorf("there is %q on the page", wrong)
		}
	}
}

func TestAPausedFeedSaysByWhom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("trending-bd", time.Minute, nil, item("a", "A"))
	until := time.Date(2126, 1, 2, 3, 4, 0, 0, time.UTC)
	for name, end := range map[string]time.Time{"trending-bd": until, "news": {}} {
		if err := w.schedules.Pause(t.Context(), name, "ops", end); err != nil {
			t.Fatal(err)
		}
	}
	w.schedules.views[0].NextAt = nil // as a scheduler shows a pause without an end
	for name, want := range map[string]string{"trending-bd": "paused by ops until 2126-01-02 03:04 UTC", "news": "paused by ops until it is resumed"} {
		body := w.page("/feeds/" + name).Body.String()
		wantParts(t, body, "Its schedule is "+want+".")
		if strings.Contains(body, `<dt>Next tick</dt><dd><span class="none">none</span>`) || strings.Contains(body, "comes with the next tick") {
			t.Errorf("%s: the page does not know of its pause", name)
		}
	}
	if f := w.feeds()["trending-bd"]; f.Paused == nil || f.Paused.By != "ops" || f.Paused.Until == nil || !f.Paused.Until.Equal(until) {
		t.Errorf("a paused feed: %+v", f)
	}
	if f := w.feeds()["by-hand"]; f.Paused != nil {
		t.Errorf("a feed without a schedule: %+v", f)
	}
	wantParts(t, w.page("/").Body.String(), "Paused: news, trending-bd.", `<span class="aside">paused by ops until 2126-01-02 03:04 UTC</span>`, `<span class="aside">paused by ops until it is resumed</span>`)
	// One schedule that ticks is enough.
	views := WithTicks([]FeedView{{Name: "x"}}, []ScheduleView{{Feed: "x", State: "paused"}, {Feed: "x", State: "active"}})
	if views[0].Paused != nil {
		t.Error("a feed with a schedule that ticks is called paused")
	}
}
