package demo

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

const chartQuery = "/videos?chart=mostPopular&part=snippet,contentDetails,statistics&regionCode="

func list(t *testing.T, body string) videoList {
	t.Helper()
	var l videoList
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("%v in %.200s", err, body)
	}
	return l
}

func TestChartIsPaged(t *testing.T) {
	w := world(t, Options{Limit: 1000, Now: (&clock{at("2026-11-30T08:00:00Z")}).now})
	c := plainClient(t, &http.Transport{})
	for _, region := range Regions() {
		var ids []string
		token, pages := "", 0
		for {
			resp, body := ask(t, c, w.Upstream.BaseURL()+chartQuery+region+"&maxResults=25&pageToken="+token, "X-Goog-Api-Key", "k")
			if resp.StatusCode != 200 {
				t.Fatalf("%d: %s", resp.StatusCode, body)
			}
			l := list(t, body)
			for _, v := range l.Items {
				ids = append(ids, v.ID)
			}
			if pages++; l.PageInfo.TotalResults != chartLength || l.PageInfo.ResultsPerPage != 25 {
				t.Errorf("page info %+v", l.PageInfo)
			}
			if token = l.NextPageToken; token == "" {
				break
			}
		}
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); pages != 3 || n != chartLength {
			t.Errorf("%s: %d pages with %d videos", region, pages, n)
		}
	}
}

func TestChartShapes(t *testing.T) {
	w := world(t, Options{Limit: 1000, Now: (&clock{at("2026-11-30T08:00:00Z")}).now})
	c := plainClient(t, &http.Transport{})
	_, body := ask(t, c, w.Upstream.BaseURL()+chartQuery+"BD&maxResults=50", "X-Goog-Api-Key", "k")
	l := list(t, body)
	withLikes, thumbs := 0, map[int]bool{}
	for _, v := range l.Items {
		if len(v.ID) != 11 || v.Snippet.Title == "" || len(v.Snippet.ChannelID) != 24 || v.Statistics.ViewCount == "" {
			t.Errorf("video %+v %+v", v, v.Snippet)
		}
		if v.Statistics.LikeCount != "" {
			withLikes++
		}
		thumbs[len(v.Snippet.Thumbnails)] = true
	}
	if withLikes == len(l.Items) || withLikes == 0 {
		t.Errorf("%d of %d show likes", withLikes, len(l.Items))
	}
	if len(thumbs) < 2 {
		t.Error("every video has the same thumbnails")
	}
	if !strings.Contains(body, `"viewCount": "`) {
		t.Error("counts should be strings")
	}
	_, body = ask(t, c, w.Upstream.BaseURL()+"/videos?chart=mostPopular&part=id&regionCode=US", "X-Goog-Api-Key", "k")
	if l := list(t, body); len(l.Items) != 5 || l.Items[0].Snippet != nil || l.Items[0].Statistics != nil {
		t.Errorf("parts that were not asked for: %s", body)
	}
}

func TestChartIsAFunctionOfSeedRegionAndMinute(t *testing.T) {
	now := &clock{at("2026-11-30T08:00:10Z")}
	a, b := world(t, Options{Limit: 1000, Seed: 7, Now: now.now}), world(t, Options{Limit: 1000, Seed: 7, Now: now.now})
	c := plainClient(t, &http.Transport{})
	ids := func(w *World, region string) []string {
		_, body := ask(t, c, w.Upstream.BaseURL()+chartQuery+region+"&maxResults=50", "X-Goog-Api-Key", "k")
		var out []string
		for _, v := range list(t, body).Items {
			out = append(out, v.ID)
		}
		return out
	}
	first := ids(a, "PH")
	if !slices.Equal(first, ids(b, "PH")) {
		t.Error("two worlds of one seed differ")
	}
	if slices.Equal(first, ids(a, "JP")) {
		t.Error("two regions have one chart")
	}
	now.t = at("2026-11-30T08:00:59Z")
	if !slices.Equal(first, ids(a, "PH")) {
		t.Error("the chart changed within its minute")
	}
	now.t = at("2026-11-30T08:01:00Z")
	next := ids(a, "PH")
	if slices.Equal(first, next) {
		t.Error("the chart did not change with the minute")
	}
	kept := 0
	for _, id := range next {
		if slices.Contains(first, id) {
			kept++
		}
	}
	if kept < 40 {
		t.Errorf("only %d of 50 stayed from one minute to the next", kept)
	}
}

func TestETag(t *testing.T) {
	now := &clock{at("2026-11-30T08:00:10Z")}
	w := world(t, Options{Limit: 1000, Now: now.now})
	c := plainClient(t, &http.Transport{})
	for _, u := range []string{w.Upstream.BaseURL() + chartQuery + "BR", w.Upstream.FeedURL()} {
		now.t = at("2026-11-30T08:00:10Z")
		resp, _ := ask(t, c, u, "X-Goog-Api-Key", "k")
		tag := resp.Header.Get("ETag")
		resp, body := ask(t, c, u, "X-Goog-Api-Key", "k", "If-None-Match", `"other", W/`+tag)
		if tag == "" || resp.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s: %d with tag %s", u, resp.StatusCode, tag)
		}
		now.t = now.t.Add(time.Minute)
		if resp, _ = ask(t, c, u, "X-Goog-Api-Key", "k", "If-None-Match", tag); resp.StatusCode != 200 {
			t.Errorf("%s: %d after a change", u, resp.StatusCode)
		}
	}
	if n := w.Upstream.Stats().NotModified; n != 2 {
		t.Errorf("%d not modified", n)
	}
}

func TestRefusals(t *testing.T) {
	w := world(t, Options{Limit: 1000})
	c := plainClient(t, &http.Transport{})
	for name, tt := range map[string]struct {
		query, key string
		status     int
		reason     string
	}{
		"no key":             {"chart=mostPopular&part=id", "", 403, "forbidden"},
		"key in the query":   {"chart=mostPopular&part=id&key=k", "k", 400, "badRequest"},
		"unsupported region": {"chart=mostPopular&part=id&regionCode=KP", "k", 404, "videoChartNotFound"},
		"no region":          {"chart=mostPopular&part=id&regionCode=XYZ", "k", 400, "invalidRegionCode"},
		"other chart":        {"chart=leastPopular&part=id", "k", 404, "videoChartNotFound"},
		"no part":            {"chart=mostPopular", "k", 400, "missingRequiredParameter"},
		"no filter":          {"part=id", "k", 400, "missingRequiredParameter"},
		"too many results":   {"chart=mostPopular&part=id&maxResults=51", "k", 400, "invalidParameter"},
		"bad token":          {"chart=mostPopular&part=id&pageToken=xx", "k", 400, "invalidPageToken"},
	} {
		resp, body := ask(t, c, w.Upstream.BaseURL()+"/videos?"+tt.query, "X-Goog-Api-Key", tt.key)
		if resp.StatusCode != tt.status || !strings.Contains(body, `"reason":"`+tt.reason+`"`) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

func TestQuotaIsEnforcedForEachKey(t *testing.T) {
	now := &clock{at("2026-11-30T08:00:00Z")}
	w := world(t, Options{Limit: 10, Cost: 5, Window: 10 * time.Second, Slack: time.Second, Now: now.now})
	c := plainClient(t, &http.Transport{})
	status := func(key string) int {
		resp, body := ask(t, c, w.Upstream.BaseURL()+chartQuery+"US", "X-Goog-Api-Key", key)
		if resp.StatusCode == 403 && !strings.Contains(body, "quotaExceeded") {
			t.Errorf("%s", body)
		}
		return resp.StatusCode
	}
	for i, tt := range []struct {
		at   string
		key  string
		want int
	}{
		{"2026-11-30T08:00:00Z", "a", 200},
		{"2026-11-30T08:00:01Z", "a", 200},
		{"2026-11-30T08:00:02Z", "a", 403},
		{"2026-11-30T08:00:02Z", "b", 200},
		{"2026-11-30T08:00:08.999Z", "a", 403},
		{"2026-11-30T08:00:09Z", "a", 200}, // a second early: the slack
		{"2026-11-30T08:00:09Z", "a", 403},
	} {
		now.t = at(tt.at)
		if got := status(tt.key); got != tt.want {
			t.Errorf("%d: %d, want %d", i, got, tt.want)
		}
	}
	s := w.Upstream.Stats()
	if s.Refused != 3 || s.API != 7 || s.Peak != 15 || s.Limit != 10 {
		t.Errorf("stats %+v", s)
	}
}

func TestFeedGrows(t *testing.T) {
	now := &clock{at("2026-11-30T08:00:00Z")}
	w := world(t, Options{Now: now.now})
	c := plainClient(t, &http.Transport{})
	first := func() rssDoc {
		_, body := ask(t, c, w.Upstream.FeedURL())
		var d rssDoc
		if err := xml.Unmarshal([]byte(body), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := first()
	now.t = now.t.Add(time.Minute)
	b := first()
	if len(a.Channel.Items) != rssItems || b.Channel.Items[1].GUID != a.Channel.Items[0].GUID || b.Channel.Items[0].GUID == a.Channel.Items[0].GUID {
		t.Errorf("%+v then %+v", a.Channel.Items[0], b.Channel.Items[:2])
	}
	resp, _ := ask(t, c, w.Upstream.URL()+a.Channel.Items[0].Link)
	if resp.StatusCode != 200 {
		t.Errorf("a story's link: %d", resp.StatusCode)
	}
	resp, body := ask(t, c, w.Upstream.URL()+"/thumb/abc.svg")
	if resp.StatusCode != 200 || !strings.HasPrefix(body, "<svg") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestHangDelayAndIntercept(t *testing.T) {
	w := world(t, Options{})
	c := plainClient(t, &http.Transport{})
	hang, release := context.WithCancel(t.Context())
	w.Upstream.Hang(hang)
	got := make(chan int, 1)
	go func() {
		resp, _ := ask(t, c, w.Upstream.FeedURL())
		got <- resp.StatusCode
	}()
	deadline := time.Now().Add(5 * time.Second)
	for w.Upstream.Stats().Requests == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the request did not arrive")
		}
		<-time.NewTimer(time.Millisecond).C
	}
	if l := w.Upstream.Log(); l[0].Status != 0 {
		t.Errorf("answered while it hangs: %+v", l[0])
	}
	release()
	if s := <-got; s != 200 {
		t.Errorf("status %d", s)
	}
	w.Upstream.SetDelay(30 * time.Millisecond)
	started := time.Now()
	ask(t, c, w.Upstream.FeedURL())
	if took := time.Since(started); took < 30*time.Millisecond {
		t.Errorf("took %v", took)
	}
	w.Upstream.SetDelay(0)
	w.Upstream.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusTeapot)
		return true
	})
	if resp, _ := ask(t, c, w.Upstream.FeedURL()); resp.StatusCode != http.StatusTeapot {
		t.Errorf("status %d", resp.StatusCode)
	}
	w.Upstream.Intercept(nil)
	if resp, _ := ask(t, c, w.Upstream.FeedURL()); resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestRecordIsBounded(t *testing.T) {
	r := newRecord()
	for i := range 3 * keptRequests {
		n := r.arrive(Seen{Region: string(rune('a' + i)), Remote: "127.0.0.1:1"}, true)
		r.answered(n, 200, false)
	}
	if n := len(r.log()); n > keptRequests || n < keptRequests/2 {
		t.Errorf("%d requests kept", n)
	}
	s := r.snapshot()
	if len(s.ByRegion) > keptNames+1 || s.Requests != 3*keptRequests {
		t.Errorf("%d regions of %d requests", len(s.ByRegion), s.Requests)
	}
	if l := r.log(); l[len(l)-1].Status != 200 {
		t.Error("the last answer is not noted")
	}
}
