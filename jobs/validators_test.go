package jobs

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"feedwarden/jobs/source"
)

// A target that says "not modified" speaks of what was asked for before. Once
// the config asks something else, or reads it otherwise, it is asked for whole.
func TestValidatorsAreNotSentForAFeedThatIsAskedOrReadOtherwise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*source.Config)
		title  string
	}{
		{"another address with the same entity tag", func(c *source.Config) { c.URL += ".other" }, "of /feed.xml.other"},
		{"another reading of the same answer", func(c *source.Config) { c.Map = map[string]string{"id": ".id", "title": ".b"} }, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withFeed(func(f *Feed) {
				f.Source.Kind, f.Source.Items, f.Source.Map = "json", ".[]", map[string]string{"id": ".id", "title": ".a"}
			}))
			w.upstream.on(func(_ int, rw http.ResponseWriter, r *http.Request) bool {
				rw.Header().Set("ETag", `"one"`)
				rw.Header().Set("Last-Modified", "Mon, 30 Nov 2026 08:00:00 GMT")
				if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" {
					rw.WriteHeader(http.StatusNotModified)
					return true
				}
				fmt.Fprintf(rw, `[{"id":"x","a":"of %s","b":"b"}]`, r.URL.Path)
				return true
			})
			h := w.handler()
			w.start(NewWorker(w.cfg, h, w.rdb, w.log))
			w.until(w.enqueue(Spec{}).ID, Done)
			if j := w.until(w.enqueue(Spec{}).ID, Done); !strings.Contains(string(j.Result), "not modified") {
				t.Errorf("unchanged: %s", j.Result)
			}
			c.change(&w.cfg.Feeds[0].Source)
			if err := h.catalog.Reload(w.cfg.Feeds); err != nil {
				t.Fatal(err)
			}
			w.until(w.enqueue(Spec{}).ID, Done)
			v, err := w.store.Get(t.Context(), "news", 0)
			if err != nil || v.Version != 2 || v.Items[0].Title != c.title {
				t.Errorf("%+v %v", v, err)
			}
			if j := w.until(w.enqueue(Spec{}).ID, Done); !strings.Contains(string(j.Result), "not modified") {
				t.Errorf("unchanged again: %s", j.Result)
			}
		})
	}
}

// No validator keeps a feed from being had again: not one that is too long for
// a request, nor one that the target refuses.
func TestNoValidatorShutsAFeedOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, etag string
		status     int // of the answer to a conditional request
		failures   int
	}{
		{"longer than servers take", `"` + strings.Repeat("x", 100_000) + `"`, http.StatusRequestHeaderFieldsTooLarge, 0},
		{"a weak one", `W/"a"`, http.StatusPreconditionFailed, 1},
		{"one without quotes", "abc", http.StatusBadRequest, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withFeed(func(f *Feed) {
				f.Source.Kind, f.Source.Items, f.Source.Map = "json", ".[]", map[string]string{"id": ".id"}
			}))
			w.upstream.on(func(n int, rw http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("If-None-Match") != "" {
					rw.WriteHeader(c.status)
					return true
				}
				rw.Header().Set("ETag", c.etag)
				fmt.Fprintf(rw, `[{"id":"%d"}]`, n)
				return true
			})
			w.start(NewWorker(w.cfg, w.handler(), w.rdb, w.log))
			w.until(w.enqueue(Spec{}).ID, Done)
			for range c.failures {
				w.until(w.enqueue(Spec{}).ID, Failed)
			}
			w.until(w.enqueue(Spec{}).ID, Done)
		})
	}
}
