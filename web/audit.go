package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The audit is a stream in Redis, a line for each thing that somebody did through
// any web server. It is bounded: the newest lines stay.
const (
	auditKey  = "fw:{audit}:log"
	auditKept = 10_000
	// auditText bounds what a line quotes of a request.
	auditText = 300
)

// busyEvery is how often a program that does the same again and again (a charge,
// say) leaves a line; the next one says how often it was. A script's traffic must
// not wash out what people did.
const (
	busyEvery = time.Minute
	busyKept  = 1000
)

// AuditLine is one thing that somebody did, or tried to.
type AuditLine struct {
	ID      string
	At      time.Time
	Who     string // a token's name; local or anonymous where none are set
	Role    string
	From    string // the address it came from
	What    string
	Object  string
	Outcome string // "done", or why not
	Done    bool
	Times   int64 // how often since the last such line
}

type audit struct {
	rdb redis.UniversalClient
	log *slog.Logger

	mu   sync.Mutex
	busy map[AuditLine]*lately // by the line without its times
}

// lately is when a line was last written, and how often it happened since.
type lately struct {
	at time.Time
	n  int64
}

func newAudit(rdb redis.UniversalClient, log *slog.Logger) *audit {
	return &audit{rdb: rdb, log: log, busy: map[AuditLine]*lately{}}
}

// leave writes a line and gives its ID. It is written though the request's sender
// has gone: what was done was done.
func (a *audit) leave(ctx context.Context, l AuditLine) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), snapshotWithin)
	defer cancel()
	done := "0"
	if l.Done {
		done = "1"
	}
	id, err := a.rdb.XAdd(ctx, &redis.XAddArgs{Stream: auditKey, MaxLen: auditKept, Approx: true, Values: []any{
		"who", l.Who, "role", l.Role, "from", l.From, "what", l.What, "object", cutText(l.Object, auditText),
		"outcome", cutText(l.Outcome, auditText), "done", done, "times", max(l.Times, 1),
	}}).Result()
	if err != nil {
		a.log.Error("an audit line could not be written", "who", l.Who, "what", l.What, "object", l.Object, "outcome", l.Outcome, "error", err)
		return "", fmt.Errorf("web: audit: %w", err)
	}
	return id, nil
}

// leaveBusy is leave for what programs do at any pace: at most a line a minute.
func (a *audit) leaveBusy(ctx context.Context, l AuditLine, now time.Time) {
	l.ID, l.At, l.Times = "", time.Time{}, 0
	a.mu.Lock()
	b := a.busy[l]
	if b == nil {
		for len(a.busy) >= busyKept {
			for k := range a.busy { // any: no more is lost than a number of times
				delete(a.busy, k)
				break
			}
		}
		b = &lately{}
		a.busy[l] = b
	}
	b.n++
	if now.Sub(b.at) < busyEvery {
		a.mu.Unlock()
		return
	}
	l.Times, b.n, b.at = b.n, 0, now
	a.mu.Unlock()
	_, _ = a.leave(ctx, l) // the log says it
}

// close writes what was counted and not told yet.
func (a *audit) close(ctx context.Context) {
	a.mu.Lock()
	rest := a.busy
	a.busy = map[AuditLine]*lately{}
	a.mu.Unlock()
	for l, b := range rest {
		if l.Times = b.n; b.n > 0 {
			if _, err := a.leave(ctx, l); err != nil {
				return
			}
		}
	}
}

// page gives the lines before one, the newest first; "" begins with the newest.
// next is the last one's ID where there are more.
func (a *audit) page(ctx context.Context, before string, n int64) (lines []AuditLine, next string, err error) {
	end := "+"
	if before != "" {
		end = "(" + before
	}
	found, err := a.rdb.XRevRangeN(ctx, auditKey, end, "-", n+1).Result()
	if err != nil {
		return nil, "", fmt.Errorf("web: audit: %w", err)
	}
	for i, m := range found {
		if int64(i) == n {
			return lines, lines[i-1].ID, nil
		}
		lines = append(lines, auditLine(m))
	}
	return lines, "", nil
}

var errNoLine = errors.New("no such line")

// line finds one by its ID.
func (a *audit) line(ctx context.Context, id string) (AuditLine, error) {
	found, err := a.rdb.XRange(ctx, auditKey, id, id).Result()
	if err != nil {
		return AuditLine{}, fmt.Errorf("web: audit: %w", err)
	}
	if len(found) == 0 {
		return AuditLine{}, errNoLine
	}
	return auditLine(found[0]), nil
}

func auditLine(m redis.XMessage) AuditLine {
	text := func(name string) string { s, _ := m.Values[name].(string); return s }
	times, _ := strconv.ParseInt(text("times"), 10, 64)
	l := AuditLine{
		ID: m.ID, Who: text("who"), Role: text("role"), From: text("from"), What: text("what"), Object: text("object"),
		Outcome: text("outcome"), Done: text("done") == "1", Times: max(times, 1),
	}
	if ms, err := strconv.ParseInt(strings.SplitN(m.ID, "-", 2)[0], 10, 64); err == nil {
		l.At = time.UnixMilli(ms).UTC()
	}
	return l
}

// auditID says that a text is the ID of a line, as Redis writes it.
func auditID(text string) bool {
	ms, seq, ok := strings.Cut(text, "-")
	digits := func(s string) bool { return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == "" }
	return ok && digits(ms) && digits(seq)
}

// cutText bounds a text in bytes, between two characters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
