package roster

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed beat.lua
var beatLua string

var beatScript = redis.NewScript(beatLua)

const (
	liveKey  = "fw:{processes}:live"
	aboutKey = "fw:{processes}:about"

	beatEvery = 5 * time.Second
	goneAfter = 20 * time.Second
	most      = 1000
	schema    = 1
)

// Process is who a process is. It holds no secret.
type Process struct {
	Schema   int       `json:"v"`
	ID       string    `json:"id"`
	Roles    []string  `json:"roles"` // web, scheduler, worker
	Version  string    `json:"version"`
	Config   string    `json:"config"` // a digest of the config that holds in it
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Redis    string    `json:"redis"`             // run ID of the Redis it works with
	Refused  string    `json:"refused,omitempty"` // why it writes nothing; "" usually
	LastSeen time.Time `json:"-"`                 // by Redis's clock
}

// Beacon tells of one process while it runs.
type Beacon struct {
	rdb   redis.UniversalClient
	log   *slog.Logger
	redis func() (runID, refused string)

	mu   sync.Mutex
	self Process

	stop context.CancelFunc
	done chan struct{}
}

// New makes a beacon; it does no I/O. redis says which Redis the process works with.
func New(rdb redis.UniversalClient, roles []string, version, config string, redis func() (runID, refused string), log *slog.Logger) *Beacon {
	host, _ := os.Hostname()
	return &Beacon{rdb: rdb, log: log, redis: redis, self: Process{
		Schema: schema, ID: rand.Text()[:12], Roles: roles, Version: version, Config: config, Host: host, PID: os.Getpid(), Started: time.Now().UTC(),
	}}
}

// SetConfig says that another config holds from now on.
func (b *Beacon) SetConfig(digest string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.self.Config = digest
}

// Start tells at once and from then on; what fails is told again later.
func (b *Beacon) Start(ctx context.Context) error {
	b.beat(ctx)
	loop, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop, b.done = stop, make(chan struct{})
	go func() {
		defer close(b.done)
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-loop.Done():
				return
			case <-tick.C:
				b.beat(loop)
			}
		}
	}()
	return nil
}

// Stop tells no more, and takes this process out.
func (b *Beacon) Stop(ctx context.Context) error {
	if b.stop == nil {
		return nil
	}
	b.stop()
	<-b.done
	b.stop = nil
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = b.say(bounded, "") // one that could not say so is gone in twenty seconds
	return nil
}

func (b *Beacon) beat(ctx context.Context) {
	b.mu.Lock()
	self := b.self
	b.mu.Unlock()
	self.Redis, self.Refused = b.redis()
	text, err := json.Marshal(self)
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, beatEvery)
		defer cancel()
		err = b.say(bounded, string(text))
	}
	if err != nil && ctx.Err() == nil {
		b.log.Debug("could not tell that this process runs", "error", err)
	}
}

func (b *Beacon) say(ctx context.Context, about string) error {
	return beatScript.Run(ctx, b.rdb, []string{liveKey, aboutKey}, b.self.ID, about, goneAfter.Milliseconds(), most).Err()
}

// List gives the processes that run, sorted by host, start and ID.
func List(ctx context.Context, rdb redis.UniversalClient) ([]Process, error) {
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("roster: list: %w", err)
	}
	live, err := rdb.ZRangeWithScores(ctx, liveKey, 0, most).Result()
	if err != nil {
		return nil, fmt.Errorf("roster: list: %w", err)
	}
	about, err := rdb.HGetAll(ctx, aboutKey).Result()
	if err != nil {
		return nil, fmt.Errorf("roster: list: %w", err)
	}
	out := []Process{}
	for _, z := range live {
		id, _ := z.Member.(string)
		seen := time.UnixMilli(int64(z.Score))
		var p Process
		if now.Sub(seen) > goneAfter || json.Unmarshal([]byte(about[id]), &p) != nil {
			continue // gone, or of a version whose words are not known here
		}
		p.LastSeen = seen.UTC()
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Process) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}
