package jobs

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/internal/luarun"
	"feedwarden/jobs/feed"
	"feedwarden/quota"
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
	ID      string
	Queue   string
	token   string
	Feed    string
	Key     string // the feed's key in the cache
	Tick    string // RFC 3339 in UTC, or ""
	payload payload

	// What the record said when the run began.
	State        State
	Attempts     int
	Snoozes      int
	Sent         int
	Crashes      int
	SnoozedSince time.Time
	Due          time.Time // the promised instant, zero if there was none
	Forward      string
	Cancelled    bool
	Ended        time.Time

	chargeAs string
	asked    string // the quota that was asked last: it may stand in that one's line
	bay      *bay   // where it runs; nil outside a worker
	flight   *flight
	host     string          // of the target
	limits   []quota.Running // asked for
	held     bool            // and held
	paced    time.Time       // when its start at the host was granted
	waited   time.Duration   // inside its handler
	waits    int
	claims   bool      // it is the refresh that readers asked for
	resumed  bool      // pages of an earlier run were kept
	BeganUS  int64     // Redis's clock at a moment of the run, µs
	local    time.Time // ours at the same moment
	Head     feed.Head
}

// now is Redis's clock, carried on by our monotonic one.
func (r *run) now() time.Time {
	return time.UnixMicro(r.BeganUS).Add(time.Since(r.local)).UTC()
}

// anchor sets the run's clock by a later answer: what Redis said, and when it was
// asked. Both are ahead of Redis by what the answer took; the nearer one counts.
func (r *run) anchor(us int64, asked time.Time) {
	if time.UnixMicro(us).Add(time.Since(asked)).Before(r.now()) {
		r.BeganUS, r.local = us, asked
	}
}

// chargeID names the job's next request to the quota: an unsent one keeps its
// number when the job runs again, a sent one is followed by the next.
func (r *run) chargeID() string { return chargeID(r.chargeAs, r.Sent) }

// priority is the class of the job's charges.
func (r *run) priority() quota.Priority {
	if r.Queue == QueueInteractive {
		return quota.Interactive
	}
	return quota.Scheduled
}

// robotsID names the job's start at a host for its robots.txt.
func (r *run) robotsID() string { return robotsID(r.chargeAs) }

func robotsID(as string) string { return as + "/robots" }

func chargeID(as string, sent int) string { return as + "/" + strconv.Itoa(sent+1) }

// chargeName is a job's ID as a quota takes it: a foreign one may be of any
// length and any bytes.
func chargeName(id string) string {
	plain := len(id) <= 140
	for i := range len(id) {
		plain = plain && id[i] > ' ' && id[i] < 0x7f
	}
	if plain {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256-" + hex.EncodeToString(sum[:16])
}

// begin opens a run and reads the feed's head in one round trip. A reader's
// claim on this job, where there is one, is held while it runs. again forgets
// how the job ended.
func (h *Handler) begin(ctx context.Context, r *run, again bool) error {
	flag := ""
	if again {
		flag = "1"
	}
	var b luarun.Batch
	i := b.Script(beginScript, []string{recordKey(r.ID)}, r.token, r.Feed, r.Queue, r.Tick, recordLife.Milliseconds(),
		r.payload.ChargeAs, chargeName(r.ID), flag)
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
	if len(reply) != 13 {
		return fmt.Errorf("jobs: begin %q: unexpected reply %q", r.ID, reply)
	}
	var faults []error
	num := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		faults = append(faults, err)
		return n
	}
	r.BeganUS = num(reply[0])
	r.State = State(reply[1])
	r.Attempts, r.Snoozes, r.Sent, r.Crashes = int(num(reply[2])), int(num(reply[3])), int(num(reply[4])), int(num(reply[5]))
	r.SnoozedSince, r.Due = fromMillis(num(reply[6])), fromMillis(num(reply[7]))
	r.Forward, r.Cancelled, r.chargeAs, r.Ended, r.asked = reply[8], reply[9] != "", reply[10], fromMillis(num(reply[11])), reply[12]
	r.Head = head()
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("jobs: record of %q: %w", r.ID, err)
	}
	// A claim is made before its job is enqueued: one that is not there now never will be.
	if r.claims = r.Head.Refreshing == r.ID; r.claims {
		if err := h.store.Hold(ctx, r.Key, r.ID, h.holdFor()); err != nil {
			h.log.Warn("could not hold a refresh for its job", "job", r.ID, "feed", r.Feed, "error", err)
		}
	}
	return nil
}

// holdFor is how long a reader's claim outlives the last sign of its job: a
// page at the longest, and a margin.
func (h *Handler) holdFor() time.Duration { return h.cfg.FetchTimeout + claimLife }

func fromMillis(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// markSent spends the charge: the request goes out next. It answers Redis's
// clock, which orders the versions that fetches make.
func (h *Handler) markSent(ctx context.Context, r *run) (time.Time, error) {
	var b luarun.Batch
	asked := time.Now()
	i := b.Script(sentScript, []string{recordKey(r.ID)}, r.token, r.Sent+1)
	if r.claims {
		h.store.HoldInto(&b, r.Key, r.ID, h.holdFor())
	}
	cmds, err := h.desk.Do(ctx, &b)
	if err != nil {
		return time.Time{}, fmt.Errorf("jobs: mark %q sent: %w", r.ID, err)
	}
	reply, err := cmds[i].Text()
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
	r.anchor(us, asked)
	return time.UnixMicro(us).UTC(), nil
}

// ending is how a run leaves its job.
type ending struct {
	State  State
	Count  string // "attempts", "snoozes" or ""
	Next   time.Time
	Error  string
	Result string // a line of JSON
}

// finish closes a run: first the record, which says whether the job is still
// this run's; then what follows from it. It goes on though ctx ends: what
// happened has happened. errStale: another run has the job, and nothing was
// done. errCancelled: a person cancelled it meanwhile, and it has ended so.
func (h *Handler) finish(ctx context.Context, r *run, e ending) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	written, err := h.desk.Run(ctx, finishScript, []string{recordKey(r.ID)}, h.finishArgs(r, e)...).Int()
	switch {
	case err != nil:
		return fmt.Errorf("jobs: finish %q: %w", r.ID, err)
	case written == 0:
		return errStale
	case written == 2:
		e = ending{State: Cancelled}
		h.follow(ctx, r, e)
		return errCancelled
	}
	h.follow(ctx, r, e)
	return nil
}

func (h *Handler) finishArgs(r *run, e ending) []any {
	now, life := r.now(), recordLife
	fields := []any{"last_error", e.Error}
	if !e.Next.IsZero() {
		fields = append(fields, "next_ms", e.Next.UnixMilli())
	}
	if e.Count == "snoozes" {
		since := r.SnoozedSince
		if since.IsZero() {
			since = now
		}
		fields = append(fields, "snoozed_ms", since.UnixMilli())
	}
	if r.asked != "" {
		fields = append(fields, "quota", r.asked)
	}
	if e.Result != "" {
		fields = append(fields, "result", e.Result)
	}
	if e.State.Ended() {
		life = endedLife
		fields = append(fields, "ended_ms", now.UnixMilli())
	}
	return append([]any{r.token, string(e.State), life.Milliseconds(), e.Count, endedLife.Milliseconds()}, fields...)
}

// follow does what follows from a run's end, in one round trip: a reader's
// claim, the line for asynqmon, the index of ended jobs, the promised instant
// for the waker, the totals. None of it can undo the end.
func (h *Handler) follow(ctx context.Context, r *run, e ending) {
	now := r.now()
	var b luarun.Batch
	switch {
	case !r.claims:
	case e.State.Ended():
		h.store.HoldInto(&b, r.Key, r.ID, 0)
	case !e.Next.IsZero():
		h.store.HoldInto(&b, r.Key, r.ID, e.Next.Sub(now)+claimLife)
	}
	if e.Result != "" {
		// asynq writes a result with HSET, which would bring back a task that is gone.
		b.Script(resultScript, []string{asynqTaskPrefix(r.Queue) + r.ID}, e.Result)
	}
	b.Plain(func(p redis.Pipeliner) {
		counted := string(e.State)
		if r.delivers() {
			counted = "sink_" + counted
		}
		p.HIncrBy(ctx, countersKey, counted, 1)
		if r.waits > 0 {
			p.HIncrBy(ctx, countersKey, "waits", int64(r.waits))
		}
		if e.State.Ended() {
			p.ZAdd(ctx, endedKey, redis.Z{Score: float64(now.UnixMilli()), Member: r.Feed + "\x00" + r.ID})
		}
		if !e.Next.IsZero() {
			p.ZAddLT(ctx, wakeKey(r.Queue), redis.Z{Score: wakeScore(e.Next), Member: r.ID}) // it may have been called already
		}
	})
	cmds, err := h.desk.Do(ctx, &b)
	for _, cmd := range cmds {
		err = errors.Join(err, cmd.Err())
	}
	if err != nil {
		h.log.Warn("could not settle what follows a run", "job", r.ID, "feed", r.Feed, "error", err)
	}
	if !e.Next.IsZero() && e.Next.Sub(now) < wakeIdle {
		h.poke.queue(r.Queue)
	}
	h.exit(ctx, r, e.State.Ended())
	if e.State.Ended() && r.resumed {
		if err := h.store.DropPartial(ctx, r.Key, r.chargeAs); err != nil {
			h.log.Warn("could not drop kept pages", "job", r.ID, "feed", r.Feed, "error", err)
		}
	}
}

// owns says whether the job is still this run's.
func (h *Handler) owns(ctx context.Context, r *run) bool {
	token, err := h.rdb.HGet(context.WithoutCancel(ctx), recordKey(r.ID), "run").Result()
	return err == nil && token == r.token
}
