package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/fx"

	"feedwarden/internal/config"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// What the README, the docs and the examples show is loaded and built as it stands.
func TestConfigsThatAreShownAreAccepted(t *testing.T) {
	t.Parallel()
	shown := map[string]string{}
	for _, page := range []string{"README.md", "docs/config.md", "docs/schedules.md", "docs/plan.md", "docs/allocation.md", "docs/sources.md", "docs/reading.md", "docs/sinks.md"} {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
		if len(blocks) == 0 {
			t.Errorf("%s shows no config", page)
		}
		for i, m := range blocks {
			shown[fmt.Sprintf("%s, block %d", page, i+1)] = m[1]
		}
	}
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		shown[filepath.Base(f)] = string(text)
	}
	for name, text := range shown {
		dir := t.TempDir()
		path := filepath.Join(dir, "feedwarden.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		certificate(t, filepath.Join(dir, "fullchain.pem"), filepath.Join(dir, "key.pem"))
		f, err := config.Load(path, func(name string) (string, bool) { return "the-environment-has-" + name, true })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := fx.New(graph(translate(f), slog.New(slog.DiscardHandler), allRoles)).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// certificate writes a pair that a server can start with.
func certificate(t *testing.T, cert, key string) {
	t.Helper()
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	pair := srv.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The commands that the README gives in its code blocks exist.
func TestCommandsOfTheReadmeExist(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`?(?:\\./)?feedwarden ([a-z]+)(?: ([a-z]+))?").FindAllStringSubmatch(string(readme), -1) {
		args := []string{m[1]}
		switch m[1] {
		case "feeds", "quota", "jobs", "proxies", "schedules":
			args = append(args, m[2])
		}
		if out, errOut, code := command(t, "", append(args, "--help")...); code != 0 || !strings.Contains(out, "Usage") {
			t.Errorf("feedwarden %v: exit %d %s", args, code, errOut)
		}
	}
}
