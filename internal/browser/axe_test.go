package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// The auditor of accessibility, and the hash of its one file.
const (
	axeVersion = "4.14.1"
	axeHash    = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// axeSource is axe-core's script: from the cache, or by npm.
var axeSource = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "feedwarden", "axe-core-"+axeVersion)
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	text, err := os.ReadFile(file)
	if err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		cmd := exec.Command("npm", "install", "--prefix", dir, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "axe-core@"+axeVersion)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm install axe-core: %w: %s", err, out)
		}
		if text, err = os.ReadFile(file); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != axeHash {
		return "", fmt.Errorf("%s is not axe-core %s: its SHA-256 is %s", file, axeVersion, got)
	}
	return string(text), nil
})

// finding is what axe says against a page.
type finding struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"`
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"`
}

func (f finding) String() string {
	return f.Impact + ": " + f.ID + ", " + f.Help + ":\n\t" + strings.Join(f.Nodes[:min(len(f.Nodes), 4)], "\n\t")
}

// axeRun gives the serious and critical findings of WCAG 2.2 A and AA, and of
// axe's own good practices.
const axeRun = `axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) => r.violations
  .filter((v) => v.impact === "serious" || v.impact === "critical")
  .map((v) => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.target.join(" ") + ": " + n.html.slice(0, 200) + " " + (n.any[0] ? n.any[0].message : ""))})))`
