package source

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const testKey = "AIzaTESTKEY"

func trending(t testing.TB, pages int) Source {
	return build(t, Config{
		Kind: "youtube", Method: "videos.list", Key: testKey, Pages: pages,
		Params: map[string]string{"chart": "mostPopular", "regionCode": "BD", "maxResults": "5"},
	})
}

func TestYouTubeRequest(t *testing.T) {
	s := trending(t, 0)
	req, err := s.Request(Page{Cursor: "2.10.CAoQAA", Params: map[string]string{"regionCode": "PH"}})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		t.Fatal(err)
	}
	want := "https://www.googleapis.com/youtube/v3/videos?chart=mostPopular&maxResults=5&pageToken=CAoQAA&part=snippet%2CcontentDetails%2Cstatistics&regionCode=PH"
	if u.String() != want {
		t.Errorf("got  %s\nwant %s", u, want)
	}
	if req.Header.Get("X-Goog-Api-Key") != testKey || !req.Keyed {
		t.Errorf("the key is not where it belongs: %+v", req)
	}
	if strings.Contains(req.URL+req.Label, testKey) {
		t.Error("the key is where it does not belong")
	}
	if s.Host() != "www.googleapis.com" {
		t.Error(s.Host())
	}
	req, err = trending(t, 0).Request(Page{})
	if err != nil || strings.Contains(req.URL, "pageToken") {
		t.Errorf("%v %s", err, req.URL)
	}
}

func TestYouTubePathsAndParts(t *testing.T) {
	for method, tt := range map[string]struct {
		params map[string]string
		want   string
	}{
		"videos.list":        {map[string]string{"id": "a,b"}, "/videos?id=a%2Cb&part=snippet%2CcontentDetails%2Cstatistics"},
		"search.list":        {map[string]string{"q": "rain", "part": "id"}, "/search?part=id&q=rain"},
		"playlistItems.list": {map[string]string{"playlistId": "PL1"}, "/playlistItems?part=snippet%2CcontentDetails&playlistId=PL1"},
		"channels.list":      {map[string]string{"forHandle": "@x"}, "/channels?forHandle=%40x&part=snippet%2CcontentDetails%2Cstatistics"},
	} {
		s := build(t, Config{Kind: "youtube", Method: method, Key: "k", Params: tt.params, BaseURL: "http://127.0.0.1:9/youtube/v3/"})
		req, err := s.Request(Page{})
		if err != nil || req.URL != "http://127.0.0.1:9/youtube/v3"+tt.want {
			t.Errorf("%s: %v %s", method, err, req.URL)
		}
		if s.Host() != "127.0.0.1:9" {
			t.Error(s.Host())
		}
	}
}

// A chart is read over its pages: ranks go on, counts are numbers or null.
func TestYouTubeCharts(t *testing.T) {
	for _, region := range []string{"BD", "PH", "HR", "IN", "US", "GB", "JP", "BR"} {
		s := trending(t, 0)
		var items []Item
		p := Page{Params: map[string]string{"regionCode": region}}
		dropped, pages := 0, 0
		for {
			pages++
			a, err := s.Read(answerTo(t, s, p, 200, recorded(t, "youtube", fmt.Sprintf("%s-%d.json", strings.ToLower(region), pages))))
			if err != nil {
				t.Fatal(err)
			}
			items, dropped = append(items, a.Items...), dropped+a.Dropped
			if a.Next == "" {
				break
			}
			p.Cursor = a.Next
		}
		// One video stands twice on a page, one has no ID.
		if pages != 3 || len(items) != 13 || dropped != 2 {
			t.Fatalf("%s: %d pages, %d items, %d dropped", region, pages, len(items), dropped)
		}
		for i, it := range items {
			f := it.Fields
			if it.Rank != i+1 || f["region"] != region || !it.FirstSeen.Equal(now) || it.URL != "https://www.youtube.com/watch?v="+it.ID {
				t.Errorf("%s: item %d is %+v", region, i, it)
			}
			if it.Published == nil || !it.Published.Equal(time.Date(2026, 11, 10+i, i%10, 30, 0, 0, time.UTC)) {
				t.Errorf("%s: item %d published %v", region, i, it.Published)
			}
			if f["channel"] != region+" Records" || !strings.HasPrefix(f["channel_url"].(string), "https://www.youtube.com/channel/UC") {
				t.Errorf("channel %v, %v", f["channel"], f["channel_url"])
			}
			var views, likes any = int64(1000000 - i*7919), int64(50000 - i*331)
			switch {
			case i == 6:
				views = int64(123456789012) // a number in the answer
			case i == 7:
				views, likes = nil, nil // no statistics at all
			}
			if i%4 == 1 {
				likes = nil
			}
			if f["view_count"] != views || f["like_count"] != likes {
				t.Errorf("%s: item %d has %v views, %v likes; want %v, %v", region, i, f["view_count"], f["like_count"], views, likes)
			}
			wantSeconds := []any{int64(253), int64(3723), int64(45)}[i%3]
			if i == 3 {
				wantSeconds = nil // a running broadcast
			}
			if f["duration_seconds"] != wantSeconds {
				t.Errorf("%s: item %d lasts %v, want %v", region, i, f["duration_seconds"], wantSeconds)
			}
			thumbs := f["thumbnails"].(map[string]any)
			if _, large := thumbs["maxres"]; large != (i%2 == 1) || thumbs["high"].(map[string]any)["height"] != int64(360) {
				t.Errorf("%s: item %d has thumbnails %v", region, i, thumbs)
			}
			if _, bad := thumbs["ultra"]; bad {
				t.Error("a thumbnail that is no web link was kept")
			}
			if b, err := json.Marshal(it); err != nil || strings.Contains(string(b), "javascript:") {
				t.Errorf("%v %s", err, b)
			}
		}
	}
}

func TestYouTubePagesAreBounded(t *testing.T) {
	s := trending(t, 2)
	a, err := s.Read(answerTo(t, s, Page{}, 200, recorded(t, "youtube", "bd-1.json")))
	if err != nil || a.Next == "" {
		t.Fatalf("%v, next %q", err, a.Next)
	}
	a, err = s.Read(answerTo(t, s, Page{Cursor: a.Next}, 200, recorded(t, "youtube", "bd-2.json")))
	if err != nil || a.Next != "" || a.Items[0].Rank != 6 {
		t.Fatalf("%v, next %q after the last page that was asked for", err, a.Next)
	}
	// A list whose next page is the same page would never end.
	s = trending(t, 0)
	_, err = s.Read(answerTo(t, s, Page{Cursor: "1.5.CAUQAA"}, 200, recorded(t, "youtube", "bd-1.json")))
	wantAnswer(t, err, Truncated)
}

// However many pages lie between, a list that comes back to where it was is
// left after no more requests than a few rounds; each of them costs units.
func TestYouTubePagesThatGoRoundAreLeftSoon(t *testing.T) {
	for _, tt := range []struct{ before, round int }{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {4, 5}, {7, 10}} {
		s := trending(t, 0)
		var p Page
		pages := 0
		for err := error(nil); err == nil; pages++ {
			n := pages
			if n >= tt.before {
				n = tt.before + (n-tt.before)%tt.round
			}
			var a Answer
			a, err = s.Read(answerTo(t, s, p, 200, fmt.Appendf(nil, `{"kind":"youtube#videoListResponse","nextPageToken":"T%d","items":[{"kind":"youtube#video","id":"v%d"}]}`, n, pages)))
			if p.Cursor = a.Next; err != nil {
				wantAnswer(t, err, Truncated)
			} else if pages > 60 {
				t.Fatalf("%+v: still going round after %d pages", tt, pages)
			}
		}
		if pages > 4*(tt.before+tt.round)+2 {
			t.Errorf("%+v took %d pages", tt, pages)
		}
	}
}

func TestYouTubeOtherLists(t *testing.T) {
	for _, tt := range []struct {
		method string
		params map[string]string
		body   string
		want   []string
		fields map[string]any // of the first
	}{
		{"search.list", map[string]string{"q": "x"}, `{"kind":"youtube#searchListResponse","nextPageToken":"CAUQAA","items":[
			{"kind":"youtube#searchResult","id":{"kind":"youtube#video","videoId":"v1"},"snippet":{"title":"V","publishedAt":"2026-11-30T08:00:00Z","channelTitle":"C","channelId":"UC1"}},
			{"kind":"youtube#searchResult","id":{"kind":"youtube#channel","channelId":"UC2"},"snippet":{"title":"Ch","channelId":"UC2","channelTitle":"Ch"}},
			{"kind":"youtube#searchResult","id":{"kind":"youtube#playlist","playlistId":"PL3"},"snippet":{"title":"P"}}]}`,
			[]string{
				"v1 | https://www.youtube.com/watch?v=v1 | V | 2026-11-30T08:00:00Z",
				"UC2 | https://www.youtube.com/channel/UC2 | Ch | null",
				"PL3 | https://www.youtube.com/playlist?list=PL3 | P | null",
			}, map[string]any{"kind": "video", "channel": "C", "channel_id": "UC1", "region": nil}},
		{"playlistItems.list", map[string]string{"playlistId": "PL1"}, `{"kind":"youtube#playlistItemListResponse","items":[
			{"kind":"youtube#playlistItem","id":"UExx1","snippet":{"title":"Song","publishedAt":"2026-11-30T08:00:00Z","playlistId":"PL1","position":4,"channelTitle":"Owner",
			 "videoOwnerChannelTitle":"Band","videoOwnerChannelId":"UCb","resourceId":{"kind":"youtube#video","videoId":"v1"}},"contentDetails":{"videoId":"v1","videoPublishedAt":"2020-01-02T03:04:05Z"}},
			{"kind":"youtube#playlistItem","id":"UExx2","snippet":{"title":"Deleted video","resourceId":{"videoId":"v1"}}}]}`,
			[]string{
				"UExx1 | https://www.youtube.com/watch?v=v1 | Song | 2020-01-02T03:04:05Z",
				"UExx2 | https://www.youtube.com/watch?v=v1 | Deleted video | null",
			}, map[string]any{"video_id": "v1", "position": int64(4), "channel": "Band", "added_at": "2026-11-30T08:00:00Z", "playlist_id": "PL1"}},
		{"channels.list", map[string]string{"id": "UC1"}, `{"kind":"youtube#channelListResponse","items":[
			{"kind":"youtube#channel","id":"UC1","snippet":{"title":"Band","customUrl":"@band","publishedAt":"2010-05-06T07:08:09.123Z"},
			 "statistics":{"viewCount":"10","subscriberCount":"2000","hiddenSubscriberCount":false,"videoCount":"x"}}]}`,
			[]string{"UC1 | https://www.youtube.com/channel/UC1 | Band | 2010-05-06T07:08:09Z"},
			map[string]any{"view_count": int64(10), "subscriber_count": int64(2000), "video_count": nil, "handle": "@band", "kind": "channel"}},
		{"videos.list", map[string]string{"id": "v1,v2"}, `{"kind":"youtube#videoListResponse","items":[{"kind":"youtube#video","id":"v1"},7,{"id":"v2","statistics":[1]}]}`,
			[]string{"v1 | https://www.youtube.com/watch?v=v1 |  | null"}, map[string]any{"view_count": nil, "duration": nil, "channel": nil}},
	} {
		t.Run(tt.method, func(t *testing.T) {
			s := build(t, Config{Kind: "youtube", Method: tt.method, Key: "k", Params: tt.params})
			a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(tt.body)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, it := range a.Items {
				got = append(got, brief(it))
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			for name, want := range tt.fields {
				if v, ok := a.Items[0].Fields[name]; !ok || v != want {
					t.Errorf("%s = %v (%T), want %v", name, v, v, want)
				}
			}
		})
	}
}

func TestYouTubeAnswersThatAreNone(t *testing.T) {
	for body, want := range map[string]AnswerKind{
		"":                       NotAFeed,
		"{}":                     NotAFeed,
		"[]":                     NotAFeed,
		"null":                   NotAFeed,
		"<html>captive portal":   NotAFeed,
		`{"error":{"code":500}}`: NotAFeed,
		`{"kind":"youtube#videoListResponse","items":[{"id":"a"`: Truncated,
		`{"kind":"youtube#videoListResponse","items":{}}`:        NotAFeed,
	} {
		s := trending(t, 1)
		_, err := s.Read(answerTo(t, s, Page{}, 200, []byte(body)))
		wantAnswer(t, err, want)
	}
	s := trending(t, 1)
	a, err := s.Read(answerTo(t, s, Page{}, 200, []byte(`{"kind":"youtube#videoListResponse","items":[]}`)))
	if err != nil || len(a.Items) != 0 {
		t.Errorf("an empty list: %v", err)
	}
	a, err = s.Read(answerTo(t, s, Page{}, 200, []byte("{\"kind\":\"x\",\"items\":[{\"id\":\"a\",\"snippet\":{\"title\":\"\xff\"}}]}")))
	if err != nil || !a.Lossy || a.Items[0].Title != "\ufffd" {
		t.Errorf("%v %+v", err, a)
	}
}

func googleError(status int, reason, message string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"message":%q,"domain":"youtube","reason":%q}]}}`, status, message, message, reason)
}

func TestYouTubeFailures(t *testing.T) {
	for _, tt := range []struct {
		name    string
		status  int
		body    string
		headers []string
		want    AnswerKind
		reason  string
	}{
		{"day's quota", 403, googleError(403, "quotaExceeded", `The request cannot be completed because you have exceeded your <a href="/youtube/v3/getting-started#quota">quota</a>.`), nil, QuotaDay, "quotaExceeded"},
		{"day's quota beside odd details", 403, `{"error":{"message":"x","errors":[null,{"reason":"quotaExceeded"},7],"details":[{"reason":null,"metadata":"x"},{"metadata":{"a":1}},"y"]}}`, nil, QuotaDay, "quotaExceeded"},
		{"errors that are no list", 403, `{"error":{"message":"x","errors":{"reason":"x"},"status":"RESOURCE_EXHAUSTED"}}`, nil, QuotaRate, "RESOURCE_EXHAUSTED"},
		{"a list of errors", 403, `[{"error":{"errors":[{"reason":"quotaExceeded"}]}}]`, nil, QuotaDay, "quotaExceeded"},
		{"an error that is a text", 403, `{"error":"quota exceeded"}`, nil, Forbidden, "status 403"},
		{"JSON that says nothing", 403, `{}`, nil, Forbidden, "status 403"},
		{"daily limit", 403, googleError(403, "dailyLimitExceeded", "Daily Limit Exceeded"), nil, QuotaDay, "dailyLimitExceeded"},
		{"429 that names its day", 429, `{"error":{"code":429,"message":"Quota exceeded for quota metric 'Search Queries' and limit 'Search Queries per day' of service 'youtube.googleapis.com'","errors":[{"reason":"rateLimitExceeded","domain":"global"}],"status":"RESOURCE_EXHAUSTED"}}`, nil, QuotaDay, "rateLimitExceeded"},
		{"429 whose detail names its day", 429, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"SearchPerDayPerProject"}}]}}`, nil, QuotaDay, "RATE_LIMIT_EXCEEDED"},
		{"429 whose detail has a day as its unit", 429, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"searches","quota_unit":"1/d/{project}"}}]}}`, nil, QuotaDay, "RATE_LIMIT_EXCEEDED"},
		{"429 of a daily limit", 429, `{"error":{"code":429,"message":"Daily Limit Exceeded","status":"RESOURCE_EXHAUSTED"}}`, nil, QuotaDay, "RESOURCE_EXHAUSTED"},
		{"429 whose unit is a minute", 429, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_unit":"1/min/{project}"}}]}}`, nil, QuotaRate, "RATE_LIMIT_EXCEEDED"},
		{"429 of the minute", 429, `{"error":{"code":429,"message":"Quota exceeded for limit 'Queries per minute'","status":"RESOURCE_EXHAUSTED"}}`, []string{"Retry-After", "7"}, QuotaRate, "RESOURCE_EXHAUSTED"},
		{"rate", 403, googleError(403, "rateLimitExceeded", "Rate Limit Exceeded"), nil, QuotaRate, "rateLimitExceeded"},
		{"user's rate", 403, googleError(403, "userRateLimitExceeded", "User Rate Limit Exceeded"), nil, QuotaRate, "userRateLimitExceeded"},
		{"user's rate, without a key", 403, googleError(403, "userRateLimitExceededUnreg", "x"), nil, QuotaRate, "userRateLimitExceededUnreg"},
		{"rate, without a key", 403, googleError(403, "rateLimitExceededUnreg", "x"), nil, QuotaRate, "rateLimitExceededUnreg"},
		{"the whole API's rate", 403, googleError(403, "servingLimitExceeded", "x"), nil, QuotaRate, "servingLimitExceeded"},
		{"any limit", 403, googleError(403, "limitExceeded", "x"), []string{"Retry-After", "7"}, QuotaRate, "limitExceeded"},
		{"a term's limit", 403, googleError(403, "variableTermLimitExceeded", "x"), nil, QuotaRate, "variableTermLimitExceeded"},
		{"a term's day", 403, googleError(403, "variableTermExpiredDailyExceeded", "x"), nil, QuotaDay, "variableTermExpiredDailyExceeded"},
		{"chart", 404, googleError(404, "videoChartNotFound", "The requested video chart is not supported or is not available."), nil, NotFound, "videoChartNotFound"},
		{"playlist", 404, googleError(404, "playlistNotFound", "x"), nil, NotFound, "playlistNotFound"},
		{"any other 404", 404, "Not Found", nil, NotFound, "status 404"},
		{"bad request", 400, googleError(400, "invalidParameter", "Invalid value"), nil, Invalid, "invalidParameter"},
		{"bad key", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","errors":[{"reason":"badRequest"}],"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, nil, Invalid, "API_KEY_INVALID"},
		{"blocked key", 403, `{"error":{"code":403,"message":"Requests to this API youtube method are blocked.","errors":[{"reason":"forbidden"}],"status":"PERMISSION_DENIED","details":[{"reason":"API_KEY_SERVICE_BLOCKED"}]}}`, nil, Invalid, "API_KEY_SERVICE_BLOCKED"},
		{"API not enabled", 403, googleError(403, "accessNotConfigured", "x"), nil, Invalid, "accessNotConfigured"},
		{"private playlist", 403, googleError(403, "playlistItemsNotAccessible", "x"), nil, Forbidden, "playlistItemsNotAccessible"},
		{"unknown 403", 403, googleError(403, "somethingNew", "x"), nil, Forbidden, "somethingNew"},
		{"backend", 500, googleError(500, "backendError", "x"), nil, Target5xx, "backendError"},
		{"503 with a page", 503, "<html>try later</html>", nil, Target5xx, "status 503"},
		{"5xx that speaks of quota", 500, googleError(500, "quotaExceeded", "x"), nil, Target5xx, "quotaExceeded"},
		{"400 of the backend", 400, googleError(400, "processingFailure", "x"), nil, Target5xx, "processingFailure"},
		{"403 with a page", 403, "<html><title>Sorry...</title>unusual traffic from your computer network", nil, Ban, "status 403"},
		{"429 with a page", 429, "<html><title>Sorry...</title>", nil, Ban, "status 429"},
		{"a reason that is none", 403, googleError(403, "<b>\n", "x"), nil, Forbidden, "status 403"},
		{"203", 203, "{}", nil, NotAFeed, "status 203"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := trending(t, 1)
			_, err := s.Read(answerTo(t, s, Page{}, tt.status, []byte(tt.body), tt.headers...))
			e := wantAnswer(t, err, tt.want)
			if e.Reason != tt.reason {
				t.Errorf("reason %q, want %q", e.Reason, tt.reason)
			}
			if (e.RetryAfter == 7*time.Second) != (len(tt.headers) > 0) {
				t.Errorf("Retry-After %v", e.RetryAfter)
			}
		})
	}
}

func TestYouTubeFailureHidesTheKey(t *testing.T) {
	s := trending(t, 1)
	for _, body := range []string{googleError(400, "badRequest", "key "+testKey+" is wrong"), "<p>" + testKey} {
		_, err := s.Read(answerTo(t, s, Page{}, 400, []byte(body)))
		if e := wantAnswer(t, err, Invalid); strings.Contains(e.Error(), testKey) {
			t.Error(e)
		}
	}
}

func TestSeconds(t *testing.T) {
	for in, want := range map[string]int64{
		"PT4M13S": 253, "PT1H2M3S": 3723, "PT45S": 45, "P1DT1S": 86401, "P1W": 604800, "PT0S": 0, "PT1.5S": 1,
		"P0D": -1, "": -1, "P": -1, "PT": -1, "4M": -1, "PT-1S": -1, "P1Y": -1, "PT99999999999999999999S": -1,
	} {
		got, ok := seconds(in)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

func TestCursor(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := cursor{rapid.IntRange(0, 1<<29).Draw(rt, "page"), rapid.IntRange(0, 1<<29).Draw(rt, "items"), rapid.String().Draw(rt, "token"), rapid.SampledFrom([]string{"", mark("x")}).Draw(rt, "mark")}
		if got := parseCursor(c.String()); got != c {
			rt.Fatalf("%+v, was %+v", got, c)
		}
		got, region := readLabel(label(c, "BD"))
		if got != c || region != "BD" {
			rt.Fatalf("label of %+v reads as %+v", c, got)
		}
	})
	for _, s := range []string{"CAUQAA", "-1.2.x", "1.2", "99999999999999999999.1.x"} {
		if c := parseCursor(s); c.token != s || c.page != 0 || c.items != 0 {
			t.Errorf("%q reads as %+v", s, c)
		}
	}
}

// What encoding/json writes in the API's shape must be read.
func TestReadsListsThatAnotherProgramWrote(t *testing.T) {
	s := trending(t, 0)
	rapid.Check(t, func(rt *rapid.T) {
		var items []any
		var titles []string
		for i := range rapid.IntRange(0, 50).Draw(rt, "n") {
			titles = append(titles, rapid.String().Draw(rt, "title"))
			items = append(items, map[string]any{
				"kind": "youtube#video", "id": fmt.Sprint("v", i), "snippet": map[string]any{"title": titles[i]},
				"statistics": map[string]any{"viewCount": fmt.Sprint(i)},
			})
		}
		body, err := json.MarshalIndent(map[string]any{"kind": "youtube#videoListResponse", "items": append([]any{}, items...)}, " ", "\t")
		if err != nil {
			rt.Fatal(err)
		}
		a, err := s.Read(answerTo(t, s, Page{}, 200, body))
		if err != nil || len(a.Items) != len(items) {
			rt.Fatalf("%v, %d of %d", err, len(a.Items), len(items))
		}
		for i, it := range a.Items {
			if it.Title != titles[i] || it.Fields["view_count"] != int64(i) || it.Fields["like_count"] != nil {
				rt.Fatalf("%+v", it)
			}
		}
	})
}
