package web

import (
	"context"
	"time"

	"feedwarden/jobs"
	"feedwarden/jobs/feed"
)

// FeedView is a feed as people and programs see it.
type FeedView struct {
	Name string `json:"name"`
	// State is fresh, stale, updating or empty.
	State string `json:"state"`
	AgeMS int64  `json:"age_ms"` // since it was fetched or confirmed; 0 while empty
	TTLMS int64  `json:"ttl_ms"` // 0: fresh for ever
	// Version is the newest; null while empty.
	Version *int64 `json:"version"`
	Items   int    `json:"items"` // of the newest version
	// FetchedAt is when the newest version was fetched or last confirmed, StoredAt
	// when it first came; both null while empty.
	FetchedAt *time.Time `json:"fetched_at"`
	StoredAt  *time.Time `json:"stored_at"`
	// NextAt is the next tick of its schedule; null where there is none.
	NextAt *time.Time `json:"next_at"`
	// Paused says who holds its ticks back; null while they come.
	Paused *Pause `json:"paused"`
	// Job is the living job that is to bring the next version of a feed that is
	// not fresh; "" where there is none. JobState is that job's state, and JobAt
	// when it goes on; null while it runs or is due.
	Job      string     `json:"job"`
	JobState string     `json:"job_state"`
	JobAt    *time.Time `json:"job_at"`
	// WaitingFor is why that job is snoozed; "" while it is not.
	WaitingFor string `json:"waiting_for"`
	// LastError is why the last fetch brought nothing; "" when it brought something.
	LastError   string     `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`

	// Sinks are the places where its versions go besides the cache.
	Sinks []SinkView `json:"sinks,omitempty"`

	Source   string `json:"source"`
	Schedule string `json:"schedule"` // "": fetched by hand or by a reader
	Timezone string `json:"timezone"`
	Quota    string `json:"quota"` // "": charged to none
	Cost     int64  `json:"cost"`  // units a request takes
	Pool     string `json:"pool"`
}

// Pause is who paused a schedule, and until when; null: until a resume.
type Pause struct {
	By    string     `json:"by"`
	Until *time.Time `json:"until"`
}

func (p Pause) words() string {
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Until != nil {
		return text + " until " + p.Until.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	return text + " until it is resumed"
}

// FeedViews gives every feed of the config, sorted by name. NextAt and Paused
// are for WithTicks to fill.
func FeedViews(ctx context.Context, c *jobs.Client, store *feed.Store) ([]FeedView, error) {
	feeds := c.Feeds()
	keys := make([]string, len(feeds))
	for i, f := range feeds {
		keys[i] = f.Name
	}
	out := make([]FeedView, len(feeds))
	if len(feeds) == 0 {
		return out, nil
	}
	heads, err := store.Heads(ctx, keys)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for i, f := range feeds {
		out[i] = feedView(f, heads[i], now)
	}
	withJobs(ctx, c, heads, out)
	return out, withSinks(ctx, c, out)
}

// WithTicks fills NextAt and Paused from the schedules that fetch these feeds:
// the nearest tick where a feed has several, and paused where all of them are.
func WithTicks(feeds []FeedView, schedules []ScheduleView) []FeedView {
	next, paused, ticks := map[string]*time.Time{}, map[string]*Pause{}, map[string]bool{}
	for _, s := range schedules {
		if s.State != "paused" {
			ticks[s.Feed] = true
		} else if paused[s.Feed] == nil {
			paused[s.Feed] = &Pause{By: s.PausedBy, Until: s.PausedUntil}
		}
		if s.NextAt != nil && (next[s.Feed] == nil || s.NextAt.Before(*next[s.Feed])) {
			next[s.Feed] = s.NextAt
		}
	}
	for i := range feeds {
		name := feeds[i].Name
		if feeds[i].NextAt = next[name]; !ticks[name] {
			feeds[i].Paused = paused[name]
		}
	}
	return feeds
}

func feedView(f jobs.Feed, h feed.Head, now time.Time) FeedView {
	v := FeedView{
		Name: f.Name, State: h.State(now, f.TTL), AgeMS: h.Age(now).Milliseconds(), TTLMS: f.TTL.Milliseconds(), Items: h.Items,
		FetchedAt: instant(h.FetchedAt), StoredAt: instant(h.StoredAt), LastError: h.LastError, LastErrorAt: instant(h.LastErrorAt),
		Source: f.Source.Kind, Schedule: f.Schedule, Timezone: f.Timezone, Quota: f.Quota, Pool: f.Pool,
	}
	if f.Quota != "" {
		v.Cost = f.Cost
	}
	if !h.Empty() {
		v.Version = &h.Version
	}
	return v
}

// instant is a time in UTC, or null for the zero time.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
