package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"feedwarden/internal/demo"
)

const scriptsConfig = `
redis: {url: "REDIS"}
web:
  listen: "127.0.0.1:0"
  tokens: [{name: scripts, token: "scripts-token-0123456789", role: write}]
worker: {shutdown: 3s}
fetch: {allow_private: true}
quotas:
  soon-sh: {windows: [{limit: 1, per: 3s}]}
  soon-py: {windows: [{limit: 1, per: 3s}]}
  soon-mjs: {windows: [{limit: 1, per: 3s}]}
  late-sh: {windows: [{limit: 1, per: 1h}]}
  late-py: {windows: [{limit: 1, per: 1h}]}
  late-mjs: {windows: [{limit: 1, per: 1h}]}
feeds:
  news: {source: syndication, url: FEED, ttl: 30s}
`

const scriptsToken = "scripts-token-0123456789"

// script runs one of examples/scripts as it stands.
func script(t *testing.T, url, token, name string, args ...string) (out, errOut string, code int) {
	t.Helper()
	return scriptIn(t, []string{"FEEDWARDEN_URL=" + url, "FEEDWARDEN_TOKEN=" + token, "FEEDWARDEN_PATIENCE=20"}, name, args...)
}

func scriptIn(t *testing.T, env []string, name string, args ...string) (out, errOut string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	path, err := filepath.Abs(filepath.Join("../../examples/scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	var ee *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ee) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// startScript starts one of examples/scripts, and does not wait for its end.
func startScript(t *testing.T, url, name string, args ...string) *process {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../examples/scripts", name))
	if err != nil {
		t.Fatal(err)
	}
	return startEnv(t, append(os.Environ(), "FEEDWARDEN_URL="+url, "FEEDWARDEN_TOKEN="+scriptsToken, "FEEDWARDEN_PATIENCE=20"), path, args...)
}

func asked(t *testing.T, url, path string) (body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+scriptsToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err, b.String())
	}
	return b.String()
}

// The scripts that are shown do against a real server, with a token, what they say.
func TestScriptsEnqueueWaitReadAndShareAQuota(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{Limit: 100, Window: 3 * time.Second, Period: time.Minute})
	p.write(scriptsConfig)
	url := p.start("serve").url()
	for _, lang := range []string{"sh", "py", "mjs"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			fetch, share := "fetch."+lang, "share."+lang
			want := func(what, out, errOut string, code, wantCode int, wantOut, wantErr string) {
				t.Helper()
				if code != wantCode || !strings.Contains(out, wantOut) || !strings.Contains(errOut, wantErr) {
					t.Errorf("%s: exit %d, want %d; output %q, want %q in it; standard error %q, want %q in it", what, code, wantCode, out, wantOut, errOut, wantErr)
				}
			}
			// Enqueue, wait, read.
			out, errOut, code := script(t, url, scriptsToken, fetch, "news")
			want("fetch", out, errOut, code, 0, "", "")
			if titles := strings.Count(out, "\n"); titles < 5 {
				t.Errorf("fetch prints %d titles: %q", titles, out)
			}
			out, errOut, code = script(t, url+"/", scriptsToken, fetch, "news") // as a log or an address bar gives it
			want("fetch from a URL with a slash at its end", out, errOut, code, 0, "\n", "")
			out, errOut, code = script(t, url, scriptsToken, fetch, "nosuch")
			want("fetch an unknown feed", out, errOut, code, 1, "", "unknown-feed")
			out, errOut, code = script(t, url, "wrong-token-0123456789", fetch, "news")
			want("fetch with a wrong token", out, errOut, code, 1, "", "401")

			// Share a quota.
			soon, late := "soon-"+lang, "late-"+lang
			out, errOut, code = script(t, url, scriptsToken, share, soon, "1", "sh", "-c", "echo did it; exit 7")
			want("work that fails", out, errOut, code, 7, "did it", "")
			if q := asked(t, url, "/v1/quotas/"+soon); !strings.Contains(q, `"refunds":1`) || !strings.Contains(q, `"grants":1`) || !strings.Contains(q, `"used":0`) {
				t.Errorf("after work that failed: %s", q)
			}
			out, errOut, code = script(t, url+"/", scriptsToken, share, soon, "1", "echo", "did it")
			want("work", out, errOut, code, 0, "did it", "")
			if _, errOut, code := p.run("", "quota", "block", soon, "--for", "8s"); code != 0 {
				t.Fatal(errOut)
			}
			out, errOut, code = script(t, url, scriptsToken, share, soon, "1", "echo", "did it")
			want("work that waits", out, errOut, code, 0, "did it", "until it is our turn")
			if q := asked(t, url, "/v1/quotas/"+soon); !strings.Contains(q, `"refunds":1`) || !strings.Contains(q, `"grants":3`) {
				t.Errorf("after all work: %s", q)
			}
			out, errOut, code = script(t, url, scriptsToken, share, late, "1", "echo", "did it")
			want("work", out, errOut, code, 0, "did it", "")
			out, errOut, code = script(t, url, scriptsToken, share, late, "1", "echo", "did it")
			want("work beyond one's patience", out, errOut, code, 75, "", "refused for another")
			if out != "" {
				t.Errorf("refused, it worked all the same: %q", out)
			}
			if q := asked(t, url, "/v1/quotas/"+late); !strings.Contains(q, `"waiting":0`) {
				t.Errorf("it left its place in the line: %s", q)
			}
			// Stopped while it waits, it leaves the line.
			for _, stop := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
				if _, errOut, code := p.run("", "quota", "block", soon, "--for", "15s"); code != 0 {
					t.Fatal(errOut)
				}
				waits := startScript(t, url, share, soon, "1", "echo", "did it")
				eventually(t, 30*time.Second, func() string {
					if q := asked(t, url, "/v1/quotas/"+soon); !strings.Contains(q, `"waiting":1`) {
						return "nobody is in the line: " + q
					}
					return ""
				})
				_ = waits.cmd.Process.Signal(stop)
				if code := waits.wait(30 * time.Second); code != 130 || strings.Contains(waits.out.String(), "did it") {
					t.Errorf("stopped by %s: exit %d, output %q, standard error %q; want 130", stop, code, waits.out.String(), waits.err.String())
				}
				if q := asked(t, url, "/v1/quotas/"+soon); strings.Contains(q, `"waiting":1`) {
					t.Errorf("stopped by %s, it kept its place in the line: %s", stop, q)
				}
			}
			out, errOut, code = script(t, url, scriptsToken, share, "nosuch", "1", "true")
			want("an unknown quota", out, errOut, code, 1, "", "unknown-quota")
			out, errOut, code = script(t, url, scriptsToken, share, soon)
			want("a wrong call", out, errOut, code, 2, "", "usage")
			out, errOut, code = script(t, fmt.Sprintf("http://127.0.0.1:%d", freePort(t)), scriptsToken, share, soon, "1", "true")
			want("no server", out, errOut, code, 1, "", "")
		})
	}
}

// A full queue is a refusal for now: the scripts say so with exit 75.
func TestScriptsExit75WhenTheQueueIsFull(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{Limit: 100, Window: 3 * time.Second, Period: time.Minute})
	p.write(scriptsConfig + "queues: {interactive: {limit: 1}}\n")
	url := p.start("web").url() // no worker
	if _, errOut, code := p.run("", "enqueue", "news"); code != 0 {
		t.Fatal(errOut)
	}
	for _, name := range []string{"fetch.sh", "fetch.py", "fetch.mjs"} {
		if out, errOut, code := script(t, url, scriptsToken, name, "news"); code != 75 || out != "" || !strings.Contains(errOut, "queue-full") {
			t.Errorf("%s: exit %d, output %q, standard error %q", name, code, out, errOut)
		}
	}
}

// A server that takes what is sent and answers nothing, or cuts the connection, is a
// failure, with words, and not waited for without end; who may have been charged says so.
func TestScriptsDoNotWaitForAServerThatHangs(t *testing.T) {
	t.Parallel()
	for what, meet := range map[string]func(net.Conn){
		"hangs": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"cuts":  func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) },
		"cuts its answer": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"granted\":tr")
		},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					meet(c)
				}()
			}
		}()
		for _, lang := range []string{"sh", "py", "mjs"} {
			for name, args := range map[string][]string{"fetch." + lang: {"news"}, "share." + lang: {"q", "1", "echo", "did it"}} {
				t.Run(what+" "+name, func(t *testing.T) {
					t.Parallel()
					out, errOut, code := scriptIn(t, []string{"FEEDWARDEN_URL=http://" + l.Addr().String(), "FEEDWARDEN_TIMEOUT=2"}, name, args...)
					if code != 1 || out != "" || errOut == "" || strings.Contains(errOut, "Traceback") || strings.Contains(errOut, "    at ") {
						t.Errorf("exit %d, output %q, standard error %q", code, out, errOut)
					}
					if strings.HasPrefix(name, "share") && !strings.Contains(errOut, "could not give 1 units back") {
						t.Errorf("who may have been charged is not told so: %q", errOut)
					}
				})
			}
		}
	}
}
