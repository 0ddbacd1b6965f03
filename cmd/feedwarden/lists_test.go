package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"feedwarden/internal/demo"
)

const listsConfig = `
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
worker: {shutdown: 3s}
fetch: {allow_private: true}
pools:
  public: {list: LIST, policy: POLICY}
feeds:
  steady: {source: syndication, url: FEED, ttl: 1h}
`

// endpointStates is what `proxies list` says of a pool: endpoint → state.
func endpointStates(t *testing.T, p *place) map[string]string {
	t.Helper()
	out, errOut, code := p.run("", "--json", "proxies", "list", "public")
	if code != 0 {
		t.Fatalf("proxies list: exit %d %s", code, errOut)
	}
	states := map[string]string{}
	for line := range strings.Lines(out) {
		var e struct{ ID, State string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		states[strings.TrimSuffix(strings.TrimPrefix(e.ID, "http://"), ".example:80")] = e.State
	}
	return states
}

// TestPoolsFollowTheirListsAndTheConfigWhileTheyRun: a line that is removed retires, one that is added comes, an
// empty file changes nothing; policy, requirement and the name of the list are taken up without a restart.
func TestPoolsFollowTheirListsAndTheConfigWhileTheyRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{Limit: 1000})
	list := func(name string, hosts ...string) {
		t.Helper()
		text := ""
		for _, h := range hosts {
			text += h + ".example:80\n"
		}
		// Written beside and renamed, as an editor does.
		path := filepath.Join(p.dir, name)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(want map[string]string) {
		t.Helper()
		eventually(t, 20*time.Second, func() string {
			if got := endpointStates(t, p); fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Sprintf("the pool has %v, want %v", got, want)
			}
			return ""
		})
	}
	config := func(list, policy string) {
		p.write(strings.NewReplacer("LIST", list, "POLICY", policy).Replace(listsConfig))
	}
	list("a.txt", "one", "two")
	list("b.txt", "two", "four")
	config("a.txt", "least-used")
	both := []*process{p.start("worker"), p.start("scheduler")}
	holds(map[string]string{"one": "active", "two": "active"})
	if _, errOut, code := p.run("hand.example:80\n", "proxies", "import", "public", "-"); code != 0 {
		t.Fatal(errOut)
	}

	list("a.txt", "two", "three")
	holds(map[string]string{"two": "active", "three": "active", "hand": "active"})
	list("a.txt")
	told(t, both[0], `proxy list not taken over.*had 2: nothing was retired`)
	holds(map[string]string{"two": "active", "three": "active", "hand": "active"})

	// Another file, a requirement, another policy: the lines of the old file go with it.
	config("b.txt", "shuffled, require: {https: true}")
	for _, q := range both {
		_ = q.cmd.Process.Signal(syscall.SIGHUP)
		told(t, q, `config taken up.*pools.*changed=1`)
		if slices.ContainsFunc(strings.Split(q.err.String(), "\n"), func(l string) bool { return strings.Contains(l, "needs a restart") }) {
			t.Errorf("%s wants a restart: %s", q.name, q.err.String())
		}
	}
	holds(map[string]string{"two": "active", "four": "candidate", "hand": "active"})
	config("b.txt", "shuffled")
	for _, q := range both {
		_ = q.cmd.Process.Signal(syscall.SIGHUP)
	}
	holds(map[string]string{"two": "active", "four": "probation", "hand": "active"})
	for _, q := range both {
		if code := q.terminate(); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}
