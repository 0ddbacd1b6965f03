package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"feedwarden/internal/units"
	"feedwarden/jobs"
)

// act is what a form of a page does: its words for the audit, the fields that name
// its object, and the deed, which may say more than "done".
type act struct {
	what   string
	object []string
	do     func(s *Server, ctx context.Context, f url.Values) (says string, err error)
}

// acts are all of them, by their path under /act/.
var acts = map[string]act{
	"schedule/pause": {"pause schedule", []string{"name"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		p := pausing{For: f.Get("for")}
		until, err := p.end(time.Now())
		if err != nil {
			return "", err
		}
		return "", s.onSchedules(func(all Schedules) error {
			return all.Pause(ctx, f.Get("name"), whoAsks(ctx).Name, until)
		})
	}},
	"schedule/resume": {"resume schedule", []string{"name"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		return "", s.onSchedules(func(all Schedules) error { return all.Resume(ctx, f.Get("name"), whoAsks(ctx).Name) })
	}},
	"schedule/trigger": {"trigger schedule", []string{"name"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		return "done: a running scheduler makes the job within about a second", s.onSchedules(func(all Schedules) error {
			_, err := all.Trigger(ctx, f.Get("name"), whoAsks(ctx).Name)
			return err
		})
	}},
	"feed/fetch": {"fetch feed", []string{"name"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		j, err := s.p.Jobs.Enqueue(ctx, jobs.Spec{Feed: f.Get("name")})
		return "done: job " + j.ID, err
	}},
	"job/cancel": {"cancel job", []string{"id"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		j, err := s.p.Jobs.Cancel(ctx, f.Get("id"))
		if err == nil && !j.State.Ended() {
			return "done: its run is being told to stop", nil
		}
		return "", err
	}},
	"quota/block": {"block quota", []string{"name"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		d, err := lasting(f.Get("for"), "10m")
		if err != nil {
			return "", err
		}
		why := f.Get("reason")
		if why == "" {
			why = "by hand, " + whoAsks(ctx).Name
		}
		return "done: for " + span(d), s.p.Quotas.Block(ctx, f.Get("name"), d, why)
	}},
	"quota/unblock": {"unblock quota", []string{"name"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		err := s.p.Quotas.Unblock(ctx, f.Get("name"))
		if err == nil {
			err = s.p.Jobs.WakeLine(ctx, f.Get("name"))
		}
		return "", err
	}},
	"endpoint/quarantine": {"quarantine endpoint", []string{"pool", "id"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		d, err := lasting(f.Get("for"), "1h")
		if err != nil {
			return "", err
		}
		return "done: for " + span(d), s.p.Pools.Quarantine(ctx, f.Get("pool"), f.Get("id"), d)
	}},
	"endpoint/restore": {"restore endpoint", []string{"pool", "id"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		return "", s.p.Pools.Restore(ctx, f.Get("pool"), f.Get("id"))
	}},
	"endpoint/remove": {"remove endpoint", []string{"pool", "id"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		return "", s.p.Pools.Remove(ctx, f.Get("pool"), f.Get("id"))
	}},
	"target/resume": {"resume target", []string{"pool", "target"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		return "", s.p.Pools.Resume(ctx, f.Get("pool"), f.Get("target"))
	}},
	"pool/check": {"check pool", []string{"pool"}, func(s *Server, ctx context.Context, f url.Values) (string, error) {
		if _, ok := s.p.Pools.Config(f.Get("pool")); !ok {
			return "", problem(http.StatusNotFound, "unknown-pool", "no pool of that name in the config")
		}
		return "done: a running worker makes it", jobs.Upkeep(ctx, s.p.Redis, jobs.CheckProxies, f.Get("pool"))
	}},
}

// act does what a form asks for and sends the browser back to its page, which then
// shows the line that was left.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	a, ok := acts[r.PathValue("kind")+"/"+r.PathValue("verb")]
	if !ok {
		s.fail(w, r, problem(http.StatusNotFound, "no-route", "nothing is at this path"))
		return
	}
	f, err := readForm(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	d := deedOf(r.Context())
	d.what, d.object = a.what, ""
	for _, name := range a.object {
		if d.object != "" {
			d.object += " "
		}
		d.object += f.Get(name)
	}
	says, err := a.do(s, r.Context(), f)
	if err != nil {
		p := problemOf(err)
		if p.Code == "redis-away" || p.Status == http.StatusInternalServerError {
			s.fail(w, r, err)
			return
		}
		d.failed = p.Detail
	} else {
		s.log.Info("done by hand", "what", a.what, "object", d.object, "by", whoAsks(r.Context()).Name)
	}
	l := s.auditLine(r, d)
	if err == nil && says != "" {
		l.Outcome = says
	}
	d.told = true
	id, lost := s.audit.leave(r.Context(), l)
	switch {
	case lost != nil && err != nil:
		s.fail(w, r, err)
		return
	case lost != nil:
		s.fail(w, r, problem(http.StatusServiceUnavailable, "unaudited", "it was done; since then Redis does not answer, so the audit has no line of it").after(redisRetry))
		return
	}
	http.Redirect(w, r, withDone(localPath(f.Get("back")), id), http.StatusSeeOther) //nolint:gosec // localPath let it through
}

// maxForm bounds the forms of pages.
const maxForm = 8 << 10

// readForm reads a form of a page.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	const formType = "application/x-www-form-urlencoded"
	name, err := contentType(r)
	if err == nil && name != formType {
		err = wrongType(w, name, formType)
	}
	if err != nil {
		return nil, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		var tooBig *http.MaxBytesError
		if errors.As(err, &tooBig) {
			return nil, err
		}
		return nil, problem(http.StatusBadRequest, "invalid-form", "the form could not be read")
	}
	return r.PostForm, nil
}

// withDone leads back to a page that says what was done.
func withDone(back, id string) string {
	u, err := url.Parse(back)
	if err != nil {
		return "/"
	}
	q := u.Query()
	q.Set(doneParam, id)
	u.RawQuery = q.Encode()
	return u.String()
}

func (s *Server) onSchedules(do func(Schedules) error) error {
	if s.p.Schedules == nil {
		return ErrUnknownSchedule
	}
	return do(s.p.Schedules)
}

// lasting reads how long something is to last.
func lasting(text, usual string) (time.Duration, error) {
	if text == "" {
		text = usual
	}
	d, err := units.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, problem(http.StatusBadRequest, "invalid-duration", fmt.Sprintf("%q: a duration such as 30m or 2d is wanted", text))
	}
	return d, nil
}
