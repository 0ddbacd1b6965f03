package demo

import (
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// Seen is one request that reached the upstream.
type Seen struct {
	At     time.Time
	Path   string
	Region string // "" for the feed
	Status int    // 0 while it is not answered
	Remote string // the address that it came from, without the port
	Via    string // the proxy's name, or "direct"
}

// UpstreamStats are the upstream's counters since it started.
type UpstreamStats struct {
	Requests    int64 // all that came
	API         int64 // of these, to the API
	Refused     int64 // answered quotaExceeded
	NotModified int64 // answered 304
	Failed      int64 // answered any other 4xx or 5xx
	// Peak is the most units that any key was granted within a window.
	Peak     int64
	Limit    int64
	Window   time.Duration
	ByRemote map[string]int64
	ByVia    map[string]int64
	ByRegion map[string]int64
}

const (
	keptRequests = 2000
	keptNames    = 1000 // names a counter tells apart; more are counted as "other"
)

// record is the upstream's log, bounded.
type record struct {
	mu    sync.Mutex
	stats UpstreamStats
	ring  []Seen
	first int64 // number of ring[0]
}

func newRecord() *record {
	return &record{stats: UpstreamStats{ByRemote: map[string]int64{}, ByVia: map[string]int64{}, ByRegion: map[string]int64{}}}
}

// arrive notes a request and gives its number.
func (r *record) arrive(s Seen, api bool) int64 {
	if host, _, err := net.SplitHostPort(s.Remote); err == nil {
		s.Remote = host
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Requests++
	if api {
		r.stats.API++
	}
	tally(r.stats.ByRemote, s.Remote)
	tally(r.stats.ByVia, s.Via)
	if s.Region != "" {
		tally(r.stats.ByRegion, s.Region)
	}
	if len(r.ring) == keptRequests {
		r.ring = append(r.ring[:0], r.ring[keptRequests/2:]...)
		r.first += keptRequests / 2
	}
	r.ring = append(r.ring, s)
	return r.first + int64(len(r.ring)) - 1
}

func tally(m map[string]int64, name string) {
	if _, known := m[name]; !known && len(m) >= keptNames {
		name = "other"
	}
	m[name]++
}

// answered notes how the request of that number ended.
func (r *record) answered(n int64, status int, overQuota bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := n - r.first; i >= 0 && i < int64(len(r.ring)) {
		r.ring[i].Status = status
	}
	switch {
	case overQuota:
		r.stats.Refused++
	case status == http.StatusNotModified:
		r.stats.NotModified++
	case status >= http.StatusBadRequest:
		r.stats.Failed++
	}
}

func (r *record) peak(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Peak = max(r.stats.Peak, n)
}

func (r *record) snapshot() UpstreamStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.ByRemote, s.ByVia, s.ByRegion = maps.Clone(s.ByRemote), maps.Clone(s.ByVia), maps.Clone(s.ByRegion)
	return s
}

func (r *record) log() []Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Seen(nil), r.ring...)
}
