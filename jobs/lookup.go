package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// ErrNoJob is the answer for an ID that no job has, or that ended too long ago.
var ErrNoJob = errors.New("no such job (ended jobs are kept for two hours)")

// Get finds one job, and follows it to the copy that goes on in its place.
func (c *Client) Get(ctx context.Context, id string) (Job, error) {
	asked := id
	for range 10 {
		rec, err := c.rdb.HGetAll(ctx, recordKey(id)).Result()
		if err != nil {
			return Job{}, fmt.Errorf("jobs: read %q: %w", id, err)
		}
		if rec["forward"] != "" {
			id = rec["forward"]
			continue
		}
		j, err := c.assemble(ctx, id, rec, nil)
		if err == nil && asked != id {
			j.Asked = asked
		}
		return j, err
	}
	return Job{}, fmt.Errorf("jobs: %q was handed on too often", asked)
}

// assemble joins what the record and asynq know. An ended record is the whole
// truth; else asynq knows where the task is.
func (c *Client) assemble(ctx context.Context, id string, rec map[string]string, info *asynq.TaskInfo) (Job, error) {
	j := fromRecord(id, rec)
	if j.State.Ended() {
		return j, nil
	}
	if info == nil {
		var err error
		if info, err = c.find(ctx, id, j.Queue); err != nil {
			return Job{}, err
		}
	}
	if info == nil || info.State == asynq.TaskStateCompleted || info.State == asynq.TaskStateArchived {
		// It may have ended between the two looks: its record says with what.
		again, err := c.rdb.HGetAll(ctx, recordKey(id)).Result()
		if err != nil {
			return Job{}, fmt.Errorf("jobs: read %q: %w", id, err)
		}
		if j := fromRecord(id, again); j.State.Ended() {
			return j, nil
		}
	}
	if info == nil {
		if len(rec) == 0 {
			return Job{}, fmt.Errorf("%w: %q", ErrNoJob, id)
		}
		// Its record says that it lives, and its queue has lost it.
		j.State, j.NextAt, j.loose = Failed, nil, true
		j.LastError = "its task was deleted from the queue"
		return j, nil
	}
	j.Queue = info.Queue
	p, err := decodePayload(info.Payload)
	if j.Feed == "" {
		j.Feed = p.Feed // of a payload that is too new as well
	}
	if err == nil {
		j.Feed, j.Params = p.Feed, p.Params
		if p.Tick != nil {
			text := p.Tick.UTC().Format(time.RFC3339)
			j.Tick = &text
		}
	}
	known := j.State
	switch info.State {
	case asynq.TaskStatePending, asynq.TaskStateAggregating:
		j.State, j.NextAt = Pending, nil
	case asynq.TaskStateScheduled:
		if known != Snoozed { // a copy waits in the scheduled set
			j.State = Scheduled
		}
		if j.NextAt == nil {
			j.NextAt = writable(info.NextProcessAt.Add(-fallback))
		}
	case asynq.TaskStateRetry:
		if known != Snoozed && known != Retrying {
			j.State = Retrying
			if j.NextAt == nil {
				j.NextAt = writable(info.NextProcessAt)
			}
		}
	case asynq.TaskStateActive:
		if known == "" {
			j.State = Running
		}
	case asynq.TaskStateCompleted:
		j.State = Done
		at := info.CompletedAt.UTC()
		j.EndedAt = &at
	case asynq.TaskStateArchived:
		j.State, j.NextAt, j.EndedAt = Failed, nil, writable(info.LastFailedAt)
		if known != "" || info.LastErr == "" {
			j.loose = known != ""
			j.LastError = "its task was archived in the queue before the job had ended; it can be run from there"
		}
	}
	if j.LastError == "" {
		j.LastError = info.LastErr
	}
	if at := expiry(p, j.Sent); err == nil && j.State != Running && !j.State.Ended() && overdue(at, time.Now()) {
		// Its worker will end it so, when there is one.
		j.State, j.NextAt, j.EndedAt, j.LastError = Expired, nil, &at, notStarted(at).Error()
	}
	return j, nil
}

// writable is an instant as JSON can write it, whatever another client of asynq
// has chosen: RFC 3339 has no year after 9999. Nil for none.
func writable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	if t = t.UTC(); t.Year() > latestYear {
		t = time.Date(latestYear, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return &t
}

func fromRecord(id string, m map[string]string) Job {
	num := func(f string) int { n, _ := strconv.Atoi(m[f]); return n }
	at := func(f string) *time.Time {
		n, _ := strconv.ParseInt(m[f], 10, 64)
		if n == 0 {
			return nil
		}
		t := time.UnixMilli(n).UTC()
		return &t
	}
	j := Job{
		ID: id, Feed: m["feed"], Queue: m["queue"], State: State(m["state"]),
		Attempts: num("attempts"), Snoozes: num("snoozes"), Sent: num("sent"), Crashes: num("crashes"),
		NextAt: at("next_ms"), LastError: m["last_error"], EndedAt: at("ended_ms"),
	}
	if t := m["tick"]; t != "" {
		j.Tick = &t
	}
	if r := m["result"]; r != "" && json.Valid([]byte(r)) {
		j.Result = json.RawMessage(r)
	}
	return j
}

// find asks asynq for a task; nil where no queue has it.
func (c *Client) find(ctx context.Context, id, queue string) (*asynq.TaskInfo, error) {
	for _, q := range allQueues {
		if queue != "" && q != queue {
			continue
		}
		info, err := inspect(ctx, func() (*asynq.TaskInfo, error) { return c.inspector.GetTaskInfo(q, id) })
		switch {
		case err == nil:
			return info, nil
		case errors.Is(err, asynq.ErrQueueNotFound), errors.Is(err, asynq.ErrTaskNotFound):
		default:
			// asynq cannot read it: the reconciler has set it aside, or will.
			if n, rerr := c.rdb.Exists(ctx, asynqTaskPrefix(q)+id).Result(); rerr != nil || n == 0 {
				return nil, fmt.Errorf("jobs: ask asynq for %q: %w", id, err)
			}
			return &asynq.TaskInfo{ID: id, Queue: q, State: asynq.TaskStateArchived, LastErr: "asynq cannot read its task; it was set aside"}, nil
		}
	}
	return nil, nil
}

// Filter chooses jobs to list.
type Filter struct {
	Feed  string // "" any
	State State  // "" any
	Limit int    // 0: 100; 1000 at most
	Page  int    // 1 is the first
}

// List answers a page of jobs: the living, those due first, then the ended,
// newest first.
func (c *Client) List(ctx context.Context, f Filter) ([]Job, error) {
	f.Limit = min(max(f.Limit, 0), 1000)
	if f.Limit == 0 {
		f.Limit = 100
	}
	l := &listing{c: c, f: f, skip: (max(f.Page, 1) - 1) * f.Limit, seen: map[string]bool{}}
	if f.State == "" || !f.State.Ended() {
		if err := l.living(ctx); err != nil {
			return nil, err
		}
	}
	if !l.full() && (f.State == "" || f.State.Ended()) {
		if err := l.ended(ctx); err != nil {
			return nil, err
		}
	}
	return l.out, nil
}

type listing struct {
	c    *Client
	f    Filter
	skip int
	out  []Job
	seen map[string]bool // IDs: a job that moves while its lists are read stands in two of them
}

func (l *listing) full() bool { return len(l.out) >= l.f.Limit }

func (l *listing) add(j Job) {
	if (l.f.Feed != "" && j.Feed != l.f.Feed) || (l.f.State != "" && j.State != l.f.State) {
		return
	}
	if l.seen[j.ID] {
		return
	}
	l.seen[j.ID] = true
	if l.skip > 0 {
		l.skip--
		return
	}
	if !l.full() {
		l.out = append(l.out, j)
	}
}

const scanPage = 200

// living walks asynq's lists. Only those that can hold the wanted state are read.
func (l *listing) living(ctx context.Context) error {
	lists := []struct {
		read   func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error)
		states []State
	}{
		{l.c.inspector.ListActiveTasks, []State{Running}},
		{l.c.inspector.ListPendingTasks, []State{Pending}},
		{l.c.inspector.ListRetryTasks, []State{Snoozed, Retrying}},
		{l.c.inspector.ListScheduledTasks, []State{Scheduled, Snoozed}},
	}
	for _, list := range lists {
		if l.f.State != "" && list.states[0] != l.f.State && list.states[len(list.states)-1] != l.f.State {
			continue
		}
		for _, q := range allQueues {
			for page := 1; !l.full(); page++ {
				infos, err := inspect(ctx, func() ([]*asynq.TaskInfo, error) { return list.read(q, asynq.PageSize(scanPage), asynq.Page(page)) })
				if errors.Is(err, asynq.ErrQueueNotFound) {
					break
				}
				if err != nil {
					return fmt.Errorf("jobs: list queue %q: %w", q, err)
				}
				if err := l.merge(ctx, infos); err != nil {
					return err
				}
				if len(infos) < scanPage {
					break
				}
			}
		}
	}
	return nil
}

// merge joins a page of asynq's tasks with their records in one round trip.
func (l *listing) merge(ctx context.Context, infos []*asynq.TaskInfo) error {
	if len(infos) == 0 {
		return nil
	}
	pipe := l.c.rdb.Pipeline()
	recs := make([]*redis.MapStringStringCmd, len(infos))
	for i, info := range infos {
		recs[i] = pipe.HGetAll(ctx, recordKey(info.ID))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("jobs: read records: %w", err)
	}
	for i, info := range infos {
		j, err := l.c.assemble(ctx, info.ID, recs[i].Val(), info)
		if err != nil {
			return err
		}
		if !State(recs[i].Val()["state"]).Ended() {
			l.add(j)
		}
	}
	return nil
}

// ended walks the index of ended jobs, newest first.
func (l *listing) ended(ctx context.Context) error {
	for from := int64(0); !l.full(); from += scanPage {
		members, err := l.c.rdb.ZRevRange(ctx, endedKey, from, from+scanPage-1).Result()
		if err != nil {
			return fmt.Errorf("jobs: list ended jobs: %w", err)
		}
		var ids []string
		for _, m := range members {
			name, id, ok := strings.Cut(m, "\x00")
			if ok && (l.f.Feed == "" || l.f.Feed == name) {
				ids = append(ids, id)
			}
		}
		pipe := l.c.rdb.Pipeline()
		recs := make([]*redis.MapStringStringCmd, len(ids))
		for i, id := range ids {
			recs[i] = pipe.HGetAll(ctx, recordKey(id))
		}
		if len(ids) > 0 {
			if _, err := pipe.Exec(ctx); err != nil {
				return fmt.Errorf("jobs: read records: %w", err)
			}
		}
		for i, id := range ids {
			if j := fromRecord(id, recs[i].Val()); j.State.Ended() {
				l.add(j)
			}
		}
		if len(members) < scanPage {
			break
		}
	}
	return nil
}

// Counters are the totals since ever: ended jobs by state, snoozes, retries,
// what the reconciler recovered and set aside.
func (c *Client) Counters(ctx context.Context) (map[string]int64, error) {
	m, err := c.rdb.HGetAll(ctx, countersKey).Result()
	if err != nil {
		return nil, fmt.Errorf("jobs: counters: %w", err)
	}
	out := make(map[string]int64, len(m))
	for k, v := range m {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			out[k] = n
		}
	}
	return out, nil
}
