package web

import (
	"strings"
	"testing"
	"time"
)

func TestAPartThatCannotBeHadIsAProblemAndAnUnknownUnitIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("news", time.Minute, [][]byte{[]byte("raw")}, item("a", "A"))
	for _, path := range []string{"/v1/feeds/news", "/v1/feeds/news?as=raw", "/v1/feeds/news?version=1", "/assets/style.css"} {
		whole := w.get(path)
		w.wantStatus(whole, 200)
		rec := w.get(path, "Range", "bytes=9999999-")
		if w.wantProblem(rec, 416, "range"); !strings.HasPrefix(rec.Header().Get("Content-Range"), "bytes */") || rec.Header().Get("ETag") != "" {
			t.Errorf("%s: %v", path, rec.Header())
		}
		rec = w.get(path, "If-Match", `"other"`)
		if w.wantProblem(rec, 412, "other-version"); rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, rec.Header())
		}
		rec = w.get(path, "Range", "items=0-1")
		if rec.Code != 200 || rec.Body.String() != whole.Body.String() {
			t.Errorf("%s, of an unknown unit: %d", path, rec.Code)
		}
		if rec = w.get(path, "Range", "bytes=0-1"); rec.Code != 206 || rec.Body.String() != whole.Body.String()[:2] {
			t.Errorf("%s, the first two bytes: %d %q", path, rec.Code, rec.Body)
		}
		for _, none := range []string{"", " ", ","} {
			w.wantStatus(w.get(path, "Accept", none), 200)
		}
	}
}
