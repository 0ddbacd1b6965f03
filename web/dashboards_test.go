package web

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"feedwarden/quota"
)

const (
	rulesFile     = "../deploy/prometheus/alerts.yml"
	dashboardFile = "../deploy/grafana/feedwarden.json"
)

var (
	seriesName  = regexp.MustCompile(`\b(?:feedwarden|process|go)_[a-z0-9_]+`)
	stateLabel  = regexp.MustCompile(`([a-z_]+)=~?"([a-z_|]+)"`)
	exposedName = regexp.MustCompile(`(?m)^([a-z_0-9]+)(?:\{([^}]*)\})? `)
	labelPair   = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// TestDashboardAndAlertsUseMetricsThatExist holds every metric, and every label's
// value, that the rules and the dashboard name against what /metrics gives.
func TestDashboardAndAlertsUseMetricsThatExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *Config, p *Parts, _ *pace) {
		p.Identity = func() RedisIdentity { return RedisIdentity{Mode: "single", Role: "master"} }
	})
	w.fillMetrics()
	names, values := map[string]bool{}, map[string]bool{}
	for _, m := range exposedName.FindAllStringSubmatch(w.get("/metrics").Body.String(), -1) {
		names[m[1]] = true
		for _, l := range labelPair.FindAllStringSubmatch(m[2], -1) {
			values[l[1]+"="+l[2]] = true
		}
	}
	used := 0
	for file, exprs := range map[string][]string{rulesFile: ruleExprs(t), dashboardFile: panelExprs(t)} {
		for _, expr := range exprs {
			for _, name := range seriesName.FindAllString(expr, -1) {
				used++
				if !names[name] {
					t.Errorf("%s: %s is not in /metrics: %s", file, name, expr)
				}
			}
			for _, m := range stateLabel.FindAllStringSubmatch(expr, -1) {
				for value := range strings.SplitSeq(m[2], "|") {
					if !values[m[1]+"="+value] {
						t.Errorf("%s: no series in /metrics has %s=%q: %s", file, m[1], value, expr)
					}
				}
			}
		}
	}
	if used < 40 {
		t.Errorf("only %d names were looked at", used)
	}
}

// fillMetrics makes a world in which every metric has a value.
func (w *world) fillMetrics() {
	w.Helper()
	ctx := w.Context()
	w.put("trending-bd", 2*time.Minute, nil, item("a", "A"))
	w.charge(`{"id":"a","cost":280}`)
	w.charge(`{"id":"b","cost":30}`)
	if _, err := w.leases.Acquire(ctx, "job", time.Minute, quota.Running{Name: "quota:youtube", Limit: 3}); err != nil {
		w.Fatal(err)
	}
	list, err := w.pools.List(ctx, "public")
	if err != nil {
		w.Fatal(err)
	}
	if err := w.pools.Quarantine(ctx, "public", list[0].ID, time.Hour); err != nil {
		w.Fatal(err)
	}
}

func ruleExprs(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, r := range readRules(t) {
		all = append(all, r.Expr)
	}
	return all
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// panelExprs are the queries of the dashboard; each panel has one, and a title.
func panelExprs(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID        string
		Templating struct{ List []struct{ Definition string } }
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var all []string
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if p.Title == "" || ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q: no title, an ID that another has, no query, or beyond the edge", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			all = append(all, q.Expr)
		}
	}
	for _, v := range board.Templating.List {
		all = append(all, v.Definition)
	}
	return all
}

// TestAlertsAreThoseThatArePromised: each with a severity, and words that say what to do.
func TestAlertsAreThoseThatArePromised(t *testing.T) {
	t.Parallel()
	got := map[string]rule{}
	for _, r := range readRules(t) {
		got[r.Alert] = r
		if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.For == "" {
			t.Errorf("%s: a severity, a summary, a description and a for are wanted", r.Alert)
		}
	}
	for _, name := range []string{"FeedStale", "QuotaWillRunOut", "PoolNearlyEmpty", "SchedulerLate", "LineGrowing", "RedisAway", "RedisPrimaryChanged", "RedisLostWrites"} {
		if _, ok := got["Feedwarden"+name]; !ok {
			t.Errorf("no Feedwarden%s among %q", name, slices.Sorted(maps.Keys(got)))
		}
	}
}

// TestAlertRulesPassPromtool: Prometheus's own tool reads the rules, and runs
// their tests, which say when each fires and when it does not.
func TestAlertRulesPassPromtool(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(rulesFile)
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
			t.Errorf("promtool %v: %v\n%s(make deps installs it)", args, err, out)
		}
	}
	tests, err := os.ReadFile(filepath.Join(dir, "alerts_test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readRules(t) {
		if !strings.Contains(string(tests), "alertname: "+r.Alert+"\n") {
			t.Errorf("%s is not seen firing in alerts_test.yml", r.Alert)
		}
	}
}
