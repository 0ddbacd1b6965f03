package jobs

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"feedwarden/jobs/fetch"
	"feedwarden/jobs/source"
)

// Trial is one fetch by hand, as it may be shown: no secret is in it. Parts that
// were not reached are nil.
type Trial struct {
	Feed    string       `json:"feed"`
	OK      bool         `json:"ok"`
	Sent    bool         `json:"sent"` // something of the request left
	Request TrialRequest `json:"request"`
	Robots  *TrialRobots `json:"robots"`
	Via     *TrialVia    `json:"via"`
	Answer  *TrialAnswer `json:"answer"`
	Read    *TrialRead   `json:"read"`
	Cost    TrialCost    `json:"cost"`
	// Failure is why nothing was read, and what would follow for a job.
	Failure *TrialFailure `json:"failure"`
	// RetryAfterMS is set where trying again later can succeed: exit code 75.
	RetryAfterMS int64 `json:"retry_after_ms"`
}

// TrialRequest is what was sent, or would have been.
type TrialRequest struct {
	Method string        `json:"method"`
	URL    string        `json:"url"` // query values hidden, but those that are known to be no secret
	Header []TrialHeader `json:"headers"`
}

// TrialHeader is one header; Hidden is its value's length where that is not shown.
type TrialHeader struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Hidden int    `json:"hidden,omitempty"`
}

// TrialRobots is what robots.txt said.
type TrialRobots struct {
	URL     string    `json:"url"`
	Asked   bool      `json:"asked"` // just now; else it was known
	Status  int       `json:"status"`
	Rules   int       `json:"rules"` // for us
	Agent   string    `json:"agent"` // whose they are: our token, "*" or ""
	Allowed bool      `json:"allowed"`
	Says    string    `json:"says"` // the rule that decided, or why nothing is known
	DelayMS int64     `json:"crawl_delay_ms"`
	Until   time.Time `json:"until"`
}

// TrialVia is the endpoint.
type TrialVia struct {
	Pool     string `json:"pool"`
	Endpoint string `json:"endpoint"`
	URL      string `json:"url"` // without user and password; "" is direct
}

// TrialAnswer is what came.
type TrialAnswer struct {
	Status    int           `json:"status"`
	URL       string        `json:"url"` // the last one, after redirects
	Redirects int           `json:"redirects"`
	Header    []TrialHeader `json:"headers"`
	Type      string        `json:"type"`
	Bytes     int           `json:"bytes"` // decoded
	TookMS    int64         `json:"took_ms"`
}

// TrialRead is what was read of the answer.
type TrialRead struct {
	Items   int           `json:"items"`
	First   []source.Item `json:"first"`
	Next    bool          `json:"next"` // there is a further page
	Lossy   bool          `json:"lossy"`
	Capped  bool          `json:"capped"`
	Dropped int           `json:"dropped"`
}

// TrialCost is what it took.
type TrialCost struct {
	Quota    string `json:"quota"` // "" is charged to none
	Units    int64  `json:"units"` // 0 where nothing went out
	ID       string `json:"id"`
	Requests int    `json:"requests"` // to the target, that for robots.txt included
}

// TrialFailure is a kind of outcome, and what follows from it.
type TrialFailure struct {
	Reason string `json:"reason"`
	// Follows is the row of the table of outcomes; nil where a job would wait
	// before anything is asked for.
	Follows *Follows `json:"follows"`
	// Closed is what the target's "not now" closed for everybody: "quota NAME",
	// "host HOST", or "".
	Closed string `json:"closed"`
}

// firstItems is how many items of a trial are shown.
const firstItems = 10

// shownURL hides the query's values, but those of names that are open.
func shownURL(u *url.URL, open func(param string) bool) string {
	bare := *u
	bare.RawQuery, bare.ForceQuery = "", false
	s := fetch.Redact(&bare)
	if u.RawQuery == "" {
		return s
	}
	var parts []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, has := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); has && (err != nil || !open(plain)) {
			part = name + "=…"
		}
		parts = append(parts, part)
	}
	return s + "?" + strings.Join(parts, "&")
}

var (
	plainRequest = []string{"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Pragma", "User-Agent"}
	plainAnswer  = []string{
		"Accept-Ranges", "Age", "Allow", "Cache-Control", "Connection", "Content-Language", "Content-Type", "Date", "Etag", "Expires", "Keep-Alive",
		"Last-Modified", "Pragma", "Retry-After", "Server", "Vary", "Via", "X-Cache", "X-Robots-Tag",
	}
)

// shownHeader is a header, sorted, with only those values that are known to be
// no secret.
func shownHeader(h http.Header, plain []string) []TrialHeader {
	out := []TrialHeader{}
	for name, values := range h {
		v := strings.Join(values, ", ")
		switch {
		case slices.Contains(plain, name), strings.Contains(name, "Ratelimit"):
			out = append(out, TrialHeader{Name: name, Value: bounded(v)})
		default:
			out = append(out, TrialHeader{Name: name, Hidden: len(v)})
		}
	}
	slices.SortFunc(out, func(a, b TrialHeader) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// bounded keeps a stranger's text short.
func bounded(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
