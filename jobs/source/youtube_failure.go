package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"feedwarden/jobs/fetch"
)

// youtubeError is the API's error object (Google's JSON error format). What is
// of another shape reads as missing: one odd detail must not hide the reason.
type youtubeError struct {
	Error youtubeProblem `json:"error"`
}

type youtubeProblem struct {
	Message text           `json:"message"`
	Status  text           `json:"status"`
	Errors  list[reasoned] `json:"errors"`
	Details list[detailed] `json:"details"`
}

type reasoned struct {
	Reason  text `json:"reason"`
	Message text `json:"message"`
}

type detailed struct {
	Reason   text  `json:"reason"`
	Metadata texts `json:"metadata"`
}

// texts are an object's; what is none reads as empty.
type texts map[string]text

func (t *texts) UnmarshalJSON(b []byte) error {
	var m map[string]text
	if json.Unmarshal(b, &m) == nil {
		*t = m
	}
	return nil
}

// UnmarshalJSON reads the object, or a text in its place.
func (p *youtubeProblem) UnmarshalJSON(b []byte) error {
	type plain youtubeProblem
	if json.Unmarshal(b, &p.Message) == nil && p.Message != "" {
		return nil
	}
	_ = json.Unmarshal(b, (*plain)(p))
	return nil
}

// readYouTubeError reads an error, or the first of a list of them, as batches
// have it; ok is false for what is no JSON.
func readYouTubeError(body []byte) (e youtubeError, ok bool) {
	var several []youtubeError
	if json.Unmarshal(body, &several) == nil && len(several) > 0 {
		return several[0], true
	}
	return e, json.Unmarshal(body, &e) == nil
}

// byReason is what a reason means, whatever the status that brought it. A 403
// or 404 that is not here is Forbidden or NotFound, any other 4xx Invalid.
var byReason = map[string]AnswerKind{
	"quotaExceeded":                    QuotaDay,
	"dailyLimitExceeded":               QuotaDay,
	"dailyLimitExceededUnreg":          QuotaDay,
	"variableTermExpiredDailyExceeded": QuotaDay,
	"rateLimitExceeded":                QuotaRate,
	"rateLimitExceededUnreg":           QuotaRate,
	"userRateLimitExceeded":            QuotaRate,
	"userRateLimitExceededUnreg":       QuotaRate,
	"limitExceeded":                    QuotaRate,
	"servingLimitExceeded":             QuotaRate,
	"variableTermLimitExceeded":        QuotaRate,
	"RATE_LIMIT_EXCEEDED":              QuotaRate,
	"RESOURCE_EXHAUSTED":               QuotaRate,
	"concurrentLimitExceeded":          QuotaRate,

	// The key is wrong, or closed to this API or address: for good.
	"keyInvalid":                      Invalid,
	"keyExpired":                      Invalid,
	"API_KEY_INVALID":                 Invalid,
	"API_KEY_EXPIRED":                 Invalid,
	"API_KEY_SERVICE_BLOCKED":         Invalid,
	"API_KEY_HTTP_REFERRER_BLOCKED":   Invalid,
	"API_KEY_IP_ADDRESS_BLOCKED":      Invalid,
	"API_KEY_ANDROID_APP_BLOCKED":     Invalid,
	"API_KEY_IOS_APP_BLOCKED":         Invalid,
	"SERVICE_DISABLED":                Invalid,
	"CONSUMER_SUSPENDED":              Invalid,
	"CONSUMER_INVALID":                Invalid,
	"BILLING_DISABLED":                Invalid,
	"accessNotConfigured":             Invalid,
	"ipRefererBlocked":                Invalid,
	"insufficientPermissions":         Invalid,
	"ACCESS_TOKEN_SCOPE_INSUFFICIENT": Invalid,
	"CREDENTIALS_MISSING":             Invalid,
	"required":                        Invalid,
	"authError":                       Invalid,
	"forbidden":                       Forbidden,
	"playlistItemsNotAccessible":      Forbidden,
	"videoChartNotFound":              NotFound,
	"videoNotFound":                   NotFound,
	"playlistNotFound":                NotFound,
	"channelNotFound":                 NotFound,
	"invalidPageToken":                Invalid,
	"backendError":                    Target5xx,
	"internalError":                   Target5xx,
	"serviceUnavailable":              Target5xx,
	"SERVICE_UNAVAILABLE":             Target5xx,
	"processingFailure":               Target5xx,
	"UNAVAILABLE":                     Target5xx,
	"INTERNAL":                        Target5xx,
}

var perDay = regexp.MustCompile(`(?i)per[ _-]?day|daily[ _-]?(limit|quota)|\b1/d/`)

var plainReason = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// youtubeFailure classifies an answer that is not a 200.
func youtubeFailure(resp *fetch.Response, now time.Time) *AnswerError {
	e := byStatus(resp, now)
	if e == nil { // a 203: somebody on the way changed the answer
		return notAFeed(fmt.Sprintf("status %d", resp.Status), "")
	}
	if e.Kind == Ban {
		return e
	}
	body, ok := readYouTubeError(resp.Body)
	if !ok {
		// The API answers in JSON; a page in its place at 403 or 429 is the
		// provider's refusal of the address.
		if resp.Status == http.StatusForbidden || resp.Status == http.StatusTooManyRequests {
			e.Kind = Ban
		}
		if s := snippet(string(resp.Body[:min(len(resp.Body), 512)])); s != "" {
			e.Err = errors.New("it begins: " + s)
		}
		return e
	}
	reasons, all := body.reasons()
	if len(reasons) > 0 {
		e.Reason = reasons[0]
	}
	if m := snippet(string(body.Error.Message)); m != "" {
		e.Err = errors.New(m)
	}
	if resp.Status >= 500 {
		return e
	}
	known := slices.IndexFunc(reasons, func(r string) bool { return byReason[r] != "" })
	if day := slices.IndexFunc(reasons, func(r string) bool { return byReason[r] == QuotaDay }); day >= 0 {
		known = day
	}
	if known >= 0 {
		e.Kind, e.Reason = byReason[reasons[known]], reasons[known]
	}
	// Newer limits come as a rate limit that names its day.
	if e.Kind == QuotaRate && perDay.MatchString(all) {
		e.Kind = QuotaDay
	}
	return e
}

// reasons are the reasons in the order in which they tell most: the details'
// before the list's before the status. all is every text, for a search.
func (y youtubeError) reasons() (reasons []string, all string) {
	var b strings.Builder
	add := func(s text) {
		if plainReason.MatchString(string(s)) {
			reasons = append(reasons, string(s))
		}
	}
	b.WriteString(string(y.Error.Message))
	for _, d := range y.Error.Details {
		add(d.Reason)
		for _, v := range d.Metadata {
			b.WriteString("\n" + string(v))
		}
	}
	for _, e := range y.Error.Errors {
		add(e.Reason)
		b.WriteString("\n" + string(e.Message))
	}
	add(y.Error.Status)
	return reasons, b.String()
}
