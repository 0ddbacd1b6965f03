package jobs

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"feedwarden/internal/faultkit"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/robots"
)

// site is a host with a robots.txt, and a log of what it was asked for.
type site struct {
	mu     sync.Mutex
	robots http.HandlerFunc // nil: 404
	asked  []string
	when   []time.Time
}

func withRobots(f *Feed) { f.Robots = true }

// site makes the upstream one; page answers what is not the file.
func (w *world) site(file http.HandlerFunc, page http.HandlerFunc) *site {
	s := &site{robots: file}
	w.upstream.on(func(n int, rw http.ResponseWriter, r *http.Request) bool {
		s.mu.Lock()
		s.asked, s.when = append(s.asked, r.URL.Path), append(s.when, time.Now())
		file := s.robots
		s.mu.Unlock()
		switch {
		case r.URL.Path == "/robots.txt" && file == nil:
			http.NotFound(rw, r)
		case r.URL.Path == "/robots.txt":
			file(rw, r)
		case page != nil:
			page(rw, r)
		default:
			return false
		}
		return true
	})
	return s
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func (s *site) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// quick is a handler whose fetches end soon.
func (w *world) quick() *Handler {
	w.t.Helper()
	h := w.handler()
	f := fetch.New(fetch.Config{AllowPrivate: true, Timeout: 300 * time.Millisecond, UserAgent: "my-feeds/1.0 (+https://example.org/contact)"})
	w.t.Cleanup(f.Close)
	h.fetcher, h.robots.fetcher = f, f
	return h
}

func TestRobotsTxtByWhatItAnswers(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	loop := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/robots.txt", http.StatusFound) }
	private := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
	}
	for name, tt := range map[string]struct {
		file http.HandlerFunc
		want State
		says string
	}{
		"404":                     {nil, Done, ""},
		"403":                     {status(403), Done, ""},
		"redirects without end":   {loop, Done, ""},
		"allowed":                 {text("User-agent: *\nDisallow: /private\n"), Done, ""},
		"a page in its place":     {text("<!DOCTYPE html><title>Welcome: all</title>"), Done, ""},
		"500":                     {status(500), Snoozed, "it answered 500"},
		"429":                     {status(429), Snoozed, "it answered 429"},
		"time-out":                {hang, Snoozed, "no whole answer"},
		"redirect to a bad place": {private, Snoozed, "never a target"},
		"a bad Crawl-delay line":  {text("User-agent: *\nCrawl-delay: a while\nDisallow: /feed\n"), Failed, `line 3, for *: "Disallow: /feed" forbids`},
		"a group for our name":    {text("User-agent: my-feeds\nDisallow: /\n\nUser-agent: *\nAllow: /\n"), Failed, "line 2, for my-feeds"},
		"a group for another":     {text("User-agent: your-feeds\nDisallow: /\n"), Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withQuota(100, time.Hour), withFeed(withRobots))
			s := w.site(tt.file, nil)
			w.start(NewWorker(w.cfg, w.quick(), w.rdb, w.log))
			begun := time.Now()
			j := w.until(w.enqueue(Spec{}).ID, tt.want)
			pages := len(slices.DeleteFunc(s.log(), func(p string) bool { return p == "/robots.txt" }))
			if tt.want == Done {
				if pages != 1 || w.charged(0) != 1 {
					t.Errorf("%d pages, %d units", pages, w.charged(0))
				}
				return
			}
			if pages != 0 || w.charged(0) != 0 {
				t.Errorf("the page was asked for %d times, and %d units were taken", pages, w.charged(0))
			}
			if !strings.Contains(j.LastError, tt.says) || !strings.Contains(j.LastError, w.upstream.URL+"/robots.txt") {
				t.Errorf("it says %q", j.LastError)
			}
			if tt.want == Snoozed {
				if d := j.NextAt.Sub(begun); d < 55*time.Second || d > 65*time.Second || j.Attempts != 0 {
					t.Errorf("asleep for %s after %d attempts", d, j.Attempts)
				}
			}
		})
	}
}

func TestRobotsTxtIsAskedForOnceByAllWorkers(t *testing.T) {
	t.Parallel()
	const jobs = 30
	w := newWorld(t, withFeed(withRobots))
	s := w.site(func(rw http.ResponseWriter, r *http.Request) {
		select { // long enough for the others to come
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
		}
		text("User-agent: *\nAllow: /\n")(rw, r)
	}, nil)
	w.crowd("job", jobs, func(int) string { return "news" })
	w.crew(3)
	w.ended(jobs, 30*time.Second)
	files := 0
	for _, p := range s.log() {
		if p == "/robots.txt" {
			files++
		}
	}
	if files != 1 || len(s.log()) != jobs+1 {
		t.Errorf("%d requests, %d of them for robots.txt", len(s.log()), files)
	}
	if ttl := w.rdb.TTL(t.Context(), "fw:{robots:"+w.upstream.URL+"}:file").Val(); ttl <= 23*time.Hour || ttl > 24*time.Hour {
		t.Errorf("kept for %s", ttl)
	}
}

// The start of a robots request counts like a page's, and a Crawl-delay is the
// host's delay where it is the longer one.
func TestRobotsTxtCountsToTheHostsDelayAndSetsIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config, crawl time.Duration
		first, then   time.Duration // least time between the starts: to the file, after it
	}{
		"delay of the config":   {400 * time.Millisecond, 0, 400 * time.Millisecond, 400 * time.Millisecond},
		"Crawl-delay":           {0, 400 * time.Millisecond, 0, 400 * time.Millisecond},
		"the longer of the two": {200 * time.Millisecond, 500 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withFeed(withRobots), withConfig(func(c *Config) { c.PerHost.Delay = tt.config }))
			s := w.site(text(fmt.Sprintf("User-agent: *\nCrawl-delay: %g\n", tt.crawl.Seconds())), nil)
			w.crowd("job", 4, func(int) string { return "news" })
			w.crew(2)
			w.ended(4, 30*time.Second)
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.asked) != 5 || s.asked[0] != "/robots.txt" {
				t.Fatalf("asked for %q", s.asked)
			}
			for i := 1; i < len(s.when); i++ {
				least := tt.then
				if i == 1 {
					least = tt.first
				}
				// Turns are kept in Redis; a request arrives later than its turn by what the machine takes.
				if d := s.when[i].Sub(s.when[i-1]); d < least-150*time.Millisecond {
					t.Errorf("request %d came %s after the one before, want %s at least", i, d, least)
				}
			}
		})
	}
}

func TestRedirectsTargetsRobotsTxtCountsToo(t *testing.T) {
	t.Parallel()
	away := newUpstream(t) // another host
	var mu sync.Mutex
	var asked []string
	away.on(func(_ int, rw http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			text("User-agent: *\nDisallow: /shut\n")(rw, r)
			return true
		}
		return false
	})
	for name, tt := range map[string]struct {
		to   string
		want State
		says string
	}{
		"to a page of the host that is forbidden": {"/private/feed", Failed, "line 2"},
		"to a page of the host that is not":       {"/open", Done, ""},
		"to another host, forbidden there":        {away.URL + "/shut", Failed, away.URL + "/robots.txt, line 2"},
		"to another host":                         {away.URL + "/open", Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withQuota(9, time.Hour), withFeed(withRobots))
			s := w.site(text("User-agent: *\nDisallow: /private\n"), func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/feed.xml" {
					http.Redirect(rw, r, tt.to, http.StatusFound)
					return
				}
				writeFeed(rw, 1)
			})
			w.work()
			j := w.until(w.enqueue(Spec{}).ID, tt.want)
			if !strings.Contains(j.LastError, tt.says) {
				t.Errorf("it says %q", j.LastError)
			}
			if slices.Contains(s.log(), "/private/feed") {
				t.Error("the forbidden page was asked for")
			}
			if w.charged(0) != 1 { // the first hop went out
				t.Errorf("%d units", w.charged(0))
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(asked, "/shut") {
		t.Errorf("the other host was asked for %q", asked)
	}
}

// An endpoint that fails says nothing about the host: nothing is kept, the job
// sleeps for a moment and takes another. And no request goes past the proxies.
func TestRobotsTxtThroughAnEndpointThatFails(t *testing.T) {
	t.Parallel()
	ca, err := faultkit.NewAuthority("of the test")
	if err != nil {
		t.Fatal(err)
	}
	target, err := faultkit.StartTarget(context.WithoutCancel(t.Context()), ca, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	for name, fault := range map[string]faultkit.Fault{"gone": faultkit.Gone, "drops": faultkit.Drop, "hangs": faultkit.Hang, "wants a login": faultkit.Auth} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withQuota(9, time.Hour), withFeed(withRobots), withFeed(func(f *Feed) {
				f.Pool, f.Source.URL = "proxies", target.HTTP+"/feed.xml"
			}))
			p, err := faultkit.Start(context.WithoutCancel(t.Context()), "http", faultkit.Options{User: "ann", Password: proxyCanary})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			if err := p.Fail(fault, 0); err != nil {
				t.Fatal(err)
			}
			w.proxy(p.URL())
			w.start(NewWorker(w.cfg, w.quick(), w.rdb, w.log))
			j := w.until(w.enqueue(Spec{}).ID, Snoozed)
			if !strings.Contains(j.LastError, "/robots.txt could not be read") || j.Attempts != 0 || w.charged(0) != 0 {
				t.Errorf("%d attempts, %d units: %q", j.Attempts, w.charged(0), j.LastError)
			}
			u, _ := url.Parse(target.HTTP)
			if _, fresh, err := robots.NewStore(w.rdb).Get(t.Context(), u, "my-feeds", time.Now()); fresh || err != nil {
				t.Errorf("something is kept of the host: %v", err)
			}
			if n := w.rdb.Exists(t.Context(), "fw:{robots:"+target.HTTP+"}:claim").Val(); n != 0 {
				t.Error("the claim is held on")
			}
		})
	}
	if n := target.Direct(); n != 0 {
		t.Errorf("%d connections past the proxies", n)
	}
}

func (w *world) proxy(u *url.URL) {
	w.t.Helper()
	res, err := w.pools.Import(w.t.Context(), "proxies", strings.NewReader(u.String()), nil)
	if err != nil || res.Accepted != 1 {
		w.t.Fatalf("%+v %v", res, err)
	}
}

// The proxy that the environment names carries the page and its robots.txt.
func TestPoolThatIsTheEnvironments(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	p := newUpstream(t) // it answers for every host, as a proxy of its own
	p.on(func(_ int, rw http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		asked = append(asked, r.URL.String())
		mu.Unlock()
		if r.URL.Path == "/robots.txt" {
			http.NotFound(rw, r)
			return true
		}
		return false
	})
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "NO_PROXY", "HTTPS_PROXY", "REQUEST_METHOD"} {
		t.Setenv(name, "")
	}
	t.Setenv("HTTP_PROXY", p.URL)
	w := newWorld(t, withFeed(withRobots), withFeed(func(f *Feed) { f.Pool, f.Source.URL = Environment, "http://feeds.example.com/feed.xml" }))
	w.work()
	w.until(w.enqueue(Spec{}).ID, Done)
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"http://feeds.example.com/robots.txt", "http://feeds.example.com/feed.xml"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}
