package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/robots"
	"feedwarden/jobs/source"
)

const (
	// robotsRetry is how soon a file is asked for again through another endpoint,
	// when it was the endpoint that failed.
	robotsRetry = 10 * time.Second
	// robotsOther is how soon a job looks again while another asks for the file.
	robotsOther = time.Second
)

// usher asks robots.txt on a request's behalf.
type usher struct {
	store   *robots.Store
	fetcher *fetch.Client
	margin  time.Duration // how long asking for a file may take
}

func newUsher(cfg Config, rdb redis.UniversalClient, fetcher *fetch.Client) usher {
	return usher{store: robots.NewStore(rdb), fetcher: fetcher, margin: cfg.FetchTimeout + 10*time.Second}
}

// token is the product token of the request's User-Agent.
func (s usher) token(req fetch.Request) string {
	h, err := s.fetcher.Header(req)
	if err != nil {
		return "" // the fetch itself will say so
	}
	return robots.Token(h.Get("User-Agent"))
}

// ask asks the origin of u for its file through an endpoint, and keeps what it
// said. An error is the endpoint's: nothing is known then, and nothing kept.
func (s usher) ask(ctx context.Context, u *url.URL, req fetch.Request, before robots.Kept, via fetch.Via, now func() time.Time) (robots.Kept, error) {
	file := fetch.Request{URL: robots.FileURL(u), Header: http.Header{"Accept": {"text/plain, */*;q=0.1"}}, First: robots.MaxBytes + 1}
	if ua := req.Header.Get("User-Agent"); ua != "" {
		file.Header.Set("User-Agent", ua)
	}
	resp, err := s.fetcher.Do(ctx, file, via)
	var a robots.Answer
	var fe *fetch.Error
	switch {
	case err == nil:
		a = robots.Answer{Status: resp.Status, Body: resp.Body}
		a.RetryAfter, _ = fetch.RetryAfter(resp.Header, now())
	case errors.Is(err, fetch.ErrRedirects):
		a.Status = http.StatusFound // RFC 9309, 2.3.1.2: as if there were none
	case !errors.As(err, &fe), fe.Kind == fetch.KindCancelled, fe.Kind == fetch.KindPolicy && fe.Unsent, via.Proxy != nil && fe.Kind != fetch.KindPolicy:
		return robots.Kept{}, err
	default:
		a.Why = fe.Err.Error()
	}
	k := robots.Judge(a, s.token(req), before, now())
	if err := s.store.Put(context.WithoutCancel(ctx), u, k, now()); err != nil {
		return robots.Kept{}, err
	}
	return k, nil
}

// admit asks the host's robots.txt whether the request may be made, before
// anything is charged for it. The file is asked for as the page would be: at
// the host's pace, through the feed's pool; it costs no units.
func (h *Handler) admit(ctx context.Context, r *run, f Feed, src source.Source, req fetch.Request, log *slog.Logger) error {
	if !f.Robots {
		return nil
	}
	u, err := url.Parse(req.URL)
	if err != nil {
		return nil //nolint:nilerr // the fetch says what is wrong with it, and no secret
	}
	k, fresh, err := h.robots.store.Get(ctx, u, h.robots.token(req), r.now())
	if err != nil {
		return err
	}
	if !fresh {
		if k, err = h.askRobots(ctx, r, f, src, u, req, log); err != nil {
			return err
		}
	} else if r.Snoozes > 0 { // for a start of its own, maybe, which another job made needless
		h.unpace(ctx, r, r.robotsID(), log)
	}
	h.pacer.keep(r.host, k.Rules.Delay)
	return barred(k.Check(u))
}

// barred is what follows where robots.txt keeps a job out.
func barred(err error) error {
	var unknown *robots.UnknownError
	switch {
	case errors.As(err, &unknown):
		return &SnoozeError{Until: unknown.Until, Reason: err.Error()}
	case err != nil:
		return &permanentError{err}
	}
	return nil
}

// askRobots asks for the file, unless another job does so now.
func (h *Handler) askRobots(ctx context.Context, r *run, f Feed, src source.Source, u *url.URL, req fetch.Request, log *slog.Logger) (k robots.Kept, err error) {
	mine, err := h.robots.store.Claim(ctx, u, h.robots.margin)
	if err != nil {
		return k, err
	}
	if !mine {
		return k, &SnoozeError{Until: r.now().Add(robotsOther), Reason: "another job asks for " + robots.FileURL(u)}
	}
	kept := false // the claim ends with that
	defer func() {
		if kept {
			return
		}
		if uerr := h.robots.store.Unclaim(context.WithoutCancel(ctx), u); uerr != nil {
			log.Warn("a claim on robots.txt ends by itself", "error", uerr)
		}
	}()
	before, fresh, err := h.robots.store.Get(ctx, u, h.robots.token(req), r.now())
	if err != nil || fresh { // another has asked since we looked
		return before, err
	}
	if err := h.pace(ctx, r, r.robotsID(), log); err != nil {
		return k, err
	}
	a, via, err := h.take(ctx, r, f, src, log)
	if err != nil {
		h.unpace(ctx, r, r.robotsID(), log)
		return k, err
	}
	k, err = h.robots.ask(ctx, u, req, before, via, r.now)
	h.report(ctx, a, src, robotsHealth(k, err), 0, log)
	if err != nil {
		return k, robotsFailed(ctx, u, err, r.now())
	}
	kept = true
	log.Info("robots read", "origin", robots.Origin(u), "via", a.ID, "status", k.Status, "rules", len(k.Rules.Rules), "until", k.Until, "closed", k.Why)
	return k, nil
}

// robotsHealth is what the endpoint's part in it says about the endpoint.
func robotsHealth(k robots.Kept, err error) allocation.Outcome {
	var fe *fetch.Error
	switch {
	case errors.As(err, &fe):
		return fetchRules[fe.Kind].health
	case err != nil:
		return allocation.Cancelled
	case k.Status >= 500:
		return allocation.Target5xx
	}
	return allocation.OK
}

// robotsFailed is what follows where the endpoint brought no answer.
func robotsFailed(ctx context.Context, u *url.URL, err error, now time.Time) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var fe *fetch.Error
	switch {
	case !errors.As(err, &fe):
		return err
	case fe.Kind == fetch.KindPolicy:
		return &permanentError{err}
	}
	return &SnoozeError{Until: now.Add(robotsRetry), Reason: fmt.Sprintf("%s could not be read: %v", robots.FileURL(u), err)}
}

// following asks robots.txt of each redirect's target, over the endpoint that
// the page comes through.
func (s usher) following(req fetch.Request, via fetch.Via, now func() time.Time) func(context.Context, *url.URL) error {
	return func(ctx context.Context, to *url.URL) error {
		k, fresh, err := s.store.Get(ctx, to, s.token(req), now())
		if err != nil {
			return err
		}
		if !fresh {
			if k, err = s.ask(ctx, to, req, k, via, now); err != nil {
				return &robots.UnknownError{Origin: robots.Origin(to), Why: err.Error(), Until: now().Add(robotsRetry)}
			}
		}
		return k.Check(to)
	}
}
