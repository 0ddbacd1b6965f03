package browser

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	// The pages are looked at in a program that is built from here, of which go
	// test knows nothing: what they are made of is named, so that no result is
	// taken for that of a page which has changed since.
	_ "feedwarden/web"
)

// build makes the program once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "feedwarden-browser-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "feedwarden")
	cmd := exec.Command("go", "build", "-o", path, "feedwarden/cmd/feedwarden")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// output is what a process has said so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// process runs feedwarden until the test ends, and waits until it says what
// saying matches; that is the answer.
func process(t *testing.T, saying string, args ...string) []string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	out := &output{}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		if t.Failed() {
			text := out.String()
			t.Logf("%v said: …%s", args, text[max(0, len(text)-3000):])
		}
	})
	says := regexp.MustCompile(saying)
	var found []string
	until(t, "feedwarden "+args[0]+" says where it is", func() bool {
		found = says.FindStringSubmatch(out.String())
		return found != nil
	})
	return found
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 40 s: %s", what)
		}
	}
}

// demo is a demo that has fetched every feed and refused some job.
type demo struct {
	root   string // its URL, without the last slash
	config string // its config's file
}

func startDemo(t *testing.T) demo {
	t.Helper()
	said := process(t, `dashboard\s+(http://\S+?)/\n[\s\S]*its config\s+(\S+)`, "demo", "--listen", "127.0.0.1:0")
	d := demo{root: said[1], config: said[2]}
	until(t, "every feed has a version, and a job sleeps", func() bool {
		for _, f := range list(t, d.root, "feeds") {
			if f["version"] == nil {
				return false
			}
		}
		return d.job(t, "snoozed") != "" && d.job(t, "done") != ""
	})
	return d
}

// answer is the body of what is at an address.
func answer(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url) //nolint:noctx // the test's own end is enough
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// list asks the API for all of something.
func list(t *testing.T, root, what string) []map[string]any {
	t.Helper()
	name, _, _ := strings.Cut(what, "?")
	var all map[string]json.RawMessage
	var items []map[string]any
	if err := json.Unmarshal([]byte(answer(t, root+"/v1/"+what)), &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[name], &items); err != nil {
		t.Fatal(err)
	}
	return items
}

// job is one that is in a state, or "".
func (d demo) job(t *testing.T, state string) string {
	t.Helper()
	all := list(t, d.root, "jobs?state="+state+"&limit=1")
	if len(all) == 0 {
		return ""
	}
	id, _ := all[0]["id"].(string)
	return id
}
