package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"feedwarden/allocation"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

// Result is the line that says what a job brought.
type Result struct {
	What     string   `json:"what"` // "new version", "unchanged", "not modified", "older than the newest version"
	Version  int64    `json:"version"`
	Items    int      `json:"items"`
	Requests int      `json:"requests"`
	Units    int64    `json:"units"`
	Via      []string `json:"via"`
	TookMS   int64    `json:"took_ms"`
}

// progress is what a job has read so far. A run that stops in mid-paging keeps
// it, so that no page is paid for twice.
type progress struct {
	Schema  int           `json:"v"`
	Cursor  string        `json:"cursor"`
	Items   []source.Item `json:"items"`
	Raw     [][]byte      `json:"raw"`
	Type    string        `json:"type"`
	Lossy   bool          `json:"lossy"`
	Pages   int           `json:"pages"`
	BeganUS int64         `json:"began_us"`
	Via     []string      `json:"via"`
	TookMS  int64         `json:"took_ms"`
	Asked   string        `json:"asked"` // the source's fingerprint

	etag, modified string
	notModified    bool
}

// travel is the road of one job: every page is charged, takes an endpoint and
// is fetched; what they brought is stored.
func (h *Handler) travel(ctx context.Context, r *run, f Feed, src source.Source, log *slog.Logger) (Result, error) {
	prog, err := h.resume(ctx, r, f.asked)
	if err != nil {
		return Result{}, err
	}
	for {
		if err := h.page(ctx, r, f, src, prog, log); err != nil {
			// Whatever stopped it, no page is paid for twice.
			if prog.Pages > 0 {
				h.keep(ctx, r, f, prog, log)
			}
			h.setAside(ctx, r, err, log)
			return Result{}, err
		}
		if prog.notModified || prog.Cursor == "" || (f.Source.Pages > 0 && prog.Pages >= f.Source.Pages) {
			break
		}
	}
	res, err := h.deposit(ctx, r, f, prog, log)
	h.setAside(ctx, r, err, log)
	return res, err
}

// page does one request: robots → charge → pace → take → sent → fetch → report → read.
func (h *Handler) page(ctx context.Context, r *run, f Feed, src source.Source, prog *progress, log *slog.Logger) error {
	req, err := src.Request(source.Page{Cursor: prog.Cursor, Params: r.payload.Params})
	if err != nil {
		return &permanentError{err}
	}
	// Validators belong to one answer: of several pages each could change alone.
	single := !f.Source.Paged()
	// Nor do they speak for a feed that was asked or read otherwise: its config has changed.
	conditional := single && r.Head.Asked == prog.Asked && (r.Head.ETag != "" || r.Head.LastModified != "")
	if conditional {
		validate(&req, r.Head)
	}
	if err := h.admit(ctx, r, f, src, req, log); err != nil {
		return err
	}
	if err := h.charge(ctx, r, f, log); err != nil {
		return err
	}
	if err := h.pace(ctx, r, r.chargeID(), log); err != nil {
		return err
	}
	a, via, err := h.take(ctx, r, f, src, log)
	if err != nil {
		h.unpace(ctx, r, r.chargeID(), log)
		return err
	}
	if h.pacer.delayOf(r.host) > 0 && r.now().Sub(r.paced) > lead {
		if err := h.pace(ctx, r, r.chargeID(), log); err != nil {
			h.report(ctx, a, nil, allocation.Cancelled, 0, log)
			return err
		}
	}
	began, err := h.markSent(ctx, r)
	if errors.Is(err, errStale) {
		// The charge has the same ID in the run that took over: it is not ours to give back.
		h.report(ctx, a, nil, allocation.Cancelled, 0, log)
		return err
	}
	if err != nil {
		// A lost reply may hide that another run has begun and sent under this ID.
		if h.owns(ctx, r) {
			h.forgetCharge(ctx, r, log)
		}
		h.report(ctx, a, nil, allocation.Cancelled, 0, log)
		return err
	}
	if prog.BeganUS == 0 {
		prog.BeganUS = began.UnixMicro()
	}
	if f.Robots {
		req.Follow = h.robots.following(req, via, r.now)
	}
	resp, err := h.fetcher.Do(ctx, req, via)
	var ans source.Answer
	if err == nil {
		if resp.Status == http.StatusNotModified && conditional {
			prog.notModified = true
		} else {
			ans, err = src.Read(resp)
		}
		if conditional && refusesValidators(resp.Status) {
			if derr := h.store.DropValidators(ctx, r.Key); derr != nil {
				log.Warn("could not forget a feed's validators", "error", derr)
			}
		}
	}
	if err != nil {
		return h.refusedByTarget(ctx, r, f, a, src, err, log)
	}
	h.report(ctx, a, src, allocation.OK, 0, log)
	log.Info("fetched", "via", a.ID, "status", resp.Status, "bytes", len(resp.Body), "items", len(ans.Items),
		"page", prog.Pages+1, "took_ms", resp.Took.Milliseconds())
	prog.add(resp, ans, a.ID, single)
	return nil
}

func validate(req *fetch.Request, head feed.Head) {
	if req.Header == nil {
		req.Header = http.Header{}
	}
	if head.ETag != "" {
		req.Header.Set("If-None-Match", head.ETag)
	}
	if head.LastModified != "" {
		req.Header.Set("If-Modified-Since", head.LastModified)
	}
}

// validator is what is sent back of a validator: at one that is too long a
// server chokes, and the feed would not be had again.
func validator(v string) string {
	if len(v) > longestValidator {
		return ""
	}
	return v
}

const longestValidator = 1024

// refusesValidators says that an answer may owe itself to the validators that
// were sent: the request is good without them.
func refusesValidators(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable, http.StatusRequestHeaderFieldsTooLarge:
		return true
	}
	return false
}

func (p *progress) add(resp *fetch.Response, ans source.Answer, via string, single bool) {
	p.Via = append(p.Via, via)
	p.TookMS += resp.Took.Milliseconds()
	p.Pages++
	p.Cursor = ans.Next
	if p.notModified {
		return
	}
	p.append(ans.Items)
	p.Raw = append(p.Raw, resp.Body)
	p.Type = resp.Header.Get("Content-Type")
	p.Lossy = p.Lossy || ans.Lossy
	if single {
		p.etag, p.modified = validator(resp.Header.Get("ETag")), validator(resp.Header.Get("Last-Modified"))
	}
}

// append joins a page's items to those before: ranks go on, and an item that
// slid from one page to the next while they were read is there once.
func (p *progress) append(items []source.Item) {
	seen := make(map[string]bool, len(p.Items)+len(items))
	for _, it := range p.Items {
		seen[it.ID] = true
	}
	for _, it := range items {
		if !seen[it.ID] {
			seen[it.ID] = true
			it.Rank = len(p.Items) + 1
			p.Items = append(p.Items, it)
		}
	}
}

// take picks an endpoint; with none, the units go back and no request is made.
func (h *Handler) take(ctx context.Context, r *run, f Feed, src source.Source, log *slog.Logger) (allocation.Allocation, fetch.Via, error) {
	if builtIn(f.Pool) {
		return allocation.Allocation{Pool: f.Pool, ID: f.Pool}, fetch.Via{ID: f.Pool, Environment: f.Pool == Environment}, nil
	}
	a, err := h.pools.Take(ctx, f.Pool, allocation.TakeOptions{Key: r.Key, Target: src.Host()})
	if err == nil {
		return a, fetch.Via{ID: f.Pool + "/" + a.ID, Proxy: a.URL, PublicOnly: a.PublicOnly}, nil
	}
	if h.owns(ctx, r) {
		h.forgetCharge(ctx, r, log)
	}
	var empty *allocation.EmptyError
	if errors.As(err, &empty) {
		wait := empty.RetryAfter
		if wait <= 0 {
			wait = emptyPoolWait
		}
		return a, fetch.Via{}, &SnoozeError{Until: r.now().Add(wait), Reason: fmt.Sprintf("pool %s has no eligible endpoint", f.Pool)}
	}
	if errors.Is(err, allocation.ErrAlone) {
		return a, fetch.Via{}, &permanentError{err}
	}
	return a, fetch.Via{}, fmt.Errorf("take: %w", err)
}

// emptyPoolWait is how often a job asks a pool in which nothing becomes
// eligible by itself: somebody has to mend it.
const emptyPoolWait = 30 * time.Second

func (h *Handler) report(ctx context.Context, a allocation.Allocation, src source.Source, o allocation.Outcome, after time.Duration, log *slog.Logger) {
	if builtIn(a.Pool) {
		return
	}
	target := ""
	if src != nil {
		target = src.Host()
	}
	err := h.pools.Report(context.WithoutCancel(ctx), allocation.Report{Pool: a.Pool, ID: a.ID, Lease: a.Lease, Target: target, Outcome: o, RetryAfter: after})
	if err != nil {
		log.Warn("could not report an endpoint's outcome", "pool", a.Pool, "endpoint", a.ID, "error", err)
	}
}

// refusedByTarget applies the table of outcomes to a request that brought
// nothing.
func (h *Handler) refusedByTarget(ctx context.Context, r *run, f Feed, a allocation.Allocation, src source.Source, err error, log *slog.Logger) error {
	v := judge(err, r.now())
	if v.action == stop && ctx.Err() == nil {
		v.action = retry
	}
	h.report(ctx, a, src, v.health, v.until, log)
	var fe *fetch.Error
	if errors.As(err, &fe) && fe.Unsent {
		h.unsend(ctx, r, log)
	}
	switch v.action {
	case snooze:
		if v.closes {
			h.shut(ctx, f, src, v.until, err.Error(), log)
		}
		return &SnoozeError{Until: r.now().Add(v.until), Reason: err.Error()}
	case fail:
		return &permanentError{err}
	case stop:
		return context.Cause(ctx)
	}
	return err
}

// shut closes what the target said "not now" for: the feed's quota, or where it
// has none the target's host, for everybody.
func (h *Handler) shut(ctx context.Context, f Feed, src source.Source, d time.Duration, why string, log *slog.Logger) {
	ctx = context.WithoutCancel(ctx)
	if f.Quota != "" {
		if err := h.limiter.Block(ctx, f.Quota, d, why); err != nil {
			log.Warn("could not close a quota", "quota", f.Quota, "error", err)
		}
		return
	}
	if err := h.leases.Block(ctx, hostName(src.Host()), d, why); err != nil {
		log.Warn("could not close a host", "host", src.Host(), "error", err)
	}
}

// unsend takes back that a request went out: it never left, so its charge is
// given back and its number is used again.
func (h *Handler) unsend(ctx context.Context, r *run, log *slog.Logger) {
	if !h.owns(ctx, r) {
		return
	}
	r.Sent--
	if err := h.rdb.HSet(context.WithoutCancel(ctx), recordKey(r.ID), "sent", r.Sent).Err(); err != nil {
		r.Sent++ // it stays paid for
		log.Warn("could not take back an unsent request", "error", err)
		return
	}
	h.forgetCharge(ctx, r, log)
}

// resume gives back the pages that the job had read before it slept.
func (h *Handler) resume(ctx context.Context, r *run, asked string) (*progress, error) {
	anew := &progress{Asked: asked}
	if r.Sent == 0 {
		return anew, nil
	}
	data, err := h.store.Partial(ctx, r.Key, r.chargeAs)
	if err != nil {
		return nil, err
	}
	var p progress
	if data == nil {
		return anew, nil
	}
	r.resumed = true
	if err := json.Unmarshal(data, &p); err != nil || p.Schema != progressSchema || p.Asked != asked {
		// Another binary wrote it, or the config has changed; the pages are fetched again.
		return anew, nil //nolint:nilerr // said above
	}
	return &p, nil
}

const progressSchema = 1

func (h *Handler) keep(ctx context.Context, r *run, f Feed, p *progress, log *slog.Logger) {
	p.Schema, r.resumed = progressSchema, true
	data, err := json.Marshal(p)
	if err == nil {
		err = h.store.SavePartial(context.WithoutCancel(ctx), r.Key, r.chargeAs, data, max(f.MaxSnooze, time.Hour))
	}
	if err != nil {
		log.Warn("could not keep the pages read so far", "error", err)
	}
}

// deposit stores what the pages brought.
func (h *Handler) deposit(ctx context.Context, r *run, f Feed, p *progress, log *slog.Logger) (Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	res := Result{Items: len(p.Items), Requests: r.Sent, Units: 0, Via: p.Via, TookMS: p.TookMS}
	if f.Quota != "" {
		res.Units = f.Cost * int64(r.Sent)
	}
	began, now := time.UnixMicro(p.BeganUS), r.now()
	var st feed.Stored
	var err error
	if p.notModified {
		st, err = h.store.Renew(ctx, r.Key, began, now)
		res.What, res.Items = "not modified", r.Head.Items
	} else {
		if len(p.Items) == 0 && r.Head.Items > 0 {
			empty := &source.AnswerError{Kind: source.Truncated, Reason: "an empty answer where there were items"}
			if len(p.Raw) > 0 {
				empty.Keep(f.Source.Redact(p.Raw[0]), p.Type)
			}
			return Result{}, empty
		}
		st, err = h.store.Put(ctx, r.Head, began, now, feed.Content{
			Items: p.Items, Raw: p.Raw, ContentType: p.Type, Lossy: p.Lossy, ETag: p.etag, LastModified: p.modified, Asked: p.Asked, Job: r.ID,
		}, f.History)
		res.What = "unchanged"
		if st.New {
			res.What = "new version"
		}
	}
	if err != nil {
		return Result{}, err
	}
	if st.Older {
		res.What = "older than the newest version"
	}
	res.Version = st.Version
	if st.New && r.Key == f.Name {
		h.handOver(ctx, f, st.Version, log)
	}
	log.Info("stored", "what", res.What, "version", st.Version, "items", len(p.Items), "units", res.Units)
	return res, nil
}
