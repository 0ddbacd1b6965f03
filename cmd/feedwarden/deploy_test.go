package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"go.uber.org/fx"

	"feedwarden/internal/config"
	"feedwarden/internal/demo"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The configs of deploy/ are loaded and built as they stand, with no more in the
// environment than their own examples of it name.
func TestDeployedConfigsAreAcceptedWithTheirEnvironment(t *testing.T) {
	t.Parallel()
	var configMap struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(read(t, "../../deploy/kubernetes/configmap.yaml")), &configMap); err != nil {
		t.Fatal(err)
	}
	var secret struct {
		StringData map[string]string `yaml:"stringData"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../deploy/kubernetes/secret.example.yaml")), &secret); err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Feedwarden struct{ Environment map[string]string } `yaml:"x-feedwarden"`
		Services   map[string]struct{ Command []string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../deploy/compose/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"web", "scheduler", "worker"} {
		if c := compose.Services[role].Command; len(c) != 1 || c[0] != role {
			t.Errorf("compose: service %s runs %q", role, c)
		}
	}
	composeConfig := read(t, "../../deploy/compose/feedwarden.yaml")
	systemd := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+)=`).FindAllStringSubmatch(read(t, "../../deploy/systemd/environment.example"), -1) {
		systemd[m[1]] = ""
	}
	for name, c := range map[string]struct {
		text string
		env  map[string]string
	}{
		"compose":    {composeConfig, compose.Feedwarden.Environment},
		"kubernetes": {configMap.Data["feedwarden.yaml"], secret.StringData},
		"systemd":    {composeConfig, systemd},
	} {
		path := filepath.Join(t.TempDir(), "feedwarden.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := config.Load(path, func(n string) (string, bool) {
			_, ok := c.env[n]
			if n == "REDIS_URL" {
				return "redis://:secret@127.0.0.1:6379/0", ok
			}
			return "the-environment-has-" + n, ok
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := fx.New(graph(translate(f), slog.New(slog.DiscardHandler), allRoles)).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the units, the manifests and the image run are commands of ours, and each
// is given longer to end than worker.shutdown.
func TestDeployedCommandsExistAndHaveTimeToEnd(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("../../deploy/systemd/*.service")
	if err != nil || len(units) != 3 {
		t.Fatal(units, err)
	}
	for _, path := range units {
		text := read(t, path)
		m := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/feedwarden --config \S+ ([a-z]+)$`).FindStringSubmatch(text)
		if m == nil || !strings.HasPrefix(filepath.Base(path), "feedwarden-"+m[1]) {
			t.Errorf("%s: ExecStart %q", path, m)
			continue
		}
		if out, errOut, code := command(t, "", m[1], "--help"); code != 0 || !strings.Contains(out, "Usage") {
			t.Errorf("%s: feedwarden %s: exit %d %s", path, m[1], code, errOut)
		}
		stop := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindStringSubmatch(text)
		if d, err := time.ParseDuration(stop[1]); err != nil || d < 40*time.Second {
			t.Errorf("%s: TimeoutStopSec %v", path, stop)
		}
		for _, key := range []string{"DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet=\n", "SystemCallFilter=@system-service", "Restart=always", "MemoryDenyWriteExecute=yes"} {
			if !strings.Contains(text, key) {
				t.Errorf("%s: no %s", path, key)
			}
		}
	}
	// The probe of processes without a port: 0 where Redis answers, else 1.
	p := newPlace(t, demo.Options{})
	p.write("redis: {url: \"REDIS\"}\nfeeds: {news: {source: syndication, url: FEED}}\n")
	if _, errOut, code := p.run("", "jobs", "list", "--state", "running"); code != 0 {
		t.Errorf("the probe, with Redis: exit %d %s", code, errOut)
	}
	p.redis.Stop()
	if _, _, code := p.run("", "jobs", "list", "--state", "running"); code != 1 {
		t.Errorf("the probe, without Redis: exit %d, want 1", code)
	}
	dockerfile := read(t, "../../deploy/Dockerfile")
	for _, want := range []string{"CGO_ENABLED=0", "FROM scratch", "USER 65532:65532", `ENTRYPOINT ["/feedwarden"]`, "-X main.release="} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("Dockerfile: no %s", want)
		}
	}
}

// Each line of the Procfile, run by a shell in a checkout as its runners do, is a
// process; together they are ready, and all end in good order.
func TestProcfileRunsTheThreeRolesFromACheckout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(dir, "feedwarden")); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	text := fmt.Sprintf("web: {listen: \"127.0.0.1:%d\"}\nworker: {shutdown: 2s}\nfeeds: {news: {source: syndication, url: \"https://example.org/feed.xml\"}}\n", port)
	if err := os.WriteFile(filepath.Join(dir, "feedwarden.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	roles := map[string]*process{}
	for line := range strings.Lines(read(t, "../../Procfile")) {
		name, run, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("Procfile: %q", line)
		}
		roles[name] = start(t, "sh", "-c", "cd '"+dir+"' && exec "+run)
	}
	for name, said := range map[string]string{"web": "web server listens", "scheduler": "schedules configured", "worker": "worker takes jobs"} {
		if roles[name] == nil {
			t.Fatalf("the Procfile has no %s", name)
		}
		eventually(t, 60*time.Second, func() string {
			if !strings.Contains(roles[name].err.String(), said) {
				return name + " does not say: " + said
			}
			return ""
		})
	}
	if status, _ := get(t, fmt.Sprintf("http://127.0.0.1:%d/readyz", port), nil); status != http.StatusOK {
		t.Errorf("/readyz: %d", status)
	}
	for name, p := range roles {
		if code := p.terminate(); code != 0 {
			t.Errorf("%s exits %d", name, code)
		}
	}
}
