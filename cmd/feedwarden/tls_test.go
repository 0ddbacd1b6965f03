package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A certificate that cannot be served is a fault of the config, to those who
// check it and to those who start with it.
func TestACertificateThatDoesNotFitIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "feedwarden.yaml")
	text := "redis: {url: embedded, data: data}\nweb:\n  listen: 127.0.0.1:0\n  tls: {cert: gone.pem, key: key.pem}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, places := range map[string][]string{
		"check": {path + ":4:8", "tls.cert", filepath.Join(dir, "gone.pem"), "no such file"},
		"web":   {"tls.cert", filepath.Join(dir, "gone.pem"), "no such file"},
	} {
		var out, errOut strings.Builder
		if code := run(t.Context(), []string{"--config", path, command}, strings.NewReader(""), &out, &errOut); code != exitUsage {
			t.Errorf("%s: exit %d, want %d", command, code, exitUsage)
		}
		for _, part := range places {
			if !strings.Contains(errOut.String(), part) {
				t.Errorf("%s: no %q in %q", command, part, errOut.String())
			}
		}
	}
}
