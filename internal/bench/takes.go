package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"feedwarden/allocation"
)

// takeRow is one policy at one size, measured by a crowd and by a caller alone.
type takeRow struct {
	policy string
	size   int
	aim    float64
	takes  func(ctx context.Context, n int64) error

	speed, ratio []float64 // of the crowd, a round each; ratio: to the empty calls just before and after
	alone        []float64 // ratio of one caller by himself
	redis        []float64 // microseconds of Redis's CPU time a take
	cpu          []float64 // CPU time of an empty call, caller's and Redis's, by that of a take
}

// takeReport is a table: each policy at each size beside an empty script.
type takeReport struct {
	rows            []*takeRow
	empty, emptyCPU []float64
	alone           []float64
}

// takeAims are the shares of an empty script's speed that a policy should reach at any size.
var takeAims = []struct {
	policy string
	aim    float64
}{
	{allocation.LeastUsed, 0.8}, {allocation.Random, 0.8}, {allocation.NoRepeat, 0.8},
	{allocation.Shuffled, 0.6}, {allocation.LeastBusy, 0.6}, {allocation.Sticky, 0.6},
}

// benchTakes measures picks of every policy from pools of three sizes. Before
// and after each measurement the empty script has its turn: what the machine
// does to the one it does to the other.
func benchTakes(ctx context.Context, srv *server, rounds int, span time.Duration) (takeReport, error) {
	rdb := srv.client()
	defer rdb.Close()
	r := takeReport{}
	for _, size := range []int{10, 1_000, 100_000} {
		for _, a := range takeAims {
			row, err := newTakeRow(ctx, rdb, a.policy, size)
			if err != nil {
				return r, fmt.Errorf("%s of %d: %w", a.policy, size, err)
			}
			row.aim = a.aim
			r.rows = append(r.rows, row)
		}
	}
	span /= 4 // there are many rows
	for round := range rounds + 1 {
		if err := r.round(ctx, rdb, span, round > 0); err != nil {
			return r, err
		}
	}
	return r, nil
}

func newTakeRow(ctx context.Context, rdb *redis.Client, policy string, size int) (*takeRow, error) {
	// The bench never reports, so leases end by themselves: what that costs is in the figure.
	c := allocation.Config{Name: fmt.Sprintf("%s-%d", policy, size), Policy: policy, AllowPrivate: true, Cap: 1 << 30, Lease: time.Second}
	p, err := allocation.New(rdb, []allocation.Config{c})
	if err != nil {
		return nil, err
	}
	var list strings.Builder
	for e := range size {
		fmt.Fprintf(&list, "http://10.%d.%d.%d:8080\n", e/62500, e/250%250, e%250+1)
	}
	if _, err := p.Import(ctx, c.Name, strings.NewReader(list.String()), nil); err != nil {
		return nil, err
	}
	return &takeRow{policy: policy, size: size, takes: func(ctx context.Context, n int64) error {
		o := allocation.TakeOptions{}
		if policy == allocation.Sticky {
			o.Key = strconv.FormatInt(n%1000, 10)
		}
		_, err := p.Take(ctx, c.Name, o)
		return err
	}}, nil
}

// crowded is what a crowd's calls came to.
type crowded struct {
	speed      float64 // calls a second
	redis, all float64 // microseconds of CPU time a call: Redis's, and Redis's and the callers'
}

func crowd(ctx context.Context, rdb *redis.Client, span time.Duration, f func(context.Context, int64) error) (crowded, error) {
	redisBefore, err := redisCPU(ctx, rdb)
	if err != nil {
		return crowded{}, err
	}
	ownBefore, begun := ownCPU(), time.Now()
	speed, err := loop(ctx, span, callers, f)
	if err != nil {
		return crowded{}, err
	}
	calls := speed * time.Since(begun).Seconds()
	own := ownCPU() - ownBefore
	redisAfter, err := redisCPU(ctx, rdb)
	if err != nil {
		return crowded{}, err
	}
	used := redisAfter - redisBefore
	return crowded{speed, used / calls, (used + own) / calls}, nil
}

// round measures every row once.
func (r *takeReport) round(ctx context.Context, rdb *redis.Client, span time.Duration, counts bool) error {
	empty := func(ctx context.Context, _ int64) error { return emptyScript.Run(ctx, rdb, []string{"k"}).Err() }
	before, err := crowd(ctx, rdb, span, empty)
	if err != nil {
		return err
	}
	for _, row := range r.rows {
		takes, err := crowd(ctx, rdb, span, row.takes)
		if err != nil {
			return err
		}
		after, err := crowd(ctx, rdb, span, empty)
		if err != nil {
			return err
		}
		alone, err := loop(ctx, span/2, 1, row.takes)
		if err != nil {
			return err
		}
		emptyAlone, err := loop(ctx, span/2, 1, empty)
		if err != nil {
			return err
		}
		if counts {
			row.speed = append(row.speed, takes.speed)
			row.ratio = append(row.ratio, 2*takes.speed/(before.speed+after.speed))
			row.alone = append(row.alone, alone/emptyAlone)
			row.redis = append(row.redis, takes.redis)
			row.cpu = append(row.cpu, (before.all+after.all)/2/takes.all)
			r.empty = append(r.empty, after.speed)
			r.emptyCPU = append(r.emptyCPU, after.redis)
			r.alone = append(r.alone, emptyAlone)
		}
		before = after
	}
	return nil
}

// ownCPU is the CPU time of this process so far, in microseconds.
func ownCPU() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails for a wrong argument only
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

// redisCPU is Redis's, in microseconds.
func redisCPU(ctx context.Context, rdb *redis.Client) (float64, error) {
	info, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(info) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			sum += seconds * 1e6
		}
	}
	return sum, nil
}

func (r takeReport) print() {
	fmt.Printf("\nTakes: one pool, %d callers beside an empty EVALSHA of as many (%.0f/s, %.1f µs of Redis's CPU); alone: one caller beside one (%.0f/s)\n",
		callers, median(r.empty), median(r.emptyCPU), median(r.alone))
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tendpoints\ttakes/s\t× empty\taim\t\t× empty by CPU time\tRedis's CPU, µs\talone, × empty\t")
	for _, row := range r.rows {
		verdict := "met"
		if median(row.ratio) < row.aim {
			verdict = "MISS"
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.2f\t%.1f\t%s\t%.2f\t%.1f\t%.2f\t\n", row.policy, row.size, median(row.speed), median(row.ratio),
			row.aim, verdict, median(row.cpu), median(row.redis), median(row.alone))
	}
	_ = w.Flush()
}
