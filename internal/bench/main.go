// Command bench measures Feedwarden's parts on this machine and prints each
// speed as a ratio to a baseline of the same run.
//
// Baseline and subject run in turn, in several rounds, against one
// redis-server without persistence; the figure is the median of the rounds'
// ratios, so a machine whose speed drifts does not decide.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	rounds := flag.Int("rounds", 5, "rounds; each runs every subject once")
	span := flag.Duration("span", time.Second, "how long a subject runs in a round")
	jobsN := flag.Int("jobs", 6000, "whole jobs in a round")
	schedulesN := flag.Int("schedules", 100_000, "schedules")
	only := flag.String("only", "", "charges, takes, jobs, reads, slow or schedules; all by default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *span, *jobsN, *schedulesN, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, span time.Duration, jobsN, schedulesN int, only string) error {
	srv, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer srv.stop()
	parts := []struct {
		name string
		f    func() (interface{ print() }, error)
	}{
		{"charges", func() (interface{ print() }, error) { return benchQuota(ctx, srv, 6*rounds, span/12) }},
		{"takes", func() (interface{ print() }, error) { return benchTakes(ctx, srv, rounds, span) }},
		{"jobs", func() (interface{ print() }, error) { return benchJobs(ctx, srv, rounds, jobsN) }},
		{"reads", func() (interface{ print() }, error) { return benchReading(ctx, srv, rounds, span) }},
		{"slow", func() (interface{ print() }, error) { return benchSlow(ctx, srv) }},
		{"schedules", func() (interface{ print() }, error) { return benchSchedules(ctx, srv, schedulesN) }},
	}
	for _, p := range parts {
		if only != "" && only != p.name {
			continue
		}
		r, err := p.f()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.print()
	}
	return nil
}

// server is a redis-server of the benchmark's own.
type server struct {
	cmd  *exec.Cmd
	dir  string
	sock string
}

func startRedis(ctx context.Context) (*server, error) {
	dir, err := os.MkdirTemp("", "fwbench")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, sock: filepath.Join(dir, "redis.sock")}
	s.cmd = exec.CommandContext(ctx, "redis-server", "--port", "0", "--unixsocket", s.sock, "--dir", dir, "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("redis-server is needed: %w", err)
	}
	rdb := s.client()
	defer rdb.Close()
	for range 500 {
		if err = rdb.Ping(ctx).Err(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("redis-server does not answer: %w", err)
}

func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: s.sock, PoolSize: 80})
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// subject is one thing that is measured: it runs for a round and answers
// operations a second.
type subject struct {
	name string
	aim  string // of the ratio to the baseline, "" for none
	run  func(round int) (float64, error)
}

// report holds the speeds of all rounds.
type report struct {
	title    string
	unit     string
	subjects []subject
	speeds   map[string][]float64
	base     []string // names of baselines
}

// measure runs all subjects in turn, round by round; the first round warms up
// and is not counted.
func measure(title, unit string, rounds int, base []string, subjects ...subject) (report, error) {
	r := report{title: title, unit: unit, subjects: subjects, speeds: map[string][]float64{}, base: base}
	for round := range rounds + 1 {
		for _, s := range subjects {
			v, err := s.run(round)
			if err != nil {
				return r, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				r.speeds[s.name] = append(r.speeds[s.name], v)
			}
		}
	}
	return r, nil
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}

// ratio is the median over the rounds of a's speed to b's.
func (r report) ratio(a, b string) float64 {
	var out []float64
	for i := range r.speeds[a] {
		out = append(out, r.speeds[a][i]/r.speeds[b][i])
	}
	return median(out)
}

func (r report) print() {
	fmt.Printf("\n%s\n", r.title)
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{r.unit, ""}
	for _, b := range r.base {
		head = append(head, "× "+b)
	}
	fmt.Fprintln(w, strings.Join(append(head, "aim", ""), "\t"))
	for _, s := range r.subjects {
		row := []string{fmt.Sprintf("%.0f", median(r.speeds[s.name])), s.name}
		for _, b := range r.base {
			if slices.Contains(r.base, s.name) && s.name == b {
				row = append(row, "1")
				continue
			}
			row = append(row, fmt.Sprintf("%.2f", r.ratio(s.name, b)))
		}
		fmt.Fprintln(w, strings.Join(append(row, s.aim, ""), "\t"))
	}
	_ = w.Flush()
}
