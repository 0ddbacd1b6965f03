package jobs

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/faultkit"
	"feedwarden/internal/testredis"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

// proxyCanary is the password of every proxy in these tests. The one place where
// it may stand is the URL of the endpoint in its pool: fw:{pool:NAME}:endpoints, u:ID.
const proxyCanary = "canary-proxy-password-4711"

// end is what a whole road ends in: the job's state and the word for its failure,
// and the endpoint's health after it.
type end struct {
	state  State
	kind   string // of fetch or source, within the job's last error
	health string
	why    allocation.Outcome
}

// Every fault by every kind of proxy, to an http and an https target, along the
// whole road: the outcome's kind, the endpoint's health, no connection past the
// proxy, and no secret anywhere.
func TestEachFaultAlongTheRoad(t *testing.T) {
	ca, err := faultkit.NewAuthority("of the test")
	if err != nil {
		t.Fatal(err)
	}
	target, err := faultkit.StartTarget(context.WithoutCancel(t.Context()), ca, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		fmt.Fprintf(w, `<?xml version="1.0"?><rss version="2.0"><channel><title>%s</title><item><guid>1</guid><title>One</title></item></channel></rss>`, strings.Repeat("long ", 20_000))
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })

	quarantined := func(kind fetch.Kind, why allocation.Outcome) end {
		return end{Failed, string(kind), allocation.Quarantined, why}
	}
	done := end{state: Done, health: allocation.Active}
	refused := end{Failed, string(fetch.KindProxyAuth), allocation.AuthFailed, allocation.ProxyAuth}
	forged := quarantined(fetch.KindTLS, allocation.TLS)
	// Keys are "proxy/target", "proxy/", "/target", or "" for all others.
	wants := map[faultkit.Fault]map[string]end{
		faultkit.NoFault:   {"": done},
		faultkit.Gone:      {"": quarantined(fetch.KindConnect, allocation.Connect)},
		faultkit.Drop:      {"": quarantined(fetch.KindReset, allocation.Reset)},
		faultkit.Hang:      {"": quarantined(fetch.KindTimeout, allocation.Timeout)},
		faultkit.Mute:      {"": quarantined(fetch.KindTimeout, allocation.Timeout)},
		faultkit.Drip:      {"": quarantined(fetch.KindTimeout, allocation.Timeout)},
		faultkit.Auth:      {"": refused},
		faultkit.Garbage:   {"": quarantined(fetch.KindProtocol, allocation.Reset), "socks5/": quarantined(fetch.KindReset, allocation.Reset)},
		faultkit.Reset:     {"": quarantined(fetch.KindReset, allocation.Reset)},
		faultkit.HalfClose: {"": quarantined(fetch.KindTruncated, allocation.Reset)},
		// A 502 to an http request may be the target's own word: the endpoint is not blamed.
		faultkit.Refuse:    {"": quarantined(fetch.KindUnreachable, allocation.Unreachable), "http/http": {Failed, string(source.Target5xx), allocation.Active, ""}, "https/http": {Failed, string(source.Target5xx), allocation.Active, ""}},
		faultkit.WrongCert: {"/http": done, "/https": forged},
		faultkit.Inject:    {"/http": {Failed, string(source.NotAFeed), allocation.Active, ""}, "/https": forged},
		faultkit.Alter:     {"/http": done, "/https": forged}, // XML ends with its root: what comes after it is not read
		faultkit.Reveal:    {"": done},
	}
	type run struct {
		name, feed string
		proxy      *faultkit.Proxy
		want       end
		job        string
	}
	var runs []*run
	var pools []allocation.Config
	var feeds []Feed
	for fault, byWay := range wants {
		for _, scheme := range []string{"http", "https", "socks5"} {
			for kind, base := range map[string]string{"http": target.HTTP, "https": target.HTTPS} {
				p, err := faultkit.Start(context.WithoutCancel(t.Context()), scheme, faultkit.Options{Authority: ca, User: "ann", Password: proxyCanary})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.Close() })
				if err := p.Fail(fault, 20_000); err != nil {
					t.Fatal(err)
				}
				word := string(fault)
				if fault == faultkit.NoFault {
					word = "well"
				}
				r := &run{name: fmt.Sprintf("%s/%s proxy/%s target", word, scheme, kind), feed: word + "-" + scheme + "-" + kind, proxy: p, want: byWay[""]}
				for _, key := range []string{"/" + kind, scheme + "/", scheme + "/" + kind} {
					if w, ok := byWay[key]; ok {
						r.want = w
					}
				}
				pools = append(pools, allocation.Config{Name: r.feed, AllowPrivate: true})
				feeds = append(feeds, Feed{Name: r.feed, Source: source.Config{Kind: "syndication", URL: base + "/feed.xml?key=canary-query-key"},
					Pool: r.feed, Cost: 1, Attempts: 1, History: 1, MaxSnooze: time.Hour})
				runs = append(runs, r)
			}
		}
	}
	var log syncLog
	w := newWorld(t, func(w *world) {
		w.cfg.Feeds, w.cfg.Concurrency = feeds, 40
		w.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	if w.pools, err = allocation.New(w.rdb, pools); err != nil {
		t.Fatal(err)
	}
	fetcher := fetch.New(fetch.Config{
		AllowPrivate: true, RootCAs: ca.Pool(), Timeout: 40 * time.Second, HeaderTimeout: 10 * time.Second, IdleBody: 10 * time.Second, MinRate: 5_000,
	})
	t.Cleanup(fetcher.Close)
	h, err := NewHandler(w.cfg, w.rdb, w.desk, w.store, w.limiter, w.pools, fetcher, w.log)
	if err != nil {
		t.Fatal(err)
	}
	worker := NewWorker(w.cfg, h, w.rdb, w.log)
	for _, r := range runs {
		if _, err := w.pools.Import(t.Context(), r.feed, strings.NewReader(r.proxy.URL().String()), nil); err != nil {
			t.Fatal(err)
		}
		r.job = w.enqueue(Spec{Feed: r.feed}).ID
	}
	if err := worker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Stop(context.Background()) })

	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			var j Job
			w.eventually(2*time.Minute, func() string {
				j = w.get(r.job)
				if !j.State.Ended() {
					return fmt.Sprintf("job of %s is %s", r.feed, j.State)
				}
				return ""
			})
			if j.State != r.want.state || r.want.kind != "" && !strings.Contains(j.LastError, ": "+r.want.kind+": ") {
				t.Errorf("the job is %s (%s), want %s with %q", j.State, j.LastError, r.want.state, r.want.kind)
			}
			e, err := w.pools.Endpoint(t.Context(), r.feed, allocation.ID(r.proxy.URL()))
			if err != nil || e.State != r.want.health || e.Why != string(r.want.why) || e.Count != 1 {
				t.Errorf("the endpoint is %+v (%v), want %s because of %q", e, err, r.want.health, r.want.why)
			}
			for _, s := range r.proxy.Seen() {
				if s.Method != "socks5" && s.Password != proxyCanary {
					t.Errorf("it was not given its login: %+v", s)
				}
			}
		})
	}
	if n := target.Direct(); n != 0 {
		t.Errorf("%d connections reached the target past the proxies", n)
	}
	for _, a := range target.Seen() {
		if a.Header.Get("Proxy-Authorization") != "" {
			t.Error("the target was shown a proxy's login")
		}
	}
	noSecrets(t, "the log", log.String())
	for at, value := range testredis.Dump(t, w.rdb) {
		if strings.HasPrefix(at, "fw:{pool:") && strings.Contains(at, "}:endpoints u:") {
			value = ""
		}
		noSecrets(t, "Redis, "+at, at+" "+value)
	}
}

// A target that is down takes no pool with it, though each proxy says that the way
// is barred: the target is paused, the endpoints stay, and later jobs send nothing.
func TestDeadTargetIsPausedAndThePoolStaysWhole(t *testing.T) {
	t.Parallel()
	well, err := faultkit.NewAuthority("of the test")
	if err != nil {
		t.Fatal(err)
	}
	list := []string{faultkit.Tinyproxy(t, nil).String(), faultkit.Microsocks(t, nil).String()}
	for _, scheme := range []string{"http", "socks5", "http"} {
		p, err := faultkit.Start(context.WithoutCancel(t.Context()), scheme, faultkit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		list = append(list, p.URL().String())
	}
	target, err := faultkit.StartTarget(context.WithoutCancel(t.Context()), well, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil { // nobody listens any more
		t.Fatal(err)
	}
	w := newWorld(t, func(w *world) {
		w.cfg.Feeds = nil
		for i := range 5 {
			w.cfg.Feeds = append(w.cfg.Feeds, Feed{Name: fmt.Sprintf("dead-%d", i), Source: source.Config{Kind: "syndication", URL: target.HTTPS + "/feed.xml"},
				Pool: "proxies", Cost: 1, Attempts: 1, History: 1, MaxSnooze: time.Hour})
		}
	})
	if _, err := w.pools.Import(t.Context(), "proxies", strings.NewReader(strings.Join(list, "\n")), nil); err != nil {
		t.Fatal(err)
	}
	fetcher := fetch.New(fetch.Config{AllowPrivate: true, RootCAs: well.Pool(), Timeout: 20 * time.Second})
	t.Cleanup(fetcher.Close)
	h, err := NewHandler(w.cfg, w.rdb, w.desk, w.store, w.limiter, w.pools, fetcher, w.log)
	if err != nil {
		t.Fatal(err)
	}
	worker := NewWorker(w.cfg, h, w.rdb, w.log)
	if err := worker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Stop(context.Background()) })
	failed := 0
	for i := range 5 {
		id := w.enqueue(Spec{Feed: fmt.Sprintf("dead-%d", i)}).ID
		w.eventually(2*time.Minute, func() string {
			j := w.get(id)
			if !j.State.Ended() && j.State != Snoozed {
				return fmt.Sprintf("job %d is %s", i, j.State)
			}
			if j.State == Failed {
				if failed++; !strings.Contains(j.LastError, ": "+string(fetch.KindUnreachable)+": ") {
					t.Errorf("job %d failed: %s", i, j.LastError)
				}
			}
			return ""
		})
	}
	st, err := w.pools.State(t.Context(), "proxies")
	if err != nil || st.Eligible != 5 || failed != 3 { // three of five are enough to judge by
		t.Errorf("%+v %v after %d failed jobs, want five eligible after three", st, err, failed)
	}
	paused, err := w.pools.Targets(t.Context(), "proxies")
	if err != nil || len(paused) != 1 || paused[0].Paused.IsZero() {
		t.Errorf("%+v %v, want the target paused", paused, err)
	}
}

// noSecrets looks for the password and the key in each form that they have on the wire.
func noSecrets(t *testing.T, where, text string) {
	t.Helper()
	for _, s := range []string{proxyCanary, url.QueryEscape(proxyCanary), base64.StdEncoding.EncodeToString([]byte("ann:" + proxyCanary)), "canary-query-key"} {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s holds a secret: …%s…", where, text[max(0, i-100):min(len(text), i+60)])
		}
	}
}

// syncLog is a log that several goroutines write.
type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncLog) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
