package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// What a State's State can be.
const (
	StateActive = "active"
	StatePaused = "paused"
	StateDue    = "due" // a tick is due and has not become a job yet; Hold may say why
)

// State is one schedule as it stands. Times are UTC.
type State struct {
	Name       string     `json:"name"`
	Feed       string     `json:"feed"`
	Expression string     `json:"expression"`
	Timezone   string     `json:"timezone"` // of the expression, its own prefix included
	State      string     `json:"state"`
	Last       *time.Time `json:"last"`        // nominal instant of the last tick that became a job
	LastAt     *time.Time `json:"last_at"`     // when it did
	LatenessMS int64      `json:"lateness_ms"` // of that tick, from when it was due
	Due        *time.Time `json:"due"`         // nominal instant of the oldest tick that waits
	Hold       string     `json:"hold"`        // why it does: overlap, full, error, or "" for not known
	Next       *time.Time `json:"next"`        // the next nominal instant to come; null in a pause without end
	NextFire   *time.Time `json:"next_fire"`   // the same with phase and jitter

	Dispatched int64 `json:"dispatched"`
	Skipped    int64 `json:"skipped"`
	Missed     int64 `json:"missed"`
	Late       int64 `json:"late"`
	ByHand     int64 `json:"by_hand"`

	Pause  *PauseState  `json:"pause"`  // the last one, over or not
	Manual *ManualState `json:"manual"` // the last trigger or backfill
}

// PauseState says who paused a schedule and when, and who ended it.
type PauseState struct {
	By        string     `json:"by"`
	At        time.Time  `json:"at"`
	Until     *time.Time `json:"until"` // null: no end
	ResumedBy string     `json:"resumed_by"`
}

// ManualState says who asked for ticks by hand, and when.
type ManualState struct {
	Kind string    `json:"kind"` // trigger or backfill
	ID   string    `json:"id"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
}

// readBatch is how many states one round trip reads.
const readBatch = 256

// List gives every configured schedule, sorted by name.
func (d *Dispatcher) List(ctx context.Context) ([]State, error) {
	plans, _ := d.snapshot()
	sorted := make([]*planned, 0, len(plans))
	for _, p := range plans {
		sorted = append(sorted, p)
	}
	slices.SortFunc(sorted, func(a, b *planned) int { return cmp.Compare(a.Name, b.Name) })
	states := make([]State, 0, len(sorted))
	for batch := range slices.Chunk(sorted, readBatch) {
		reads := make([]*redis.MapStringStringCmd, len(batch))
		_, err := d.store.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, p := range batch {
				reads[i] = pipe.HGetAll(ctx, stateKey(p.Name))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("scheduler: list schedules: %w", err)
		}
		now := d.clock.Now().UnixMilli()
		for i, p := range batch {
			states = append(states, p.state(reads[i].Val(), now))
		}
	}
	return states, nil
}

// state reads the fields of a schedule's hash.
func (p *planned) state(h map[string]string, now int64) State {
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(h[field], 10, 64)
		return n
	}
	moment := func(ms int64) *time.Time {
		if ms == 0 || ms >= never {
			return nil
		}
		t := time.UnixMilli(ms).UTC()
		return &t
	}
	s := State{
		Name: p.Name, Feed: p.Feed, Expression: p.schedule.String(), Timezone: p.schedule.loc.String(), State: StateActive,
		Last: moment(number("ticked")), LastAt: moment(number("ticked_at")), LatenessMS: number("lateness"),
		Dispatched: number("dispatched"), Skipped: number("skipped"), Missed: number("missed"), Late: number("late"), ByHand: number("by_hand"),
	}
	if last := number("last:" + revisionText(p.revision)); last > 0 {
		if due, ok := p.after(last); ok && p.fireAt(due) <= now {
			s.State, s.Due, s.Hold = StateDue, moment(due), h["hold"]
		}
	}
	from := now
	if h["pause_from"] != "" {
		until := number("pause_to")
		s.Pause = &PauseState{By: h["pause_by"], At: time.UnixMilli(number("pause_at")).UTC(), Until: moment(until)}
		if number("resume_at") >= number("pause_at") {
			s.Pause.ResumedBy = h["resume_by"]
		}
		if until == 0 {
			until = never
		}
		if until > now {
			s.State, s.Due, s.Hold = StatePaused, nil, ""
			from = until - 1
		}
	}
	if from < never-1 {
		if next, ok := p.after(from); ok {
			s.Next, s.NextFire = moment(next), moment(p.fireAt(next))
		}
	}
	if h["manual_id"] != "" {
		s.Manual = &ManualState{Kind: h["manual"], ID: h["manual_id"], By: h["manual_by"], At: time.UnixMilli(number("manual_at")).UTC()}
	}
	return s
}
