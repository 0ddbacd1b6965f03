package demo

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"feedwarden/internal/faultkit"
)

// Upstream answers like the YouTube Data API, and serves a feed.
type Upstream struct {
	o       Options
	exits   *faultkit.Exits
	addr    string
	server  *http.Server
	record  *record
	running sync.WaitGroup

	mu      sync.Mutex
	budgets map[string]*budget

	delay     atomic.Int64 // nanoseconds
	hang      atomic.Pointer[context.Context]
	intercept atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

// StartUpstream starts an upstream on a free port of 127.0.0.1.
func StartUpstream(ctx context.Context, o Options) (*Upstream, error) {
	return startUpstream(ctx, o, faultkit.NewExits())
}

func startUpstream(ctx context.Context, o Options, e *faultkit.Exits) (*Upstream, error) {
	o = o.withDefaults()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	u := &Upstream{o: o, exits: e, addr: l.Addr().String(), record: newRecord(), budgets: map[string]*budget{}}
	u.record.stats.Limit, u.record.stats.Window = o.Limit, o.Window
	u.delay.Store(int64(o.Delay))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /youtube/v3/videos", u.videos)
	mux.HandleFunc("GET /feed.xml", u.feed)
	mux.HandleFunc("GET /thumb/{name}", u.thumb)
	mux.HandleFunc("GET /story/{n}", u.story)
	u.server = &http.Server{
		Handler:           u.watched(mux),
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	u.running.Go(func() { _ = u.server.Serve(l) })
	return u, nil
}

// URL is the upstream's root, without a slash at the end.
func (u *Upstream) URL() string { return "http://" + u.addr }

// BaseURL is the API's, as a feed's base_url.
func (u *Upstream) BaseURL() string { return u.URL() + "/youtube/v3" }

// FeedURL is the RSS feed.
func (u *Upstream) FeedURL() string { return u.URL() + "/feed.xml" }

// Stats are the counters.
func (u *Upstream) Stats() UpstreamStats { return u.record.snapshot() }

// Log is the latest requests, oldest first; some thousand at most.
func (u *Upstream) Log() []Seen { return u.record.log() }

// SetDelay changes how long every answer takes.
func (u *Upstream) SetDelay(d time.Duration) { u.delay.Store(int64(d)) }

// Hang lets every request wait until ctx ends; those that wait then are
// answered.
func (u *Upstream) Hang(ctx context.Context) { u.hang.Store(&ctx) }

// Intercept is asked before every request; one that it answers, by true, goes
// no further. nil ends it.
func (u *Upstream) Intercept(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		u.intercept.Store(nil)
		return
	}
	u.intercept.Store(&f)
}

// Close ends the upstream and all its connections.
func (u *Upstream) Close() error {
	err := u.server.Close()
	u.running.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// watched logs every request and makes it wait as the switches say.
func (u *Upstream) watched(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api := strings.HasPrefix(r.URL.Path, "/youtube/")
		n := u.record.arrive(Seen{
			At: u.o.Now(), Path: r.URL.Path, Region: r.URL.Query().Get("regionCode"),
			Remote: r.RemoteAddr, Via: u.exits.Via(r.RemoteAddr),
		}, api)
		a := &answer{ResponseWriter: w, status: http.StatusOK}
		defer func() { u.record.answered(n, a.status, a.overQuota) }()
		if !u.wait(r.Context()) {
			a.status = 0
			return
		}
		if f := u.intercept.Load(); f != nil && (*f)(a, r) {
			return
		}
		next.ServeHTTP(a, r)
	})
}

// wait says whether the client is still there.
func (u *Upstream) wait(ctx context.Context) bool {
	if hang := u.hang.Load(); hang != nil {
		select {
		case <-(*hang).Done():
		case <-ctx.Done():
			return false
		}
	}
	if d := time.Duration(u.delay.Load()); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// answer remembers what was answered.
type answer struct {
	http.ResponseWriter
	status    int
	overQuota bool
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// spend charges a key's budget.
func (u *Upstream) spend(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.budgets[key]
	if b == nil {
		if len(u.budgets) >= keptNames {
			return false
		}
		b = &budget{limit: u.o.Limit, window: u.o.Window, slack: u.o.Slack}
		u.budgets[key] = b
	}
	ok := b.spend(u.o.Now(), u.o.Cost)
	u.record.peak(b.peak)
	return ok
}

// period is the number of the charts' present period.
func (u *Upstream) period() int64 { return u.o.Now().UnixNano() / int64(u.o.Period) }

// send writes a body with its ETag, or a 304 to a matching validator.
func send(w http.ResponseWriter, r *http.Request, contentType, etag string, body []byte) {
	w.Header().Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "private, max-age=0")
	_, _ = w.Write(body)
}

func matches(ifNoneMatch, etag string) bool {
	for _, v := range strings.Split(ifNoneMatch, ",") {
		if v = strings.TrimSpace(v); v == "*" || strings.TrimPrefix(v, "W/") == etag {
			return true
		}
	}
	return false
}

func tagOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:20])
}
