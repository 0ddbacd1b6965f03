package web

import (
	"strings"
	"testing"
	"time"

	"feedwarden/internal/luarun"
	"feedwarden/jobs"
	"feedwarden/jobs/sink"
)

func TestSinkThatFailsIsSeenInTheAPIOnItsPageAndInTheMetrics(t *testing.T) {
	t.Parallel()
	hook := sink.Config{Webhook: "https://example.org/canary-path?token=canary", Secret: "canary-secret"}
	w := newWorld(t, func(_ *Config, p *Parts, _ *pace) {
		feeds := testFeeds()
		for i := range feeds {
			if feeds[i].Name == "news" {
				feeds[i].Sinks = []sink.Config{hook, {Stdout: true}}
			}
		}
		var err error
		if p.Jobs, err = jobs.NewClient(jobs.Config{Feeds: feeds}, p.Redis, p.Feeds, p.Quotas, p.Log); err != nil {
			t.Fatal(err)
		}
	})
	for range 2 {
		w.put("news", time.Minute, nil, item("a", time.Now().String()))
	}
	ledger := sink.NewLedger(w.rdb, luarun.NewDesk(w.rdb))
	note := func(name string, version int64, why string, last bool) {
		t.Helper()
		if err := ledger.Note(t.Context(), "news", name, version, time.Now(), why, last); err != nil {
			t.Fatal(err)
		}
	}
	note("stdout", 1, "", false)
	note("stdout", 2, "", false)
	note(hook.Name(), 1, "", false)
	note(hook.Name(), 2, "sink: webhook example.org: it answered 500", true)

	metrics := w.get("/metrics").Body.String()
	for _, line := range []string{
		`feedwarden_sink_deliveries_total{feed="news",sink="stdout"} 2`, `feedwarden_sink_failing{feed="news",sink="stdout"} 0`,
		`feedwarden_sink_behind_versions{feed="news",sink="stdout"} 0`,
		`feedwarden_sink_failures_total{feed="news",sink="` + hook.Name() + `"} 1`, `feedwarden_sink_lost_total{feed="news",sink="` + hook.Name() + `"} 1`,
		`feedwarden_sink_failing{feed="news",sink="` + hook.Name() + `"} 1`, `feedwarden_sink_behind_versions{feed="news",sink="` + hook.Name() + `"} 1`,
		`feedwarden_queue_jobs{queue="sinks",state="pending"} 0`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s", line)
		}
	}
	api, page := w.get("/v1/feeds").Body.String(), w.get("/feeds/news").Body.String()
	if !strings.Contains(api, `"sink":"`+hook.Name()+`"`) || !strings.Contains(api, `"last_error":"sink: webhook example.org: it answered 500"`) {
		t.Errorf("the API: %s", api)
	}
	wantParts(t, page, "Where its versions go", ">stdout</th>", ">webhook</td>")
	if !strings.Contains(page, "Its sink "+hook.Name()+" does not get every version") || !strings.Contains(page, "answered 500") {
		t.Errorf("the page: %s", page)
	}
	for _, text := range []string{metrics, api, page, w.get("/").Body.String()} {
		if strings.Contains(text, "canary") {
			t.Error("a secret is shown")
		}
	}
	note(hook.Name(), 3, "", false)
	if page := w.get("/feeds/news").Body.String(); strings.Contains(page, "does not get every version") {
		t.Error("a newer version has arrived, and the page still complains")
	}
}
