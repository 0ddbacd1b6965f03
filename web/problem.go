package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
	"feedwarden/jobs"
	"feedwarden/jobs/feed"
	"feedwarden/jobs/source"
	"feedwarden/quota"
)

// Problem is an error as a program reads it (RFC 9457, application/problem+json).
type Problem struct {
	Type   string `json:"type"` // about:blank: Code tells problems apart
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Code names the problem and does not change, such as "queue-full".
	Code string `json:"code"`
	// RetryAfterMS is when to ask again; the Retry-After header is the same in
	// whole seconds, rounded up.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`

	retryAfter time.Duration
}

func (p *Problem) Error() string { return p.Title + ": " + p.Detail }

func problem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

// after says when to ask again.
func (p *Problem) after(d time.Duration) *Problem {
	p.retryAfter = max(d, time.Millisecond)
	p.RetryAfterMS = ceilMillis(p.retryAfter)
	return p
}

// redisRetry is when a Redis that did not answer is worth another try.
const redisRetry = 5 * time.Second

// problemOf finds the problem that an error is to a client. What is not known
// says no more than that: its text may quote what is not the client's.
func problemOf(err error) *Problem {
	var (
		known   *Problem
		unknown *jobs.UnknownFeedError
		spec    *jobs.SpecError
		taken   *jobs.IDTakenError
		full    *jobs.FullError
		ended   *jobs.EndedError
		empty   *jobs.NotReadyError
		never   *quota.ImpossibleError
		fetched *jobs.NotPushedError
		nothing *jobs.EmptyPutError
		client  *jobs.ClientError
		unread  *source.AnswerError
		later   *RefusedError
		tooBig  *http.MaxBytesError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooBig):
		return problem(http.StatusRequestEntityTooLarge, "too-large", "the body has more than "+strconv.FormatInt(tooBig.Limit, 10)+" bytes")
	case errors.As(err, &unknown):
		return problem(http.StatusNotFound, "unknown-feed", unknown.Error())
	case errors.As(err, &spec):
		return problem(http.StatusBadRequest, "invalid-job", spec.Error())
	case errors.As(err, &taken):
		return problem(http.StatusConflict, "id-taken", taken.Error())
	case errors.As(err, &ended):
		return problem(http.StatusConflict, "job-ended", ended.Error())
	case errors.As(err, &full):
		return problem(http.StatusServiceUnavailable, "queue-full", full.Error()).after(full.RetryAfter)
	case errors.As(err, &empty):
		return problem(http.StatusServiceUnavailable, "feed-empty", empty.Error()).after(empty.RetryAfter)
	case errors.As(err, &later):
		return problem(http.StatusServiceUnavailable, "refused", later.Error()).after(later.RetryAfter)
	case errors.As(err, &fetched):
		return problem(http.StatusConflict, "not-push", fetched.Error())
	case errors.Is(err, jobs.ErrMoved):
		return problem(http.StatusPreconditionFailed, "other-version", "another version is the newest than the one that was named: read it, and put again")
	case errors.As(err, &nothing):
		return problem(http.StatusUnprocessableEntity, "empty", nothing.Error()+": ?allow_empty=true")
	case errors.As(err, &client):
		return problem(http.StatusBadRequest, "invalid-client", client.Error())
	case errors.As(err, &unread):
		return problem(http.StatusUnprocessableEntity, "unreadable", "the content cannot be read: "+unread.Reason)
	case errors.As(err, &never):
		return problem(http.StatusUnprocessableEntity, "impossible-cost", never.Error())
	case errors.Is(err, jobs.ErrNoJob):
		return problem(http.StatusNotFound, "unknown-job", jobs.ErrNoJob.Error())
	case errors.Is(err, feed.ErrNoVersion):
		return problem(http.StatusNotFound, "unknown-version", "that version is not kept, or never was")
	case errors.Is(err, quota.ErrUnknownQuota):
		return problem(http.StatusNotFound, "unknown-quota", "no quota of that name in the config")
	case errors.Is(err, quota.ErrCost):
		return problem(http.StatusBadRequest, "invalid-cost", quota.ErrCost.Error())
	case errors.Is(err, quota.ErrLabel):
		return problem(http.StatusBadRequest, "invalid-label", quota.ErrLabel.Error())
	case errors.Is(err, quota.ErrID):
		return problem(http.StatusBadRequest, "invalid-id", quota.ErrID.Error())
	case errors.Is(err, allocation.ErrUnknownEndpoint):
		return problem(http.StatusNotFound, "unknown-endpoint", "the pool has no endpoint of that ID, or no longer")
	case errors.Is(err, allocation.ErrHeld):
		return problem(http.StatusConflict, "endpoint-held", allocation.ErrHeld.Error())
	case errors.Is(err, allocation.ErrDuration):
		return problem(http.StatusBadRequest, "invalid-duration", allocation.ErrDuration.Error())
	case errors.Is(err, allocation.ErrNotPaused):
		return problem(http.StatusConflict, "not-paused", allocation.ErrNotPaused.Error())
	case errors.Is(err, allocation.ErrUnknownPool):
		return problem(http.StatusNotFound, "unknown-pool", "no pool of that name in the config")
	case errors.Is(err, ErrUnknownSchedule):
		return problem(http.StatusNotFound, "unknown-schedule", "no schedule of that name in the config")
	case readOnly(err):
		return problem(http.StatusServiceUnavailable, "writes-refused", "nothing is written to Redis for now; /readyz says why").after(redisRetry)
	case redis.HasErrorPrefix(err, diskFault):
		return problem(http.StatusServiceUnavailable, "redis-away", cannotSave).after(redisRetry)
	case redisRefuses(err):
		return problem(http.StatusServiceUnavailable, "redis-away", "Redis refuses what it is asked for now").after(redisRetry)
	case redisAway(err):
		return problem(http.StatusServiceUnavailable, "redis-away", "Redis does not answer").after(redisRetry)
	}
	return problem(http.StatusInternalServerError, "internal", "the server's log says what went wrong")
}

// redisAway says that an error is the way to Redis, or a server that is not
// ready, rather than what was asked of it.
// A Redis whose file cannot be written refuses every write, and PING too.
const (
	diskFault  = "MISCONF"
	cannotSave = "Redis cannot save to its disk, and so takes no writes: the disk is full, or fails"
)

func redisAway(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed) ||
		redis.IsLoadingError(err) || redis.IsClusterDownError(err) || redis.IsMasterDownError(err) ||
		redis.IsReadOnlyError(err) || redis.IsTryAgainError(err)
}

// redisRefuses says that a server answers, and does not do for now what it is asked:
// its memory or its connections are at their limit, its replicas are not there, or its
// password is another.
func redisRefuses(err error) bool {
	return redis.IsOOMError(err) || redis.IsMaxClientsError(err) || redis.IsNoReplicasError(err) || redis.IsAuthError(err)
}

// readOnly says that this process keeps from writing to its Redis.
func readOnly(err error) bool {
	var refusal interface{ WritesRefused() bool }
	return errors.As(err, &refusal) && refusal.WritesRefused()
}

// ceilMillis and ceilSeconds round a wait up: who comes back then is not early.
func ceilMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func ceilSeconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}
