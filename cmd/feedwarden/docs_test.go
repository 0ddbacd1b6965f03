package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
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

// Each command line that is shown, in a block or in passing, is one that the
// program takes: names of commands and flags, and what a flag's value may be.
func TestCommandsThatAreShownAreTaken(t *testing.T) {
	t.Parallel()
	pages := []string{"../../README.md", "../../CONTRIBUTING.md"}
	for _, dir := range []string{"../../docs/*.md", "../../examples/*.yaml", "../../deploy/*/*.example", "../../deploy/*.md"} {
		more, err := filepath.Glob(dir)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shownCommands(string(text)) {
			seen++
			var cli CLI
			parser, err := newParser(&cli, io.Discard, io.Discard, func(int) {})
			if err != nil {
				t.Fatal(err)
			}
			words := shellWords(line)
			if len(words) == 0 {
				continue // the program's name alone
			}
			_, err = parser.Parse(typed(words))
			if err != nil && !strings.Contains(err.Error(), `expected "<`) { // a command may be named without what it works on
				t.Errorf("%s: feedwarden %s: %v", page, line, err)
			}
		}
	}
	if seen < 60 {
		t.Errorf("%d commands are shown", seen)
	}
}

var (
	inBlock   = regexp.MustCompile("(?s)```sh\n(.*?)```")
	inPassing = regexp.MustCompile("`feedwarden( [a-z][^`]*)`")
	inExample = regexp.MustCompile(`(?m)^#.*[^/\w]feedwarden( --config .*| [a-z]+ .*)$`)
	called    = regexp.MustCompile(`(?:^|[ (/])feedwarden((?: +[-\w'"][^|;&)#]*)?)`)
)

// shownCommands are the command lines of a page, without the program's name.
func shownCommands(page string) (all []string) {
	for _, block := range inBlock.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			if strings.HasPrefix(line, "go build") || strings.HasPrefix(line, "install ") || strings.HasPrefix(line, "cp ") || strings.HasPrefix(line, "systemctl ") {
				continue
			}
			line = regexp.MustCompile(`\$\([^)]*\)`).ReplaceAllString(strings.TrimSpace(line), "x")
			for _, m := range called.FindAllStringSubmatch(line, -1) {
				all = append(all, m[1])
			}
		}
	}
	for _, re := range []*regexp.Regexp{inPassing, inExample} {
		for _, m := range re.FindAllStringSubmatch(page, -1) {
			if !strings.ContainsAny(m[1], "[|") { // a grammar is no command
				all = append(all, m[1])
			}
		}
	}
	return all
}

// shellWords parts a line as a shell does, as far as the pages go; what is left
// to the reader stands for a value.
func shellWords(line string) (words []string) {
	line = regexp.MustCompile(`\s+>.*$`).ReplaceAllString(strings.ReplaceAll(line, "…", "1"), "")
	for _, m := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(m, `'"`))
	}
	return words
}
