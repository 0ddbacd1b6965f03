package probe

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"feedwarden/internal/testredis"
	"feedwarden/jobs/fetch"
)

// A list's life: fetched, not changed, changed, and every way of failing, which
// leaves the pool as it is and says why.
func TestAListIsFollowedAndAFailureChangesNothing(t *testing.T) {
	t.Parallel()
	name := testredis.Name("list")
	ps, rdb := pools(t, name, nil)
	var web serving
	server := judgeAt(t, authority(t), web.ServeHTTP)
	var log bytes.Buffer
	const listPassword = "canary-list-password"
	address := strings.Replace(server.HTTP, "://", "://ann:"+listPassword+"@", 1) + "/list.txt?key=canary-list-key"
	l := NewLists(map[string]List{name: {URL: address, Every: time.Hour}}, fetch.Config{AllowPrivate: true}, rdb, ps, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(l.Close)
	var seen []*http.Request
	serve := func(etag, body string) {
		web.set(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r)
			if r.Header.Get("If-None-Match") == etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("ETag", etag)
			_, _ = fmt.Fprint(w, body)
		})
	}
	ids := func() string {
		t.Helper()
		list, err := ps.List(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range list {
			out = append(out, strings.TrimPrefix(e.ID, "http://"))
		}
		return strings.Join(out, " ")
	}
	if due, err := l.Due(t.Context(), name, time.Now()); err != nil || !due {
		t.Error("a list that was never fetched is not due", err)
	}
	serve(`"1"`, "192.0.2.1:80\n192.0.2.2:80:user:canary-proxy\nnonsense line\n")
	res, err := l.Refresh(t.Context(), name)
	if err != nil || res.Accepted != 2 || res.Rejected != 1 || ids() != "192.0.2.1:80 user@192.0.2.2:80" {
		t.Fatalf("%+v %v: %s", res, err, ids())
	}
	if due, err := l.Due(t.Context(), name, time.Now()); err != nil || due {
		t.Error("a list that was just fetched is due", err)
	}
	if res, err := l.Refresh(t.Context(), name); err != nil || !res.Unchanged {
		t.Errorf("%+v %v", res, err)
	}
	serve(`"2"`, "192.0.2.1:80\n192.0.2.3:80\n")
	if res, err := l.Refresh(t.Context(), name); err != nil || res.Accepted != 1 || res.Retired != 1 || ids() != "192.0.2.1:80 192.0.2.3:80" {
		t.Errorf("%+v %v: %s", res, err, ids())
	}
	if user, pass, ok := seen[0].BasicAuth(); !ok || user != "ann" || pass != listPassword {
		t.Error("the login was not sent")
	}
	before := ids()
	for fault, h := range map[string]http.HandlerFunc{
		"500":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"404":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
		"an error page": text("<!doctype html>\n<title>Sorry</title>\n<p>We are away."),
		"an empty file": text(""),
		"cut short": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("192.0.2.9:80\n"))
		},
		"too large":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxList+1)) },
		"a foreign 304": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"another's origin": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.2:9/x?key=canary-list-key", http.StatusFound)
		},
	} {
		web.set(h)
		if _, err := l.Refresh(t.Context(), name); err == nil {
			t.Errorf("%s: no error", fault)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error shows a secret: %v", fault, err)
		}
		st, err := l.State(t.Context(), name)
		if err != nil || st.Error == "" || st.Succeeded.IsZero() || strings.Contains(fmt.Sprint(st), "canary") {
			t.Errorf("%s: %+v %v", fault, st, err)
		}
		if got := ids(); got != before {
			t.Errorf("%s: the pool is %s", fault, got)
		}
	}
	serve(`"3"`, "192.0.2.1:80\n")
	if res, err := l.Refresh(t.Context(), name); err != nil || res.Retired != 1 || ids() != "192.0.2.1:80" {
		t.Errorf("%+v %v: %s", res, err, ids())
	}
	if st, err := l.State(t.Context(), name); err != nil || st.Error != "" {
		t.Errorf("%+v %v", st, err)
	}
	if strings.Contains(log.String(), "canary") {
		t.Errorf("the log shows a secret: %s", &log)
	}
	// What is kept of it holds neither login nor key; the pool's own u: fields hold proxies' URLs.
	kept, err := rdb.HGetAll(t.Context(), listKey(name)).Result()
	if err != nil || len(kept) == 0 || strings.Contains(fmt.Sprint(kept), "canary") {
		t.Errorf("%v %v", kept, err)
	}
}

// A list's address is held to the rules of targets.
func TestAListIsFetchedUnderTheRulesOfTargets(t *testing.T) {
	t.Parallel()
	name := testredis.Name("list")
	ps, rdb := pools(t, name, nil)
	server := judgeAt(t, authority(t), text("192.0.2.1:80\n"))
	for _, address := range []string{server.HTTP, "http://169.254.169.254/latest"} {
		l := NewLists(map[string]List{name: {URL: address, Every: time.Hour}}, fetch.Config{}, rdb, ps, slog.New(slog.DiscardHandler))
		t.Cleanup(l.Close)
		if _, err := l.Refresh(t.Context(), name); err == nil || !strings.Contains(err.Error(), "policy") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if server.Direct() != 0 {
		t.Error("it was asked")
	}
	if _, err := ps.List(t.Context(), name); err != nil {
		t.Error(err)
	}
}
