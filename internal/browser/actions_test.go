package browser

import (
	"strings"

	"github.com/chromedp/chromedp"
)

// actions does by clicks what a person would, and looks at the API for whether
// it has come about.
func actions(b *tab, d demo) {
	b.Helper()
	b.window(1600, "light")

	// A schedule is paused, and goes on.
	state := func() any { return named(b, d, "schedules", "trending-bd")["state"] }
	press(b, d.root+"/schedules", "#do-trending-bd > summary", `#do-trending-bd button[formaction$="/act/schedule/pause"]`)
	until(b.T, "the schedule is paused", func() bool { return state() == "paused" })
	press(b, d.root+"/schedules", "#do-trending-bd > summary", `#do-trending-bd button[formaction$="/act/schedule/resume"]`)
	until(b.T, "the schedule goes on", func() bool { return state() != "paused" })

	// An endpoint is put into quarantine, and let out.
	quarantined := func() bool {
		return strings.Contains(answer(b.T, d.root+"/v1/pools/local"), `"state":"quarantined"`)
	}
	press(b, d.root+"/pools/local", `details[id^="do-"] > summary`, `details[open] button[formaction$="/act/endpoint/quarantine"]`)
	until(b.T, "the endpoint is in quarantine", quarantined)
	press(b, d.root+"/pools/local", `details[id^="do-"] > summary`, `details[open] form[action$="/act/endpoint/restore"] button:not([formaction])`)
	until(b.T, "the endpoint is back", func() bool { return !quarantined() })

	// A quota is closed, and opened.
	blocked := func() bool { return named(b, d, "quotas", "youtube")["blocked_until"] != nil }
	press(b, d.root+"/quotas/youtube", "#block > summary", `#block form[action$="/act/quota/block"] button`)
	until(b.T, "the quota is closed", blocked)
	press(b, d.root+"/quotas/youtube", "", `form[action$="/act/quota/unblock"] button`)
	until(b.T, "the quota is open", func() bool { return !blocked() })

	// A job that sleeps is cancelled. It may wake before the click: then another.
	until(b.T, "a job is cancelled", func() bool {
		if d.job(b.T, "cancelled") != "" {
			return true
		}
		id := d.job(b.T, "snoozed")
		if id == "" {
			return false
		}
		b.open(d.root + "/jobs/" + id)
		const button = "document.querySelector('#cancel form button')"
		if !says[bool](b, button+" !== null") {
			return false
		}
		b.leaving(func() { says[bool](b, "("+button+".click(), true)") })
		return false
	})
	b.quiet("actions")
}

// listening looks at when a page listens: while somebody sees it.
func listening(b *tab, d demo) {
	b.Helper()
	b.open(d.root + "/")
	got := says[[]int](b, `(() => {
		let open = 0, closed = 0;
		const Real = window.EventSource, close = Real.prototype.close;
		Real.prototype.close = function () { closed++; return close.call(this); };
		window.EventSource = class extends Real { constructor(url) { super(url); open++; } };
		const seen = (yes) => {
			Object.defineProperty(document, "hidden", { value: !yes, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"));
			return [open, closed];
		};
		return [...seen(false), ...seen(true)];
	})()`)
	if len(got) != 4 || got[0] != 0 || got[1] != 1 || got[2] != 1 {
		b.Errorf("opened and closed when out of sight, and when seen again: %v, want 0 and 1, then 1", got)
	}
	b.quiet("listening")
}

// press opens a page, what hides a button, and clicks it.
func press(b *tab, url string, opens, button chromedp.CSS) {
	b.Helper()
	b.open(url)
	if opens != "" {
		b.do(chromedp.Click(opens))
	}
	b.do(chromedp.WaitVisible(button))
	b.leaving(func() { b.do(chromedp.Click(button)) })
}

// named is one of a list of the API, by its name.
func named(b *tab, d demo, what, name string) map[string]any {
	b.Helper()
	for _, one := range list(b.T, d.root, what) {
		if one["name"] == name {
			return one
		}
	}
	b.Fatalf("no %s among the %s", name, what)
	return nil
}
