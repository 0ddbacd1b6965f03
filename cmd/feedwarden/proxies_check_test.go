package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"feedwarden/internal/demo"
	"feedwarden/internal/faultkit"
	"feedwarden/internal/testredis"
)

const proxyPassword = "canary-check-pass-4711"

func faulty(t *testing.T, scheme string, f faultkit.Fault) *faultkit.Proxy {
	t.Helper()
	p, err := faultkit.Start(context.Background(), scheme, faultkit.Options{User: "ann", Password: proxyPassword})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.Fail(f, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

func idOf(p *faultkit.Proxy) string { return p.URL().Scheme + "://ann@" + p.Addr() }

const checkedConfig = `
redis: {url: "REDIS"}
web: {listen: "LISTEN"}
worker: {shutdown: 3s}
fetch: {allow_private: true}
pools:
  checked: {require: {https: true, anonymous: true, every: 10s}, list: "LIST", list_every: 10s, allow_private: true}
feeds:
  news: {source: syndication, url: "FEED", pool: checked}
`

// A list at a web address is fetched and its endpoints are checked by a job, with no hand; a feed then goes by the
// good one alone. Nothing that can be seen holds a secret.
func TestListsAreFetchedAndEndpointsCheckedByJobsAndNothingShowsASecret(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{Limit: 1000})
	good, reveals := faulty(t, "socks5", faultkit.NoFault), faulty(t, "http", faultkit.Reveal)
	refuses, injects := faulty(t, "socks5", faultkit.Auth), faulty(t, "http", faultkit.Inject)
	ca, err := faultkit.NewAuthority("of the test")
	if err != nil {
		t.Fatal(err)
	}
	lists, err := faultkit.StartTarget(context.Background(), ca, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, one := range []*faultkit.Proxy{good, reveals, refuses, injects} {
			fmt.Fprintln(w, one.URL())
		}
		fmt.Fprintln(w, "broken:line:ann:"+proxyPassword)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lists.Close() })
	list := strings.Replace(lists.HTTP, "://", "://lister:canary-list-pass@", 1) + "/list?key=canary-list-key"
	p.write(strings.NewReplacer("LISTEN", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "LIST", list).Replace(checkedConfig))
	serve := p.start("serve", "--log-level", "debug")
	url := serve.url()

	want := map[string]string{idOf(good): "probation", idOf(reveals): "candidate", idOf(refuses): "auth_failed", idOf(injects): "candidate"}
	var shown strings.Builder
	run := func(code int, args ...string) string {
		t.Helper()
		out, errOut, got := p.run("", args...)
		if got != code {
			t.Errorf("feedwarden %v: exit %d, want %d: %s", args, got, code, errOut)
		}
		fmt.Fprintf(&shown, "$ feedwarden %v\n%s%s\n", args, out, errOut)
		return out
	}
	states := func(out string) map[string]string {
		got := map[string]string{}
		for _, o := range objects(t, out) {
			got[fmt.Sprint(o["id"])] = fmt.Sprint(o["state"])
		}
		return got
	}
	eventually(t, 60*time.Second, func() string {
		out, errOut, _ := p.run("", "--json", "proxies", "list", "checked")
		if got := states(out); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("the pool has %v, want %v: %s", got, want, errOut)
		}
		return ""
	})
	if out := run(0, "enqueue", "news", "--wait"); !strings.Contains(out, `"done"`) {
		t.Errorf("the job: %s", out)
	}
	if seen := p.upstream.Stats().ByRemote; seen[good.From().String()] == 0 || len(seen) != 1 {
		t.Errorf("the target was asked from %v", seen)
	}
	// The same by hand. A check is a success to the endpoint: it is active by now, or still on trial.
	got := states(run(0, "--json", "proxies", "check", "checked", idOf(good), idOf(reveals)))
	if len(got) != 2 || got[idOf(reveals)] != "candidate" || got[idOf(good)] == "candidate" {
		t.Errorf("check says %v", got)
	}
	exits := objects(t, run(0, "--json", "proxies", "list", "checked", "--exits"))
	if len(exits) != 2 || exits[0]["shared"] != false {
		t.Errorf("exits %v", exits)
	}
	if out := run(0, "--json", "schedules", "list"); !strings.Contains(out, `"check:checked"`) || !strings.Contains(out, `"list:checked"`) {
		t.Errorf("schedules: %s", out)
	}
	run(2, "proxies", "check", "nosuch")
	for _, args := range [][]string{{"jobs", "list"}, {"feeds", "get", "news"}, {"feeds", "list"}, {"proxies", "list", "checked"}, {"proxies", "quarantine", "checked", idOf(good), "--for", "1s"}, {"check"}} {
		run(0, args...)
	}
	for _, o := range objects(t, run(0, "--json", "jobs", "list")) {
		run(0, "jobs", "get", fmt.Sprint(o["id"]))
	}
	for _, path := range []string{"/", "/feeds/news", "/metrics", "/v1/pools", "/v1/pools/checked", "/v1/jobs", "/v1/feeds", "/v1/feeds/news", "/v1/schedules", "/monitor/api/queues", "/judge?nonce=x", "/readyz"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		fmt.Fprintf(&shown, "GET %s %d\n%v\n%s\n", path, resp.StatusCode, resp.Header, body)
	}
	if code := serve.terminate(); code != 0 {
		t.Errorf("serve exits %d", code)
	}
	withoutSecrets(t, "what commands and pages show", shown.String())
	withoutSecrets(t, "the log", serve.out.String()+serve.err.String())
	for at, value := range testredis.Dump(t, p.redis.Client()) {
		if strings.HasPrefix(at, "fw:{pool:checked}:endpoints u:") {
			value = "" // the one place of a proxy's password: the URL that takes hand out
		}
		withoutSecrets(t, "Redis, "+at, at+" "+value)
	}
}

func withoutSecrets(t *testing.T, where, text string) {
	t.Helper()
	for _, s := range []string{proxyPassword, base64.StdEncoding.EncodeToString([]byte("ann:" + proxyPassword)), "canary-list-pass", "canary-list-key"} {
		if i := strings.Index(text, s); i >= 0 {
			t.Errorf("%s holds a secret: …%s…", where, text[max(0, i-120):min(len(text), i+40)])
		}
	}
}

const alone = `
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
pools:
  here: {allow_private: true}
  public: {}
`

// Without a web role, proxies of this machine are sent to a judge of the command's own; public ones have none.
func TestCheckWithoutAWebRole(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(alone)
	one, gone := faulty(t, "http", faultkit.NoFault), faulty(t, "http", faultkit.Gone)
	if out, errOut, code := p.run(one.URL().String()+"\n"+gone.URL().String(), "proxies", "import", "here", "-"); code != 0 {
		t.Fatal(out, errOut)
	}
	out, errOut, code := p.run("", "proxies", "check", "here")
	if code != 0 || len(objects(t, out)) != 2 || !strings.Contains(errOut, "1 answered, 1 failed") || strings.Contains(errOut, "[=") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	for _, o := range objects(t, out) {
		check, _ := o["check"].(map[string]any)
		if o["id"] == idOf(one) && (check["ok"] != true || check["https"] != true || o["exit"] != one.From().String()) {
			t.Errorf("%v", o)
		}
		if o["id"] == idOf(gone) && (check["ok"] != false || check["kind"] != "connect" || o["state"] != "quarantined") {
			t.Errorf("%v", o)
		}
	}
	if _, errOut, code := p.run("8.8.8.8:3128\n", "proxies", "import", "public", "-"); code != 0 {
		t.Fatal(errOut)
	}
	if _, errOut, code := p.run("", "proxies", "check", "public"); code != 2 || !strings.Contains(errOut, "web.judge") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if err := one.Fail(faultkit.Gone, 0); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := p.run("", "proxies", "check", "here"); code != 1 || !strings.Contains(errOut, "no eligible endpoint") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

// The bar is for a terminal, and never with NO_COLOR.
func TestProgressOnATerminalAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(alone)
	if _, errOut, code := p.run(faulty(t, "socks5", faultkit.NoFault).URL().String(), "proxies", "import", "here", "-"); code != 0 {
		t.Fatal(errOut)
	}
	for _, c := range []struct {
		env string
		bar bool
	}{{"TERM=xterm", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		host, guest := pty(t)
		cmd := exec.Command(binary, "--config", p.config, "proxies", "check", "here")
		cmd.Env = append(os.Environ(), c.env)
		cmd.Stderr = guest
		said := make(chan string, 1)
		go func() {
			var all strings.Builder
			_, _ = io.Copy(&all, host) // ends with EIO when the last guest is gone
			said <- all.String()
		}()
		err := cmd.Run()
		guest.Close()
		text := <-said
		if err != nil || strings.Contains(text, "[====") != c.bar || !strings.Contains(text, "1 answered") {
			t.Errorf("%s: %v, it said %q", c.env, err, text)
		}
	}
}

// pty is a terminal: what is written to guest is read from host.
func pty(t *testing.T) (host, guest *os.File) {
	t.Helper()
	host, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	fd := int(host.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	guest, err = os.OpenFile(filepath.Join("/dev/pts", fmt.Sprint(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return host, guest
}
