package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
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
	redis        []float64 // microseconds of Redis's time a take
}

// takeReport is a table: each policy at each size beside an empty script.
type takeReport struct {
	rows  []*takeRow
	empty []float64
	alone []float64
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

// round measures every row once.
func (r *takeReport) round(ctx context.Context, rdb *redis.Client, span time.Duration, counts bool) error {
	empty := func(ctx context.Context, _ int64) error { return emptyScript.Run(ctx, rdb, []string{"k"}).Err() }
	emptyBefore, err := loop(ctx, span, callers, empty)
	if err != nil {
		return err
	}
	for _, row := range r.rows {
		if err := rdb.ConfigResetStat(ctx).Err(); err != nil {
			return err
		}
		speed, err := loop(ctx, span, callers, row.takes)
		if err != nil {
			return err
		}
		used, err := scriptTime(ctx, rdb)
		if err != nil {
			return err
		}
		emptyAfter, err := loop(ctx, span, callers, empty)
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
			row.speed = append(row.speed, speed)
			row.ratio = append(row.ratio, 2*speed/(emptyBefore+emptyAfter))
			row.alone = append(row.alone, alone/emptyAlone)
			row.redis = append(row.redis, used/(speed*span.Seconds()))
			r.empty = append(r.empty, emptyAfter)
			r.alone = append(r.alone, emptyAlone)
		}
		emptyBefore = emptyAfter
	}
	return nil
}

// scriptTime is how many microseconds Redis has spent in scripts since its statistics were reset.
func scriptTime(ctx context.Context, rdb *redis.Client) (float64, error) {
	info, err := rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec=")
	us, _, _ := strings.Cut(rest, ",")
	return strconv.ParseFloat(us, 64)
}

func (r takeReport) print() {
	fmt.Printf("\nTakes: one pool, %d callers beside an empty EVALSHA of as many (%.0f/s); and one caller alone (%.0f/s)\n",
		callers, median(r.empty), median(r.alone))
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "policy\tendpoints\ttakes/s\t× empty\taim\t\talone, × empty\tµs in Redis\t")
	for _, row := range r.rows {
		verdict := "met"
		if median(row.ratio) < row.aim {
			verdict = "MISS"
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.2f\t%.1f\t%s\t%.2f\t%.1f\t\n", row.policy, row.size,
			median(row.speed), median(row.ratio), row.aim, verdict, median(row.alone), median(row.redis))
	}
	_ = w.Flush()
}
