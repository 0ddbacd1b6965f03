package jobs

import (
	"fmt"

	"feedwarden/allocation"
	"feedwarden/internal/units"
	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

// Follows is what one kind of outcome means, in words.
type Follows struct {
	Kind     string `json:"kind"`
	Means    string `json:"means"`
	Job      string `json:"job"`
	Endpoint string `json:"endpoint"`
	Closes   string `json:"closes"` // "" closes nothing
}

// Outcomes is the table of outcomes as it runs, in words and in the order in
// which a request goes.
func Outcomes() []Follows {
	out := make([]Follows, 0, len(kindsInOrder))
	for _, k := range kindsInOrder {
		r, _ := ruleOf(k.kind)
		out = append(out, r.follows(k.kind, k.means))
	}
	return out
}

// kindsInOrder are the kinds, with what happened.
var kindsInOrder = []struct{ kind, means string }{
	{robotsUnknown, "the host's robots.txt: 5xx, 429 or no answer"},
	{robotsDisallowed, "a rule of the host's robots.txt"},
	{string(fetch.KindPolicy), "a scheme, host, port, address or redirect that is not allowed"},
	{string(fetch.KindConnect), "no connection to the endpoint, or, where there is none, to the target"},
	{string(fetch.KindUnreachable), "the endpoint answers, and has no way to the target"},
	{string(fetch.KindProxyAuth), "a 407, in either shape"},
	{string(fetch.KindTLS), "a handshake or a certificate failed"},
	{string(fetch.KindTimeout), "too slow: in all, to the headers, silent or dripping within the body"},
	{string(fetch.KindReset), "the connection broke"},
	{string(fetch.KindProtocol), "not HTTP, or an encoding that nobody asked for"},
	{string(fetch.KindTruncated), "the body ended before its end"},
	{string(fetch.KindTooLarge), "more decoded bytes than `fetch.max_body`"},
	{string(fetch.KindCancelled), "we stopped it: the worker stops, a person cancels"},
	{string(source.QuotaRate), "429, 403 with Retry-After, `rateLimitExceeded`, `userRateLimitExceeded`"},
	{string(source.QuotaDay), "`quotaExceeded`, `dailyLimitExceeded`, a 429 that names a day"},
	{string(source.Target5xx), "5xx, 408, 425"},
	{string(source.Ban), "a challenge page, or a ban page by the source's `ban`"},
	{string(source.Forbidden), "401, 403, 451"},
	{string(source.NotFound), "404, 410, `videoChartNotFound`"},
	{string(source.Invalid), "400, a blocked key"},
	{string(source.NotAFeed), "something else than a feed"},
	{string(source.Truncated) + "-answer", "an answer that stops in the middle, or is empty where there were items"},
}

// ruleOf finds a kind's rule, and says whether it has one. Two kinds are called
// truncated: what a source finds is told apart by its end.
func ruleOf(kind string) (rule, bool) {
	if r, ok := robotsRules[kind]; ok {
		return r, true
	}
	if r, ok := fetchRules[fetch.Kind(kind)]; ok {
		return r, true
	}
	if kind == string(source.Truncated)+"-answer" {
		kind = string(source.Truncated)
	}
	r, ok := answerRules[source.AnswerKind(kind)]
	return r, ok
}

func (r rule) follows(kind, means string) Follows {
	f := Follows{Kind: kind, Means: means, Job: map[action]string{
		retry: "retry", snooze: "snooze", fail: "fail", stop: "back to the queue, or cancelled",
	}[r.action]}
	switch {
	case kind == string(source.QuotaDay):
		f.Job += " until midnight Pacific time and a minute"
	case kind == robotsUnknown:
		f.Job += " until the file is asked for again"
	case r.action == snooze:
		f.Job += fmt.Sprintf(" until Retry-After, else %s", units.FormatDuration(r.pause))
	case r.action == retry && answered(kind):
		f.Job += "; with Retry-After snooze until then"
	}
	switch r.health {
	case allocation.Cancelled:
		f.Endpoint = "nothing"
	case allocation.OK:
		f.Endpoint = "ok"
	case allocation.ProxyAuth:
		f.Endpoint = "`auth_failed`: out until a person restores it"
	case allocation.Target5xx:
		f.Endpoint = "`target-5xx`: the target's fault"
	case allocation.Ban:
		f.Endpoint = "banned for this target"
	default:
		f.Endpoint = fmt.Sprintf("held against it: `%s`", r.health)
	}
	switch {
	case r.closes:
		f.Closes = "closed until then"
	case r.action == retry && answered(kind):
		f.Closes = "closed with Retry-After until then"
	}
	return f
}

// answered says that a kind is an answer of the target, which can name a time.
func answered(kind string) bool {
	_, of := fetchRules[fetch.Kind(kind)]
	return !of
}
