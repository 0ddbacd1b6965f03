package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"feedwarden/quota"
	"feedwarden/scheduler"
)

// Feed is one scheduled feed.
type Feed struct {
	Name  string
	Group string // feeds of one group are of one kind; "" is Name
	// Index of Of: its place in what lays its group out over Tick's spread. Of 0
	// or 1: it stands alone.
	Index, Of int
	Tick      scheduler.Entry

	Quota      string // "" is charged to none
	Cost       int64  // units of one request
	Pages      int    // requests of one job; 0, to the end, is one
	TTL        time.Duration
	TTLAssumed bool          // nobody asked for this TTL: what the schedule alone breaks of it is not held against the feed
	MaxSnooze  time.Duration // 0: no limit
	Expires    time.Duration // 0: never
}

// Config is what is simulated.
type Config struct {
	Quotas []quota.Config
	Feeds  []Feed
	Zone   *time.Location // of the hours of quotas without a calendar; nil is UTC
	// MostTicks bounds the work: a span with about more of them is cut short.
	// 0 is twenty million, beyond which Run refuses.
	MostTicks int

	// Past is what quotas granted before the span, by name, in order of time. A
	// quota without one is empty at the start.
	Past map[string][]Spent
	// Slot cuts the span for Outlook.Slots; 0 leaves them out.
	Slot time.Duration
	// NoFit leaves out the search for what would fit, which simulates many times.
	NoFit bool
}

const refuseTicks = 20_000_000

// TooManyTicksError says that a span holds more ticks than are simulated.
type TooManyTicksError struct{ Ticks, Most int }

func (e *TooManyTicksError) Error() string {
	return fmt.Sprintf("about %d ticks in this span; at most %d are simulated", e.Ticks, e.Most)
}

// Result is what was found.
type Result struct {
	From, To time.Time
	Cut      bool // To is earlier than asked for, by MostTicks
	Quotas   []Quota
	Feeds    []Outlook
}

// Kept says whether every feed keeps its ttl.
func (r *Result) Kept() bool {
	return !slices.ContainsFunc(r.Feeds, func(f Outlook) bool { return f.Verdict != Keeps })
}

// Run simulates from ≤ t < from+span. Its error joins all faults of the quotas
// and schedules; or it is a *TooManyTicksError.
func Run(ctx context.Context, c Config, from time.Time, span time.Duration) (*Result, error) {
	entries := make([]scheduler.Entry, len(c.Feeds))
	for i, f := range c.Feeds {
		entries[i] = f.Tick
	}
	tables, err := scheduler.Timetables(entries)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	known := map[string]quota.Config{}
	var faults []error
	for _, q := range c.Quotas {
		_, err := quota.NewLedger(q)
		faults = append(faults, err)
		known[q.Name] = q
	}
	for _, f := range c.Feeds {
		if _, ok := known[f.Quota]; f.Quota != "" && !ok {
			faults = append(faults, fmt.Errorf("feed %q: quota %q: %w", f.Name, f.Quota, quota.ErrUnknownQuota))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	r := &Result{From: from, To: from.Add(span)}
	most := cmp.Or(c.MostTicks, refuseTicks)
	if n := estimate(tables, from, r.To); n > most {
		if c.MostTicks == 0 {
			return nil, &TooManyTicksError{Ticks: n, Most: most}
		}
		r.Cut = true
		r.To = from.Add(time.Duration(float64(span) * float64(most) / float64(n)))
	}
	by := map[string][]*course{}
	for i, f := range c.Feeds {
		k := newCourse(f, tables[i], r.From, r.To)
		by[f.Quota] = append(by[f.Quota], k)
	}
	if err := r.free(ctx, by[""], c); err != nil {
		return nil, err
	}
	for _, q := range c.Quotas {
		if err := r.quota(ctx, q, by[q.Name], c); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(r.Feeds, func(a, b Outlook) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}

// free are the feeds that are charged to no quota.
func (r *Result) free(ctx context.Context, courses []*course, c Config) error {
	s := newSimulation(nil, courses, r.From, r.To)
	s.slot = c.Slot.Microseconds()
	if err := s.run(ctx); err != nil {
		return err
	}
	for i, k := range courses {
		r.Feeds = append(r.Feeds, k.outlook(&s.tracks[i]))
	}
	return nil
}

func (r *Result) quota(ctx context.Context, q quota.Config, courses []*course, c Config) error {
	ledger, err := seeded(q, c.Past[q.Name])
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	s := newSimulation(ledger, courses, r.From, r.To)
	s.slot = c.Slot.Microseconds()
	if err := s.run(ctx); err != nil {
		return err
	}
	out := summarize(q, s, c.Zone)
	for i, k := range courses {
		o := k.outlook(&s.tracks[i])
		out.Ticks += o.Ticks
		out.Refused += len(o.Refused)
		out.Skipped += o.Skipped
		r.Feeds = append(r.Feeds, o)
	}
	if out.Refused+out.Skipped > 0 && !c.NoFit {
		if out.Fit, err = fit(ctx, q, courses, r.From, r.To); err != nil {
			return err
		}
	}
	r.Quotas = append(r.Quotas, out)
	return nil
}

// estimate is about how many ticks a span holds.
func estimate(tables []scheduler.Timetable, from, to time.Time) int {
	const sample = 50
	total := 0.0
	for _, t := range tables {
		n, last := 0, from
		for tick := range t.Between(from, to) {
			if n, last = n+1, tick.FireAt; n == sample {
				break
			}
		}
		if n == sample && last.After(from) {
			total += sample * float64(to.Sub(from)) / float64(last.Sub(from))
		} else {
			total += float64(n)
		}
	}
	return int(min(total, 1e15))
}
