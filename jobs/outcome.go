package jobs

import (
	"context"
	"errors"
	"math"
	"time"

	"feedwarden/allocation"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/robots"
	"feedwarden/jobs/source"
)

// action is what follows a request that brought nothing.
type action int

const (
	retry  action = iota // a real failure: try again after a backoff, within the feed's attempts
	snooze               // the target says "not now": sleep, no attempt is burnt
	fail                 // trying again cannot succeed
	stop                 // we stopped it ourselves
)

// rule is what one kind of outcome means for the job, the endpoint and the quota.
type rule struct {
	action action
	health allocation.Outcome
	closes bool          // the quota is closed for everybody until the target's instant
	pause  time.Duration // how long where the target names no instant
}

// The one table of outcomes. docs/outcomes.md shows it to a person.
var fetchRules = map[fetch.Kind]rule{
	fetch.KindConnect:     {action: retry, health: allocation.Connect},
	fetch.KindUnreachable: {action: retry, health: allocation.Unreachable},
	fetch.KindTLS:         {action: retry, health: allocation.TLS},
	fetch.KindProxyAuth:   {action: retry, health: allocation.ProxyAuth},
	fetch.KindTimeout:     {action: retry, health: allocation.Timeout},
	fetch.KindReset:       {action: retry, health: allocation.Reset},
	fetch.KindTruncated:   {action: retry, health: allocation.Reset},
	fetch.KindProtocol:    {action: retry, health: allocation.Reset},
	fetch.KindTooLarge:    {action: fail, health: allocation.OK},
	fetch.KindPolicy:      {action: fail, health: allocation.Cancelled},
	fetch.KindCancelled:   {action: stop, health: allocation.Cancelled},
}

var answerRules = map[source.AnswerKind]rule{
	source.QuotaDay:  {action: snooze, health: allocation.OK, closes: true},
	source.QuotaRate: {action: snooze, health: allocation.OK, closes: true, pause: 10 * time.Second},
	source.NotFound:  {action: fail, health: allocation.OK},
	source.Forbidden: {action: fail, health: allocation.OK},
	source.Invalid:   {action: fail, health: allocation.OK},
	source.Target5xx: {action: retry, health: allocation.Target5xx},
	source.NotAFeed:  {action: retry, health: allocation.OK},
	source.Truncated: {action: retry, health: allocation.OK},
	source.Ban:       {action: retry, health: allocation.Ban},
}

// What robots.txt says, or does not, before a page is asked for.
const (
	robotsDisallowed = "robots-disallowed"
	robotsUnknown    = "robots-unknown"
)

var robotsRules = map[string]rule{
	robotsDisallowed: {action: fail, health: allocation.Cancelled},
	robotsUnknown:    {action: snooze, health: allocation.Cancelled},
}

// verdict is a rule applied to one answer.
type verdict struct {
	rule
	until time.Duration // from now; 0 where the target named nothing
	err   error
}

// judge finds the rule for an error of fetch or source. A Retry-After of the
// target turns a retry into a snooze: it said when to come back.
func judge(err error, now time.Time) verdict {
	var unknown *robots.UnknownError
	switch { // before the fetch's own kinds: a redirect may lead where robots.txt keeps us out
	case errors.Is(err, robots.ErrDisallowed):
		return verdict{rule: robotsRules[robotsDisallowed], err: err}
	case errors.As(err, &unknown):
		return verdict{rule: robotsRules[robotsUnknown], until: max(unknown.Until.Sub(now), time.Second), err: err}
	}
	var fe *fetch.Error
	if errors.As(err, &fe) {
		r, ok := fetchRules[fe.Kind]
		if !ok {
			r = rule{action: retry, health: allocation.Cancelled}
		}
		return verdict{rule: r, err: err}
	}
	var ae *source.AnswerError
	if errors.As(err, &ae) {
		r, ok := answerRules[ae.Kind]
		if !ok {
			r = rule{action: retry, health: allocation.OK}
		}
		v := verdict{rule: r, until: ae.RetryAfter, err: err}
		switch {
		case ae.Kind == source.QuotaDay: // whatever sooner instant a header names: the budget is spent until then
			v.until = max(v.until, untilPacificMidnight(now))
		case r.action == snooze && v.until == 0:
			v.until = r.pause
		case r.action == retry && v.until > 0:
			v.action, v.closes = snooze, true
		}
		return v
	}
	if errors.Is(err, context.Canceled) {
		return verdict{rule: rule{action: stop, health: allocation.Cancelled}, err: err}
	}
	return verdict{rule: rule{action: retry, health: allocation.Cancelled}, err: err}
}

// dayMargin keeps the first request of a new day clear of clocks that differ.
const dayMargin = time.Minute

// untilPacificMidnight is the time to the end of YouTube's quota day, which is
// midnight Pacific time (YouTube Data API, quota documentation).
func untilPacificMidnight(now time.Time) time.Duration {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		return 24 * time.Hour
	}
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone).Sub(now) + dayMargin
}

const (
	backoffBase = 2 * time.Second
	backoffMax  = 10 * time.Minute
)

// backoff is the delay before attempt n+1 after n real failures: doubling from
// two seconds to ten minutes, with up to a quarter more by spread in [0,1).
func backoff(n int, spread float64) time.Duration {
	d := float64(backoffBase) * math.Pow(2, float64(max(n, 1)-1))
	return time.Duration(min(d, float64(backoffMax)) * (1 + spread/4))
}

// HealthOf is what a failed fetch says of the endpoint that carried it.
func HealthOf(k fetch.Kind) allocation.Outcome {
	if r, ok := fetchRules[k]; ok {
		return r.health
	}
	return allocation.Cancelled
}
