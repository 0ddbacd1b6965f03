package allocation_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"feedwarden/allocation"
	"feedwarden/internal/testredis"

	"github.com/redis/go-redis/v9"
)

// orders tell a worker process what to do: so many goroutines take so often.
type orders struct {
	Socket   string
	Pool     allocation.Config
	Callers  int
	Takes    int      // of each goroutine
	Keys     []string // sticky: used in turn
	Holds    bool     // leases are kept until the process ends; otherwise each is reported at once
	MayBeOut bool     // nothing eligible is an answer to be expected
}

// A call is what one script call of a worker gave, in the order in which the script made its picks.
type call struct {
	Words string // after the keys, the seed among them: they tell the call in the server's own log of commands
	IDs   []string
}

// A pick is one take's answer as its caller saw it.
type pick struct{ Key, ID, Lease string }

// said is a line of a worker's output.
type said struct {
	Call  *call
	Pick  *pick
	Error string
}

const ordersEnv = "ALLOCATION_TEST_ORDERS"

// isWorker runs this process as a worker, if that is what it was started for.
func isWorker() bool {
	text := os.Getenv(ordersEnv)
	if text == "" {
		return false
	}
	var mu sync.Mutex
	enc := json.NewEncoder(os.Stdout)
	say := func(s said) {
		mu.Lock()
		defer mu.Unlock()
		_ = enc.Encode(s)
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		say(said{Error: err.Error()})
		return true
	}
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: o.Socket, PoolSize: o.Callers + 2})
	defer rdb.Close()
	rdb.AddHook(callRecorder{say})
	p, err := allocation.New(rdb, []allocation.Config{o.Pool})
	if err != nil {
		say(said{Error: err.Error()})
		return true
	}
	say(said{}) // ready
	input := bufio.NewReader(os.Stdin)
	_, _ = input.ReadString('\n') // all begin at the same time
	var group sync.WaitGroup
	for w := range o.Callers {
		group.Go(func() {
			for i := range o.Takes {
				if err := o.step(p, w+i, say); err != nil {
					say(said{Error: err.Error()})
					return
				}
			}
		})
	}
	group.Wait()
	if o.Holds {
		say(said{})                   // has all that it wants
		_, _ = input.ReadString('\n') // until it is killed
	}
	return true
}

// step is one take, and its report.
func (o orders) step(p *allocation.Pools, n int, say func(said)) error {
	ctx := context.Background()
	t := allocation.TakeOptions{}
	if len(o.Keys) > 0 {
		t.Key = o.Keys[n%len(o.Keys)]
	}
	a, err := p.Take(ctx, o.Pool.Name, t)
	if err != nil {
		if _, ok := asEmpty(err); ok && o.MayBeOut {
			return nil
		}
		return err
	}
	say(said{Pick: &pick{t.Key, a.ID, a.Lease}})
	if a.Lease != "" && !o.Holds {
		return p.Report(ctx, allocation.Report{Pool: a.Pool, ID: a.ID, Lease: a.Lease, Outcome: allocation.OK})
	}
	return nil
}

// callRecorder notes what every take script answers.
type callRecorder struct{ say func(said) }

func (callRecorder) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r callRecorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		c, ok := cmd.(*redis.Cmd)
		if err != nil || !ok || len(c.Args()) < 4 {
			return err
		}
		replies, ok := c.Val().([]any)
		if !ok {
			return err
		}
		keys, _ := c.Args()[2].(int)
		made := call{Words: strings.TrimSuffix(fmt.Sprintln(c.Args()[3+keys:]...), "\n")}
		for take := range slices.Chunk(replies, 4) {
			if id := fmt.Sprint(take[0]); len(take) == 4 && id != "" {
				made.IDs = append(made.IDs, id)
			}
		}
		r.say(said{Call: &made})
		return err
	}
}

func (callRecorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A worker is a running process.
type worker struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *json.Decoder
	calls []call
	picks []pick
}

// employ starts n workers and lets them wait.
func employ(t *testing.T, n int, o orders) []*worker {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*worker, n)
	for i := range all {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), ordersEnv+"="+string(text))
		cmd.Stderr = os.Stderr
		w := &worker{t: t, cmd: cmd}
		if w.stdin, err = cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		w.lines = json.NewDecoder(bufio.NewReader(out))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGKILL); _ = cmd.Wait() })
		all[i] = w
	}
	for _, w := range all {
		w.listen(true)
	}
	return all
}

// start lets a worker work.
func (w *worker) start() {
	if _, err := io.WriteString(w.stdin, "go\n"); err != nil {
		w.t.Error(err)
	}
}

// listen reads what a worker says until it is silent for good, or, if so asked, until it says that it is ready.
func (w *worker) listen(ready bool) {
	for {
		var s said
		err := w.lines.Decode(&s)
		switch {
		case err != nil:
			if err != io.EOF || ready {
				w.t.Errorf("a worker ended: %v", err)
			}
			return
		case s.Error != "":
			w.t.Errorf("a worker failed: %s", s.Error)
		case s.Call != nil:
			w.calls = append(w.calls, *s.Call)
		case s.Pick != nil:
			w.picks = append(w.picks, *s.Pick)
		case ready:
			return
		}
	}
}

// work lets all do their work and waits for them.
func work(all []*worker) {
	var group sync.WaitGroup
	for _, w := range all {
		w.start()
		group.Go(func() { w.listen(false); _ = w.cmd.Wait() })
	}
	group.Wait()
}

// scene is a pool on a server of its own, whose log of commands is read.
type scene struct {
	*bench
	srv *testredis.Server
	cfg allocation.Config
	log *monitor
}

func newScene(t *testing.T, c allocation.Config) *scene {
	t.Helper()
	srv := testredis.Own(t, "--save", "", "--appendonly", "no")
	rdb := srv.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	c.Name = testredis.Name("pool")
	p, err := allocation.New(rdb, []allocation.Config{c})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{&bench{t: t, rdb: rdb, pool: c.Name, pools: p}, srv, c, monitored(t, srv.Socket())}
}

// orders are those of workers of this pool.
func (s *scene) orders(callers, takes int) orders {
	return orders{Socket: s.srv.Socket(), Pool: s.cfg, Callers: callers, Takes: takes}
}

// history is every script call that Redis made, in its own order: takes with
// their picks, and what else was done to the pool.
func (s *scene) history(workers []*worker) []event {
	s.t.Helper()
	picks := map[string][]string{}
	for _, w := range workers {
		for _, c := range w.calls {
			picks[c.Words] = c.IDs
		}
	}
	var out []event
	seen := 0
	for _, args := range s.log.scripts(s.rdb) {
		e := event{args: args}
		if ids, ok := picks[strings.Join(args, " ")]; ok {
			e.picks = ids
			seen++
		}
		out = append(out, e)
	}
	if seen != len(picks) {
		s.t.Fatalf("Redis's log has %d of the %d calls that the workers made", seen, len(picks))
	}
	return out
}

// An event is one script call in Redis's order: the words of the command after
// its keys, and, of a worker's take, the picks.
type event struct {
	args  []string
	picks []string
}

// has says that the words contain these, in this order and side by side.
func (e event) has(words ...string) bool {
	for i := range e.args {
		if i+len(words) <= len(e.args) && slices.Equal(e.args[i:i+len(words)], words) {
			return true
		}
	}
	return false
}

// A monitor reads MONITOR of a server.
type monitor struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string
}

func monitored(t *testing.T, socket string) *monitor {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	m := &monitor{t: t}
	read := make(chan struct{})
	t.Cleanup(func() { _ = c.Close(); <-read })
	if _, err := io.WriteString(c, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "+OK") {
		t.Fatalf("MONITOR: %q, %v", line, err)
	}
	go func() {
		defer close(read)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			m.mu.Lock()
			m.lines = append(m.lines, line)
			m.mu.Unlock()
		}
	}()
	return m
}

// scripts gives the words after the keys of every script call so far.
func (m *monitor) scripts(rdb redis.UniversalClient) [][]string {
	m.t.Helper()
	end := testredis.Name("end")
	if err := rdb.Echo(m.t.Context(), end).Err(); err != nil {
		m.t.Fatal(err)
	}
	var lines []string
	for deadline := time.Now().Add(10 * time.Second); ; {
		m.mu.Lock()
		lines = slices.Clone(m.lines)
		m.mu.Unlock()
		if n := len(lines); n > 0 && slices.ContainsFunc(lines[max(0, n-20):], func(l string) bool { return strings.Contains(l, end) }) {
			break
		}
		if time.Now().After(deadline) {
			m.t.Fatal("the log of commands does not come to its end")
		}
		<-time.After(time.Millisecond)
	}
	var out [][]string
	place := map[string]int{} // of each call
	for _, line := range lines {
		words := strings.Split(line, `" "`)
		if len(words) < 4 || !strings.Contains(line, "] \"eval") || strings.Contains(words[0], " lua]") {
			continue
		}
		words[len(words)-1] = strings.TrimRight(words[len(words)-1], "\"\r\n")
		keys := 0
		if _, err := fmt.Sscan(words[2], &keys); err != nil || len(words) < 3+keys+2 {
			m.t.Fatalf("unexpected line %q", line)
		}
		// Where the script was not known yet, EVALSHA did nothing and EVAL came after it with the same words.
		args := words[3+keys:]
		call := strings.Join(args, " ")
		if at, again := place[call]; again {
			out[at] = nil
		}
		place[call] = len(out)
		out = append(out, args)
	}
	return slices.DeleteFunc(out, func(args []string) bool { return args == nil })
}
