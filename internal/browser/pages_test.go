package browser

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	widths = []int64{390, 1024, 1600}
	themes = []string{"light", "dark"}
)

// TestPagesInABrowser is one test, for one demo and one browser.
func TestPagesInABrowser(t *testing.T) {
	d := startDemo(t)
	b := newTab(t)
	t.Run("actions work by click", func(t *testing.T) { b.T = t; actions(b, d) })
	t.Run("a page out of sight listens to nothing", func(t *testing.T) { b.T = t; listening(b, d) })
	t.Run("what is wrong is found", func(t *testing.T) { b.T = t; instruments(b) })
	pages := everyPage(t, d)
	t.Run("every page, both themes, three widths", func(t *testing.T) {
		b.T = t
		for _, p := range pages {
			look(b, d.root, p)
		}
	})
	t.Run("without scripts the same facts", func(t *testing.T) {
		b.T = t
		for _, p := range pages {
			sameFacts(b, d.root+p.path)
		}
	})
	t.Run("login and monitor under a base path", func(t *testing.T) { b.T = t; underBasePath(b, d) })
}

// instruments looks at a page that has every fault that is looked for.
func instruments(b *tab) {
	b.Helper()
	axe, err := axeSource()
	if err != nil {
		b.Fatal(err)
	}
	b.window(390, "light")
	b.open("data:text/html,<html><title>x</title><body><p style='color:%23aaa;background:%23fff'>pale</p><div style='width:600px'>wide</div><img src='data:image/gif;base64,'><script>console.error('said');nothing()</script>")
	says[any](b, axe+"; true")
	if len(says[[]string](b, tooWide)) == 0 {
		b.Error("a page that is too wide is not found")
	}
	found := map[string]bool{}
	for _, f := range says[[]finding](b, axeRun) {
		found[f.ID] = true
	}
	if !found["color-contrast"] || !found["image-alt"] || !found["html-has-lang"] {
		b.Errorf("axe finds %v alone", found)
	}
	until(b.T, "the console is heard", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		all := strings.Join(b.faults, " ")
		return strings.Contains(all, "said") && strings.Contains(all, "nothing is not defined")
	})
	b.mu.Lock()
	b.faults = nil
	b.mu.Unlock()
}

// shown is one page: a name for its pictures, and its path.
type shown struct {
	name, path string
	status     int
}

// everyPage is one page of each kind, with data, and the page of an error.
// What the navigation names and is not here fails the test.
func everyPage(t *testing.T, d demo) []shown {
	t.Helper()
	all := []shown{
		{"overview", "/", 200}, {"feeds", "/feeds", 200}, {"feed", "/feeds/trending-bd", 200}, {"quotas", "/quotas", 200}, {"quota", "/quotas/youtube", 200},
		{"pools", "/pools", 200}, {"pool", "/pools/local", 200}, {"schedules", "/schedules", 200}, {"jobs", "/jobs", 200},
		{"job-done", "/jobs/" + d.job(t, "done"), 200}, {"job-cancelled", "/jobs/" + d.job(t, "cancelled"), 200}, {"audit", "/audit", 200},
		{"error", "/nowhere", 404},
	}
	for _, p := range all {
		resp, err := http.Get(d.root + p.path) //nolint:noctx // the test's own end is enough
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != p.status {
			t.Errorf("%s: status %d, want %d", p.path, resp.StatusCode, p.status)
		}
	}
	return all
}

// look opens a page once and looks at it in every theme and width.
func look(b *tab, root string, p shown) {
	b.Helper()
	axe, err := axeSource()
	if err != nil {
		b.Fatal(err)
	}
	b.expecting("")
	if p.status != 200 {
		b.expecting(fmt.Sprint("status of ", p.status))
	}
	b.open(root + p.path)
	says[any](b, axe+"; true")
	ground := map[string]bool{}
	for _, theme := range themes {
		for _, width := range widths {
			at := fmt.Sprintf("%s, %s, %d wide", p.name, theme, width)
			b.window(width, theme)
			if over := says[[]string](b, tooWide); len(over) > 0 {
				b.Errorf("%s: it scrolls to the side, because of %s", at, strings.Join(over, ", "))
			}
			for _, f := range says[[]finding](b, axeRun) {
				b.Errorf("%s: %s", at, f)
			}
			b.screenshot(fmt.Sprintf("%s-%s-%d", p.name, theme, width))
		}
		ground[says[string](b, `getComputedStyle(document.body).backgroundColor + getComputedStyle(document.documentElement).backgroundColor`)] = true
	}
	if len(ground) != len(themes) {
		b.Errorf("%s: both themes have the same ground", p.name)
	}
	for _, link := range says[[]string](b, `[...document.querySelectorAll("header nav a")].map((a) => a.pathname)`) {
		if !slices.Contains([]string{"/", "/feeds", "/quotas", "/pools", "/schedules", "/jobs", "/audit", "/monitor/", "/metrics", "/v1/feeds"}, link) {
			b.Errorf("%s: the navigation leads to %s, which no test looks at", p.name, link)
		}
	}
	b.quiet(p.name)
}

// tooWide names what reaches beyond the window, when the page scrolls.
const tooWide = `(() => {
  const wide = document.documentElement.clientWidth;
  if (Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) <= wide) return [];
  return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > wide + 1)
    .slice(0, 5).map((e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + "." + e.className);
})()`

// facts are the texts of a page that say something: what is named, and what is
// said of it. Digits and what they count move between two looks.
const facts = `[...document.querySelectorAll("h1, h2, h3, th, td, dt, dd, caption, summary, nav a, .note, .empty, .troubles li, li h3")]
  .map((e) => e.tagName + " " + e.textContent)`

var (
	numbers = regexp.MustCompile(`[0-9][0-9.,:TZ-]*\s*(ms|s|min|m|h|d|seconds?|minutes?|hours?)?\b`)
	blanks  = regexp.MustCompile(`\s+`)
	moving  = regexp.MustCompile(`(?i)\b(in|ago|now|just now|fresh|stale|updating|running|pending|snoozed|scheduled|done|next|soon|due)\b`)
)

// sameFacts opens a page with scripts and without, until both say the same: the
// world goes on between two looks, so more than one may be needed.
func sameFacts(b *tab, url string) {
	b.Helper()
	b.expecting("status of 404")
	var missing []string
	for try := 0; try < 6; try++ {
		b.scripts(true)
		b.open(url)
		with := factsOf(b)
		if !says[bool](b, `document.getElementById("pause") === null || !document.getElementById("pause").hidden`) {
			b.Errorf("%s: with scripts, there is no way to hold it still", url)
		}
		b.scripts(false)
		b.open(url)
		without := factsOf(b)
		b.scripts(true)
		if len(without) == 0 {
			b.Fatalf("%s: nothing is said without scripts", url)
		}
		missing = differing(with, without)
		if len(missing) == 0 {
			break
		}
	}
	if len(missing) > 0 {
		b.Errorf("%s: said with scripts or without them, but not both:\n\t%s", url, strings.Join(missing[:min(len(missing), 8)], "\n\t"))
	}
	b.quiet(url)
}

func factsOf(b *tab) []string {
	b.Helper()
	var out []string
	for _, f := range says[[]string](b, facts) {
		f = moving.ReplaceAllString(numbers.ReplaceAllString(f, "#"), "~")
		out = append(out, strings.TrimSpace(blanks.ReplaceAllString(f, " ")))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func differing(a, b []string) (out []string) {
	for _, f := range a {
		if !slices.Contains(b, f) {
			out = append(out, "with: "+f)
		}
	}
	for _, f := range b {
		if !slices.Contains(a, f) {
			out = append(out, "without: "+f)
		}
	}
	return out
}

// underBasePath starts a second web server on the demo's data, with tokens and a
// base path, and logs in by the form.
func underBasePath(b *tab, d demo) {
	b.Helper()
	text, err := os.ReadFile(d.config)
	if err != nil {
		b.Fatal(err)
	}
	const token = "browser-token-0123456789"
	web := regexp.MustCompile(`(?m)^  listen: .*$`).ReplaceAllString(string(text),
		"  listen: 127.0.0.1:0\n  base_path: /fw\n  tokens: [{name: looker, token: "+token+", role: read}, {name: boss, token: "+token+"-boss, role: admin}]")
	path := filepath.Join(filepath.Dir(d.config), "second.yaml")
	if err := os.WriteFile(path, []byte(web), 0o600); err != nil {
		b.Fatal(err)
	}
	root := process(b.T, `(http://127\.0\.0\.1:\d+/fw)/`, "--config", path, "web")[1]

	look(b, root, shown{"login", "/login", 200})
	b.expecting("status of 401")
	b.open(root + "/")
	b.do(chromedp.SendKeys[chromedp.CSS]("#token", "wrong-wrong-wrong-wrong\r"), chromedp.WaitVisible[chromedp.CSS]("#wrong"))
	b.do(chromedp.SendKeys[chromedp.CSS]("#token", token+"\r"), chromedp.WaitVisible[chromedp.CSS](`form[action="/fw/logout"]`))
	if n := says[int](b, `document.querySelectorAll("form[action*='/act/']").length`); n != 0 {
		b.Errorf("who may only look is shown %d forms that act", n)
	}
	b.quiet("login")
	b.expecting("")
	b.open(root + "/monitor/")
	until(b.T, "asynqmon shows its queues", func() bool {
		return strings.Contains(says[string](b, `document.body.innerText`), "scheduled")
	})
	b.screenshot("monitor")
	b.quiet("monitor")
	b.open(root + "/")
	b.do(chromedp.Click[chromedp.CSS](`form[action="/fw/logout"] button`), chromedp.WaitVisible[chromedp.CSS]("#token"))
	b.quiet("logout")
}
