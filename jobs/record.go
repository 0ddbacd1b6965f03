package jobs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
)

//go:embed begin.lua
var beginSource string

//go:embed sent.lua
var sentSource string

//go:embed finish.lua
var finishSource string

//go:embed cancel.lua
var cancelSource string

var (
	beginScript  = redis.NewScript(beginSource)
	sentScript   = redis.NewScript(sentSource)
	finishScript = redis.NewScript(finishSource)
	cancelScript = redis.NewScript(cancelSource)
)

const (
	// recordLife bounds the record of a job that has not ended; every run renews it.
	recordLife = 8 * 24 * time.Hour
	// endedLife is how long an ended job stays readable.
	endedLife = 2 * time.Hour
	// retention keeps an ended task's ID taken in asynq, so a tick enqueued
	// twice meets its first self; the record does the same after it.
	retention = time.Hour
	// endedKept bounds the number of ended jobs that are listed.
	endedKept = 100_000
)

// errStale says that another run has the job: this one must not act any more.
var errStale = errors.New("jobs: another run has this job")

// errCancelled says that a person cancelled the job.
var errCancelled = errors.New("jobs: cancelled")

// run is one delivery of one job.
type run struct {
	ID       string
	Queue    string
	token    string
	Feed     string
	Key      string // the feed's key in the cache
	Tick     string // RFC 3339 in UTC, or ""
	chargeAs string

	// What the record said when the run began.
	State        string
	Attempts     int
	Snoozes      int
	Sent         int
	Crashes      int
	SnoozedSince time.Time
	Due          time.Time // the promised instant, zero if there was none
	Forward      string
	Cancelled    bool

	BeganUS int64     // Redis's clock when the run began, µs
	local   time.Time // ours at the same moment
	Head    feed.Head
}

// now is Redis's clock, carried on by our monotonic one.
func (r *run) now() time.Time {
	return time.UnixMicro(r.BeganUS).Add(time.Since(r.local)).UTC()
}

// chargeID names the job's next request to the quota: an unsent one keeps its
// number when the job runs again, a sent one is followed by the next.
func (r *run) chargeID() string {
	return r.chargeAs + "/" + strconv.Itoa(r.Sent+1)
}

// begin opens a run and reads the feed's head in one round trip.
func (h *Handler) begin(ctx context.Context, r *run) error {
	var b luarun.Batch
	i := b.Script(beginScript, []string{recordKey(r.ID)}, r.token, r.Feed, r.Queue, r.Tick, recordLife.Milliseconds())
	head := h.store.HeadInto(ctx, &b, r.Key)
	r.local = time.Now()
	cmds, err := h.desk.Do(ctx, &b)
	if err != nil {
		return fmt.Errorf("jobs: begin %q: %w", r.ID, err)
	}
	reply, err := cmds[i].StringSlice()
	if err != nil {
		return fmt.Errorf("jobs: begin %q: %w", r.ID, err)
	}
	if len(reply) != 10 {
		return fmt.Errorf("jobs: begin %q: unexpected reply %q", r.ID, reply)
	}
	var faults []error
	num := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		faults = append(faults, err)
		return n
	}
	r.BeganUS = num(reply[0])
	r.State = reply[1]
	r.Attempts, r.Snoozes, r.Sent, r.Crashes = int(num(reply[2])), int(num(reply[3])), int(num(reply[4])), int(num(reply[5]))
	r.SnoozedSince, r.Due = fromMillis(num(reply[6])), fromMillis(num(reply[7]))
	r.Forward, r.Cancelled = reply[8], reply[9] != ""
	r.Head = head()
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("jobs: record of %q: %w", r.ID, err)
	}
	return nil
}

func fromMillis(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// markSent spends the charge: the request goes out next. It answers Redis's
// clock, which orders the versions that fetches make.
func (h *Handler) markSent(ctx context.Context, r *run) (time.Time, error) {
	reply, err := h.desk.Run(ctx, sentScript, []string{recordKey(r.ID)}, r.token, r.Sent+1).Text()
	if err != nil {
		return time.Time{}, fmt.Errorf("jobs: mark %q sent: %w", r.ID, err)
	}
	switch reply {
	case "stale":
		return time.Time{}, errStale
	case "cancelled":
		return time.Time{}, errCancelled
	}
	us, err := strconv.ParseInt(reply, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("jobs: mark %q sent: unexpected reply %q", r.ID, reply)
	}
	r.Sent++
	return time.UnixMicro(us).UTC(), nil
}

// owns says whether the job is still this run's.
func (h *Handler) owns(ctx context.Context, r *run) bool {
	token, err := h.rdb.HGet(context.WithoutCancel(ctx), recordKey(r.ID), "run").Result()
	return err == nil && token == r.token
}

// ending is how a run leaves its job.
type ending struct {
	State  State
	Count  string // "attempts", "snoozes" or ""
	Next   time.Time
	Error  string
	Result string
	// wake puts the promised instant where the waker looks.
	wake bool
	// forwardTo is the copy that goes on with the job.
	forwardTo string
}

// finish closes a run: the record, the index of ended jobs, the totals, the
// promised instant for the waker, all in one round trip. It goes on though ctx
// ends: what happened has happened.
func (h *Handler) finish(ctx context.Context, r *run, e ending) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	now := r.now()
	life := recordLife
	args := []any{r.token, string(e.State), 0, e.Count, "last_error", e.Error}
	if !e.Next.IsZero() {
		args = append(args, "next_ms", e.Next.UnixMilli())
	}
	if e.Count == "snoozes" {
		since := r.SnoozedSince
		if since.IsZero() {
			since = now
		}
		args = append(args, "snoozed_ms", since.UnixMilli())
	}
	if e.Result != "" {
		args = append(args, "result", e.Result)
	}
	if e.forwardTo != "" {
		args = append(args, "forward", e.forwardTo)
	}
	ended := e.State.Ended() || e.forwardTo != ""
	if ended {
		life = endedLife
		args = append(args, "ended_ms", now.UnixMilli())
	}
	args[2] = life.Milliseconds()

	var b luarun.Batch
	i := b.Script(finishScript, []string{recordKey(r.ID)}, args...)
	// A reader's claim on this job ends with it, and lives as long as it sleeps.
	switch {
	case e.State.Ended():
		h.store.HoldInto(&b, r.Key, r.ID, 0)
	case e.State == Snoozed || e.State == Retrying:
		h.store.HoldInto(&b, r.Key, r.ID, e.Next.Sub(now)+time.Minute)
	}
	if e.Result != "" {
		// asynq writes a result with HSET, which would bring back a task that is gone.
		b.Script(resultScript, []string{asynqTaskPrefix(r.Queue) + r.ID}, e.Result)
	}
	b.Plain(func(p redis.Pipeliner) {
		p.HIncrBy(ctx, countersKey, string(e.State), 1)
		if e.State.Ended() {
			p.ZAdd(ctx, endedKey, redis.Z{Score: float64(now.UnixMilli()), Member: r.Feed + "\x00" + r.ID})
		}
		if e.wake && e.forwardTo == "" {
			p.ZAdd(ctx, wakeKey(r.Queue), redis.Z{Score: float64(e.Next.UnixMilli()), Member: r.ID})
		}
	})
	cmds, err := h.desk.Do(ctx, &b)
	if err != nil {
		return fmt.Errorf("jobs: finish %q: %w", r.ID, err)
	}
	for _, cmd := range cmds[i+1:] {
		if cmd.Err() != nil {
			h.log.Warn("could not settle what follows a run", "job", r.ID, "error", cmd.Err())
		}
	}
	written, err := cmds[i].Int()
	if err != nil {
		return fmt.Errorf("jobs: finish %q: %w", r.ID, err)
	}
	if written == 0 {
		return errStale
	}
	return nil
}
