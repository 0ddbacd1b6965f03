package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/robots"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

// Trier fetches a feed's first page by hand, on the road that jobs take and with
// its rules: running limits, robots.txt, units, the host's turn, an endpoint. It
// stores nothing of what came. It stands in no line: what refuses a job refuses
// it at once. It sends no validators: what it asks for, it gets whole.
type Trier struct {
	cfg     Config
	catalog *Catalog
	limiter Limiter
	leases  *quota.Leases
	pacer   *pacer
	pools   Allocator
	fetcher *fetch.Client
	robots  usher
	log     *slog.Logger
}

// NewTrier does no I/O.
func NewTrier(cfg Config, c *Catalog, rdb redis.UniversalClient, l Limiter, leases *quota.Leases, p Allocator, f *fetch.Client, log *slog.Logger) *Trier {
	return &Trier{cfg: cfg, catalog: c, limiter: l, leases: leases, pacer: newPacer(rdb, cfg.PerHost.Delay), pools: p, fetcher: f,
		robots: newUsher(cfg, rdb, f), log: log}
}

// trying is one trial on its way.
type trying struct {
	*Trier
	Trial
	feed Feed
	src  source.Source
	req  fetch.Request
	url  *url.URL
	open func(param string) bool
	id   string // under which it holds and charges
	via  fetch.Via
	a    allocation.Allocation
}

// trialRefusal ends a trial before its request: a job would wait.
type trialRefusal struct {
	why   string
	after time.Duration
}

func (e *trialRefusal) Error() string { return e.why }

// turnMost is how long a trial waits for the host's turn.
const turnMost = 10 * time.Second

// Try fetches one page. open says which parameters' values may be shown. What
// keeps it from reading is in the Trial, not an error; errors are
// *UnknownFeedError, *SpecError where the parameters can never work, and those of
// Redis.
func (t *Trier) Try(ctx context.Context, name string, params map[string]string, open func(param string) bool) (Trial, error) {
	f, src, err := t.catalog.find(name)
	if err != nil {
		return Trial{}, err
	}
	req, err := src.Request(source.Page{Params: params})
	if err != nil {
		return Trial{}, &SpecError{Problem: err.Error()}
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return Trial{}, &SpecError{Problem: "its URL cannot be parsed"} // and is not quoted
	}
	header, err := t.fetcher.Header(req)
	if err != nil {
		return Trial{}, &SpecError{Problem: err.Error()}
	}
	w := &trying{Trier: t, feed: f, src: src, req: req, url: u, open: open, id: "try-" + newToken()}
	w.Feed = name
	w.Request = TrialRequest{Method: "GET", URL: req.Shown(shownURL(u, open)), Header: shownHeader(header, plainRequest)}
	w.Cost.Quota = f.Quota
	err = w.travel(ctx)
	var no *trialRefusal
	var spec *SpecError
	switch {
	case err == nil:
		w.OK = true
	case errors.As(err, &no):
		w.Failure, w.RetryAfterMS = &TrialFailure{Reason: no.why}, max(no.after.Milliseconds(), 1)

	case ctx.Err() != nil, errors.As(err, &spec):
		return w.Trial, err
	default:
		if kind := kindOf(err); kind != "" {
			w.judged(ctx, kind, err)
			return w.Trial, nil
		}
		return w.Trial, err
	}
	return w.Trial, nil
}

// travel is the road.
func (w *trying) travel(ctx context.Context) error {
	if limits := w.cfg.limits(w.feed, w.src); len(limits) > 0 {
		a, err := w.leases.Acquire(ctx, w.id, w.cfg.FetchTimeout*2+turnMost*3, limits...)
		defer w.leave(ctx, names(limits))
		if err != nil {
			return err
		}
		if !a.Held {
			return &trialRefusal{why: tooMany(ctx, w.leases, a), after: a.RetryAfter}
		}
	}
	if err := w.admit(ctx); err != nil {
		return err
	}
	if err := w.charge(ctx); err != nil {
		return err
	}
	sent := false
	defer func() {
		if !sent {
			w.refund(ctx)
		}
	}()
	if err := w.turn(ctx, w.id+"/1"); err != nil {
		return err
	}
	if err := w.take(ctx); err != nil {
		return err
	}
	if w.feed.Robots {
		w.req.Follow = w.robots.following(w.req, w.via, time.Now)
	}
	resp, err := w.fetcher.Do(ctx, w.req, w.via)
	var fe *fetch.Error
	sent = !errors.As(err, &fe) || !fe.Unsent
	if w.Sent = sent; sent {
		w.Cost.Requests++
	}
	var ans source.Answer
	if err == nil {
		w.Answer = &TrialAnswer{
			Status: resp.Status, URL: w.req.Shown(shownURL(resp.URL, w.open)), Redirects: resp.Redirects, Header: shownHeader(resp.Header, plainAnswer),
			Type: bounded(resp.Header.Get("Content-Type")), Bytes: len(resp.Body), TookMS: resp.Took.Milliseconds(),
		}
		ans, err = w.src.Read(resp)
	}
	v := verdict{rule: rule{health: allocation.OK}}
	if err != nil {
		v = judge(err, time.Now())
	}
	w.report(ctx, v.health, v.until)
	if err != nil {
		return err
	}
	w.Read = &TrialRead{Items: len(ans.Items), First: ans.Items[:min(len(ans.Items), firstItems)], Next: ans.Next != "", Lossy: ans.Lossy, Capped: ans.Capped, Dropped: ans.Dropped}
	return nil
}

// admit asks robots.txt, as a job would.
func (w *trying) admit(ctx context.Context) error {
	if !w.feed.Robots {
		return nil
	}
	now := time.Now
	k, fresh, err := w.robots.store.Get(ctx, w.url, w.robots.token(w.req), now())
	if err != nil {
		return err
	}
	if !fresh {
		if err := w.turn(ctx, robotsID(w.id)); err != nil {
			return err
		}
		if err := w.take(ctx); err != nil {
			return err
		}
		w.Cost.Requests++
		k, err = w.robots.ask(ctx, w.url, w.req, k, w.via, now)
		w.report(ctx, robotsHealth(k, err), 0)
		if err != nil {
			return err
		}
	}
	w.pacer.keep(w.src.Host(), k.Rules.Delay)
	w.Robots = &TrialRobots{
		URL: robots.FileURL(w.url), Asked: !fresh, Status: k.Status, Rules: len(k.Rules.Rules), Agent: k.Rules.Agent,
		DelayMS: k.Rules.Delay.Milliseconds(), Until: k.Until.UTC(), Says: k.Why,
	}
	if k.Why == "" {
		v := k.Rules.Check(w.url)
		if w.Robots.Allowed = v.Allowed; v.Rule.Line > 0 {
			w.Robots.Says = fmt.Sprintf("line %d: %s", v.Rule.Line, v.Rule)
		}
	}
	return k.Check(w.url)
}

func (w *trying) charge(ctx context.Context) error {
	if w.feed.Quota == "" {
		return nil
	}
	w.Cost.ID = chargeID(w.id, 0)
	d, err := w.limiter.Charge(ctx, quota.Request{Quota: w.feed.Quota, ID: w.Cost.ID, Cost: w.feed.Cost, Priority: quota.Interactive, NoLine: true, Label: w.feed.Name})
	if err != nil {
		return err
	}
	if !d.Granted {
		return &trialRefusal{why: refusal(w.feed.Quota, d), after: d.RetryAfter}
	}
	w.Cost.Units = w.feed.Cost
	return nil
}

func (w *trying) refund(ctx context.Context) {
	w.Cost.Units = 0
	if w.feed.Quota == "" {
		return
	}
	if _, err := w.limiter.Refund(context.WithoutCancel(ctx), w.feed.Quota, w.Cost.ID); err != nil {
		w.log.Warn("could not give back a charge", "quota", w.feed.Quota, "error", err)
	}
}

// turn waits for the host's turn, not for long.
func (w *trying) turn(ctx context.Context, start string) error {
	host := w.src.Host()
	delay := w.pacer.delayOf(host)
	if delay == 0 {
		return nil
	}
	until := time.Now().Add(turnMost)
	for {
		d, err := w.pacer.charge(ctx, host, start, quota.Interactive)
		if err != nil || d.Granted {
			return err
		}
		if time.Now().Add(d.RetryAfter).After(until) {
			if err := w.pacer.refund(context.WithoutCancel(ctx), host, start); err != nil {
				w.log.Warn("could not leave a host's line", "host", host, "error", err)
			}
			return &trialRefusal{why: fmt.Sprintf("host %s: one request in %s", host, delay), after: d.RetryAfter}
		}
		select {
		case <-time.After(d.RetryAfter):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *trying) take(ctx context.Context) error {
	if builtIn(w.feed.Pool) {
		w.a = allocation.Allocation{Pool: w.feed.Pool, ID: w.feed.Pool}
		w.via = fetch.Via{ID: w.feed.Pool, Environment: w.feed.Pool == Environment}
		w.Via = &TrialVia{Pool: w.feed.Pool, Endpoint: w.feed.Pool}
		return nil
	}
	a, err := w.pools.Take(ctx, w.feed.Pool, allocation.TakeOptions{Key: w.id, Target: w.src.Host()})
	var empty *allocation.EmptyError
	switch {
	case errors.As(err, &empty):
		wait := empty.RetryAfter
		if wait <= 0 {
			wait = emptyPoolWait
		}
		return &trialRefusal{why: fmt.Sprintf("pool %s has no eligible endpoint", w.feed.Pool), after: wait}
	case err != nil:
		return err
	}
	w.a, w.via = a, fetch.Via{ID: w.feed.Pool + "/" + a.ID, Proxy: a.URL, PublicOnly: a.PublicOnly}
	w.Via = &TrialVia{Pool: w.feed.Pool, Endpoint: a.ID, URL: fetch.Redact(a.URL)}
	return nil
}

func (w *trying) report(ctx context.Context, o allocation.Outcome, after time.Duration) {
	if builtIn(w.a.Pool) {
		return
	}
	r := allocation.Report{Pool: w.a.Pool, ID: w.a.ID, Lease: w.a.Lease, Target: w.src.Host(), Outcome: o, RetryAfter: after}
	if err := w.pools.Report(context.WithoutCancel(ctx), r); err != nil {
		w.log.Warn("could not report an endpoint's outcome", "endpoint", w.a.ID, "error", err)
	}
}

func (w *trying) leave(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := vacate(ctx, w.leases, w.id, names, true); err != nil {
		w.log.Warn("could not give leases back; they end by themselves", "error", err)
	}
}

// judged applies the table of outcomes: what it closes is closed, for a target
// that says "not now" says it to all.
func (w *trying) judged(ctx context.Context, kind string, err error) {
	v := judge(err, time.Now())
	w.Failure = &TrialFailure{Reason: err.Error(), Follows: followsOf(kind)}
	if v.action != snooze {
		return
	}
	w.RetryAfterMS = max(v.until.Milliseconds(), 1)
	if !v.closes {
		return
	}
	ctx = context.WithoutCancel(ctx)
	var cerr error
	w.Failure.Closed = "host " + w.src.Host()
	if w.feed.Quota != "" {
		w.Failure.Closed = "quota " + w.feed.Quota
		cerr = w.limiter.Block(ctx, w.feed.Quota, v.until, err.Error())
	} else {
		cerr = w.leases.Block(ctx, hostName(w.src.Host()), v.until, err.Error())
	}
	if cerr != nil {
		w.log.Warn("could not close what the target refuses", "error", cerr)
	}
}

// kindOf is the word for an outcome; "" where the error is none.
func kindOf(err error) string {
	var (
		fe      *fetch.Error
		ae      *source.AnswerError
		unknown *robots.UnknownError
	)
	switch {
	case errors.Is(err, robots.ErrDisallowed):
		return robotsDisallowed
	case errors.As(err, &unknown):
		return robotsUnknown
	case errors.As(err, &fe):
		return string(fe.Kind)
	case errors.As(err, &ae) && ae.Kind == source.Truncated:
		return string(ae.Kind) + "-answer"
	case errors.As(err, &ae):
		return string(ae.Kind)
	}
	return ""
}

// followsOf is a kind's row; nil where it has none.
func followsOf(kind string) *Follows {
	for _, f := range Outcomes() {
		if f.Kind == kind {
			return &f
		}
	}
	return nil
}
