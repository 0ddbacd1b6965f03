package allocation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The states of an endpoint; doc.go draws them.
const (
	Candidate   = "candidate" // waits for a check, see Config.Require
	Active      = "active"
	Probation   = "probation"
	Quarantined = "quarantined"
	AuthFailed  = "auth_failed"
	Disabled    = "disabled"
)

// States are all of them, in the order of the constants.
var States = []string{Candidate, Active, Probation, Quarantined, AuthFailed, Disabled}

// An Endpoint is one proxy of a pool as a person may see it: it has no password.
type Endpoint struct {
	ID     string
	Scheme string
	Host   string // host:port
	User   string // as in the ID: a user without a password is shown as a digest

	State   string
	Until   time.Time   // quarantined: when it ends
	Since   time.Time   // when Why was reported; zero when nothing is held against it
	Why     string      // the outcome that led here, or "by hand"
	Target  string      // not "": it failed on this target
	Strikes int         // quarantines that no success has made up for
	Bans    []TargetBan // targets that refuse it; for others it serves

	Count    int64 // recorded allocations, over removal and return
	Handicap int64 // what makes it level with the others: Count + Handicap is its score
	InFlight int64 // least-busy: leases

	Checked time.Time // of Verdict; zero: never
	Verdict *Verdict  // of the last check; nil: there was none
	Exits   []Exit    // addresses that the judge saw, the latest first; 16 at most
}

// health is the JSON of field s:ID, version 1.
type health struct {
	V       int    `json:"v"`
	State   string `json:"state"`
	Ends    string `json:"ends"`
	Since   string `json:"since"`
	Why     string `json:"why"`
	Target  string `json:"target"`
	Strikes int    `json:"strikes"`
}

// scanPage is about how many fields one HSCAN reads, so that a big pool does not hold Redis.
const scanPage = 2000

// List gives every endpoint, sorted by ID. It reads in pages: endpoints that
// change meanwhile are seen before or after, not both.
func (p *Pools) List(ctx context.Context, pool string) ([]Endpoint, error) {
	if _, err := p.pool(pool); err != nil {
		return nil, failed("list", pool, err)
	}
	now, err := p.now(ctx)
	if err != nil {
		return nil, failed("list", pool, err)
	}
	bans, err := p.bans(ctx, pool, now)
	if err != nil {
		return nil, failed("list", pool, err)
	}
	all, err := p.scan(ctx, pool)
	if err != nil {
		return nil, failed("list", pool, err)
	}
	leases, err := p.leases(ctx, pool, slices.Collect(maps.Keys(all)))
	if err != nil {
		return nil, failed("list", pool, err)
	}
	out := make([]Endpoint, 0, len(all))
	for id, f := range all {
		if f.url == "" {
			continue // removed: only its count is left
		}
		f.leases = leases[id]
		e, err := f.endpoint(id, now)
		if err != nil {
			return nil, failed("list", pool, err)
		}
		e.Bans = bans[id]
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Endpoint) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// scan reads all of a pool's endpoints, and what is left of removed ones.
func (p *Pools) scan(ctx context.Context, pool string) (map[string]*stored, error) {
	all := map[string]*stored{}
	var cursor uint64
	for {
		page, next, err := p.rdb.HScan(ctx, keysOf(pool).prefix+"endpoints", cursor, "", scanPage).Result()
		if err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(page); i += 2 {
			if kind, id, ok := strings.Cut(page[i], ":"); ok {
				if all[id] == nil {
					all[id] = &stored{}
				}
				all[id].set(kind, page[i+1])
			}
		}
		if cursor = next; cursor == 0 {
			return all, nil
		}
	}
}

// leases gives how many leases the eligible among ids have; who has none is left out.
func (p *Pools) leases(ctx context.Context, pool string, ids []string) (map[string]int64, error) {
	out := map[string]int64{}
	busy := keysOf(pool).prefix + "busy"
	if n, err := p.rdb.ZCount(ctx, busy, "1", "+inf").Result(); err != nil || n == 0 {
		return out, err // the most usual: only least-busy gives leases
	}
	for chunk := range slices.Chunk(ids, scanPage) {
		scores, err := p.rdb.ZMScore(ctx, busy, chunk...).Result()
		if err != nil {
			return nil, err
		}
		for i, score := range scores {
			if score >= 1 {
				out[chunk[i]] = int64(score)
			}
		}
	}
	return out, nil
}

// stored are an endpoint's fields as they stand in Redis, and its leases if it is eligible; kept are
// those it had when it left.
type stored struct {
	url, count, handicap, health, kept, verdict, exits string
	leases                                             int64
}

// storedKinds are the fields of one endpoint that stored holds.
var storedKinds = []string{"u", "c", "h", "s", "f", "v", "x"}

func (s *stored) set(kind, value string) {
	switch kind {
	case "u":
		s.url = value
	case "c":
		s.count = value
	case "h":
		s.handicap = value
	case "s":
		s.health = value
	case "f":
		s.kept = value
	case "v":
		s.verdict = value
	case "x":
		s.exits = value
	}
}

// endpoint reads the fields as they are at now.
func (s *stored) endpoint(id string, now time.Time) (Endpoint, error) {
	u, err := url.Parse(s.url)
	if err != nil { // the cause would quote the URL
		return Endpoint{}, fmt.Errorf("the stored URL of %s is broken: import it again", id)
	}
	e := Endpoint{ID: id, Scheme: u.Scheme, Host: u.Host, User: strings.TrimSuffix(shownUser(u.User), "@"), State: Active, InFlight: s.leases}
	var kept int64
	for _, n := range []struct {
		text string
		into *int64
	}{{s.count, &e.Count}, {s.handicap, &e.Handicap}, {s.kept, &kept}} {
		if n.text == "" {
			continue
		}
		if *n.into, err = strconv.ParseInt(n.text, 10, 64); err != nil {
			return Endpoint{}, fmt.Errorf("the stored numbers of %s are broken: %w", id, err)
		}
	}
	if e.Verdict, err = readVerdict(s.verdict); err != nil {
		return Endpoint{}, fmt.Errorf("the stored verdict of %s is broken: %w", id, err)
	}
	if e.Verdict != nil {
		e.Checked = e.Verdict.At
	}
	if e.Exits, err = readExits(s.exits); err != nil {
		return Endpoint{}, fmt.Errorf("the stored exits of %s are broken: %w", id, err)
	}
	if s.health == "" {
		return e, nil
	}
	var h health
	if err := json.Unmarshal([]byte(s.health), &h); err != nil {
		return Endpoint{}, fmt.Errorf("the stored health of %s is broken: %w", id, err)
	}
	e.State, e.Why, e.Target, e.Strikes = h.State, h.Why, h.Target, h.Strikes
	if h.State != Active && h.State != Probation {
		e.InFlight = kept
	}
	if e.Until, err = instant(h.Ends); err == nil {
		e.Since, err = instant(h.Since)
	}
	if err != nil {
		return Endpoint{}, fmt.Errorf("the stored health of %s is broken: %w", id, err)
	}
	// The next take will find it free: that is what it is.
	if e.State == Quarantined && !e.Until.After(now) {
		e.State, e.Until = Probation, time.Time{}
	}
	return e, nil
}
