package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"feedwarden/internal/config"
	"feedwarden/internal/demo"
)

var writeDocs = flag.Bool("write-docs", false, "write the tables of docs/logs.md from the code")

// event is one log line of the code.
type event struct {
	level string
	keys  map[string]bool
	where map[string]bool // packages
	job   bool            // a job is named without its feed
}

var methods = map[string]int{ // the place of the message
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "LogAttrs": 2,
}

// eventsOf reads the log lines of one file.
func eventsOf(t *testing.T, path, pkg string, into map[string]*event) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isLog(sel.X) {
			return true
		}
		at, ok := methods[sel.Sel.Name]
		if !ok || len(call.Args) <= at {
			return true
		}
		message, ok := literal(call.Args[at])
		if !ok {
			t.Errorf("%s: a message that is not constant", path)
			return true
		}
		level := strings.ToLower(strings.TrimSuffix(sel.Sel.Name, "Context"))
		if level == "logattrs" {
			level = strings.ToLower(strings.TrimPrefix(call.Args[1].(*ast.SelectorExpr).Sel.Name, "Level"))
		}
		e := into[message]
		if e == nil {
			e = &event{level: level, keys: map[string]bool{}, where: map[string]bool{}}
			into[message] = e
		}
		e.where[pkg] = true
		for i := at + 1; i < len(call.Args); i += 2 {
			if key, ok := literal(call.Args[i]); ok {
				e.keys[key] = true
			}
		}
		if call.Ellipsis != 0 || e.keys["job"] && !e.keys["feed"] {
			e.job = e.keys["job"]
		}
		return true
	})
}

func isLog(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	return strings.EqualFold(name, "log")
}

func literal(x ast.Expr) (string, bool) {
	if l, ok := x.(*ast.BasicLit); ok && l.Kind == token.STRING {
		s, err := strconv.Unquote(l.Value)
		return s, err == nil
	}
	return "", false
}

func allEvents(t *testing.T) map[string]*event {
	t.Helper()
	all := map[string]*event{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || slices.Contains([]string{"bench", "testredis", "faultkit"}, d.Name())) {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			pkg, _ := filepath.Rel("../..", filepath.Dir(path))
			eventsOf(t, path, pkg, all)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The vocabulary of events in docs/logs.md is the code's.
func TestEventsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	all := allEvents(t)
	if len(all) < 50 {
		t.Fatalf("only %d events were found", len(all))
	}
	var table strings.Builder
	table.WriteString("| event | level | keys | from |\n|---|---|---|---|\n")
	for _, message := range slices.Sorted(maps.Keys(all)) {
		e := all[message]
		if e.job {
			t.Errorf("%q names a job and not its feed", message)
		}
		keys := ""
		if len(e.keys) > 0 {
			keys = "`" + strings.Join(slices.Sorted(maps.Keys(e.keys)), "`, `") + "`"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", message, e.level, keys, strings.Join(slices.Sorted(maps.Keys(e.where)), ", "))
	}
	const page = "../../docs/logs.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- events: go test ./cmd/feedwarden -run Events -write-docs -->\n"
	head, documented, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatalf("%s has no %s", page, mark)
	}
	if *writeDocs {
		if err := os.WriteFile(page, []byte(head+mark+table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := strings.Split(table.String(), "\n")
	have := strings.Split(documented, "\n")
	for _, row := range want {
		if !slices.Contains(have, row) {
			t.Errorf("docs/logs.md lacks %s", row)
		}
	}
	for _, row := range have {
		if !slices.Contains(want, row) {
			t.Errorf("docs/logs.md has %s, which the code does not log", row)
		}
	}
}

// documentedEvents are the rows of docs/logs.md by their events.
func documentedEvents(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for row := range strings.Lines(string(text)) {
		if message, keys, ok := strings.Cut(strings.TrimPrefix(row, "| "), " | "); ok {
			all[message] = keys
		}
	}
	return all
}

// A process logs JSON when it is told to, and every line of a job names the job
// and its feed, asynq's and fx's lines go the same way.
func TestLinesAreJSONAndNameJobAndFeed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	p.write(`
redis: {url: "REDIS"}
web: {listen: "127.0.0.1:0"}
fetch: {allow_private: true}
quotas: {small: {windows: [{limit: 2, per: 1s}]}}
feeds:
  news: {source: syndication, url: FEED, schedule: "@every 1s", quota: small}
  gone: {source: syndication, url: "http://127.0.0.1:1/", schedule: "@every 1s", attempts: 2}
`)
	serve := p.start("--log-format", "json", "--log-level", "debug", "serve")
	wanted := map[string]bool{"granted": true, "fetched": true, "stored": true, "job failed": true, "tick dispatched": true}
	eventually(t, 60*time.Second, func() string {
		for message := range wanted {
			if !strings.Contains(serve.err.String(), `"msg":"`+message+`"`) {
				return "no line says " + message
			}
		}
		return ""
	})
	if code := serve.terminate(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	fx := false
	documented := documentedEvents(t)
	for line := range strings.Lines(serve.err.String()) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Errorf("not JSON: %s", line)
			continue
		}
		if (o["job"] != nil) != (o["feed"] != nil) && o["schedule"] == nil && o["job"] != nil || wanted[fmt.Sprint(o["msg"])] && o["feed"] == nil {
			t.Errorf("a line of a job without job and feed: %s", line)
		}
		if known, ok := documented[fmt.Sprint(o["msg"])]; o["level"] != "DEBUG" {
			if !ok {
				t.Errorf("an event that docs/logs.md does not have: %s", line)
			}
			for key := range o {
				if !strings.Contains(known, "`"+key+"`") && !slices.Contains([]string{"time", "level", "msg", "job", "feed"}, key) {
					t.Errorf("a key %q that docs/logs.md does not have: %s", key, line)
				}
			}
		}
		fx = fx || strings.Contains(fmt.Sprint(o["msg"]), "OnStart hook")
	}
	if !fx {
		t.Error("nothing that fx has to say is in the log")
	}
}

// Whatever is made of a config may be logged: no secret comes out.
func TestNoFormOfLoggingShowsASecret(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("f.yaml", []byte(`
redis: {url: "redis://user:canary-redis@localhost:6379/0"}
web: {tokens: [{name: ops, token: "canary-token-0123456789", role: read}]}
pools:
  p: {list: "https://u:canary-list@example.org/?token=canary-query"}
feeds:
  a:
    source: youtube
    method: videos.list
    key: canary-key
    params: {chart: mostPopular, token: canary-param}
    headers: {X-Api-Token: canary-header}
  b:
    source: syndication
    url: "https://example.org/?api_key=canary-url"
    sinks: [{webhook: "https://example.org/hook?token=canary-hook", secret: canary-sink}]
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	s := translate(f)
	things := map[string]any{"file": f, "settings": s, "settings by pointer": &s}
	v := reflect.ValueOf(s)
	parts := []any{s.redis, s.quotas, s.pools, s.probe, s.jobs, s.fetch, s.entries, s.web}
	if v.NumField() < len(parts) {
		t.Fatal("settings have fewer parts than are looked at")
	}
	for i, part := range parts {
		things[fmt.Sprintf("part %d, %T", i, part)] = part
		if r := reflect.ValueOf(part); r.Kind() == reflect.Struct {
			ptr := reflect.New(r.Type())
			ptr.Elem().Set(r)
			things[fmt.Sprintf("part %d by pointer", i)] = ptr.Interface()
			for j := range r.NumField() {
				if f := r.Type().Field(j); f.IsExported() && f.Type.Kind() != reflect.String { // a text is what it was revealed as
					things[fmt.Sprintf("part %d field %s", i, r.Type().Field(j).Name)] = r.Field(j).Interface()
				}
			}
		}
	}
	for _, feed := range s.jobs.Feeds {
		things["feed "+feed.Name], things["source of "+feed.Name] = feed, feed.Source
	}
	canary := regexp.MustCompile(`.{0,60}canary-\w+`)
	for name, thing := range things {
		var text, lines bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("config", "thing", thing)
		slog.New(slog.NewJSONHandler(&lines, nil)).Info("config", "thing", thing)
		for how, said := range map[string]string{
			"text": text.String(), "json": lines.String(), "%v": fmt.Sprintf("%v", thing), "%+v": fmt.Sprintf("%+v", thing), "%#v": fmt.Sprintf("%#v", thing), "%s": fmt.Sprintf("%s", thing),
		} {
			if found := canary.FindString(said); found != "" {
				t.Errorf("%s, %s: …%s", name, how, found)
			}
		}
	}
}

// A role goes on working when whoever read its log is gone, and ends in good
// order; a command whose output nobody reads ends at once, as others do.
func TestARoleOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Options{})
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p.write(`
redis: {url: "REDIS"}
web: {listen: "` + address + `"}
fetch: {allow_private: true}
feeds:
  news: {source: syndication, url: FEED, schedule: "@every 1s"}
`)
	closed := func() *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		t.Cleanup(func() { w.Close() })
		return w
	}
	serve := exec.Command(binary, "--config", p.config, "serve")
	serve.Stderr = closed()
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = serve.Wait(); close(ended) }()
	t.Cleanup(func() { _ = serve.Process.Kill(); <-ended })
	eventually(t, 60*time.Second, func() string {
		select {
		case <-ended:
			t.Fatalf("it ended by itself: %v", serve.ProcessState)
		default:
		}
		resp, err := http.Get("http://" + address + "/v1/feeds/news")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		return map[bool]string{false: resp.Status}[resp.StatusCode == http.StatusOK]
	})
	_ = serve.Process.Signal(syscall.SIGTERM)
	<-ended
	if code := serve.ProcessState.ExitCode(); code != exitDone {
		t.Errorf("it ended with %v, want exit 0", serve.ProcessState)
	}

	list := exec.Command(binary, "--config", p.config, "feeds", "list")
	list.Stdout = closed()
	if err := list.Run(); err == nil {
		t.Error("a command whose output nobody reads says that all went well")
	}
}
