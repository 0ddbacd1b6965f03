package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is the one browser's one tab, and what its console has said.
type tab struct {
	*testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
	expect string // part of a fault that is looked for, such as the 404 of an error's page
}

func newTab(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		stop()
	})
	b := &tab{T: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // starts the browser, which lives as long as this context
		t.Fatal(err)
	}
	hear(b, runtime.ExceptionThrown, func(ev runtime.EventExceptionThrown) string {
		text := ev.ExceptionDetails.Text
		if e := ev.ExceptionDetails.Exception; e != nil {
			text += " " + e.Description
		}
		return text
	})
	hear(b, runtime.ConsoleAPICalled, func(ev runtime.EventConsoleAPICalled) string {
		if ev.Type != runtime.ConsoleAPICalledTypeError && ev.Type != runtime.ConsoleAPICalledTypeAssert {
			return ""
		}
		text := "console." + string(ev.Type)
		for _, a := range ev.Args {
			text += fmt.Sprint(" ", a.Value, a.Description)
		}
		return text
	})
	hear(b, log.EntryAdded, func(ev log.EventEntryAdded) string {
		if ev.Entry.Level != log.EntryLevelError {
			return ""
		}
		return ev.Entry.Text + " " + ev.Entry.URL
	})
	b.do(call(log.Enable, cdp.Empty{}), call(runtime.Enable, cdp.Empty{}))
	return b
}

// hear notes what an event says against the page.
func hear[E any](b *tab, event cdp.Event[E], against func(E) string) {
	all := chromedp.Events(b.ctx, event)
	go func() {
		for ev, err := range all {
			if err != nil {
				return // the tab was closed
			}
			if text := against(ev); text != "" {
				b.fault(text)
			}
		}
	}()
}

func (b *tab) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expect == "" || !strings.Contains(text, b.expect) {
		b.faults = append(b.faults, text)
	}
}

// expecting says what the console may say from now on; "" is nothing.
func (b *tab) expecting(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expect = text
}

// quiet fails for what the console has said since the last time.
func (b *tab) quiet(where string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.Errorf("%s: the console says: %s", where, f)
	}
	b.faults = nil
}

// call is a command of the protocol whose answer says nothing.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

const patience = 30 * time.Second

func (b *tab) do(all ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	get(b, chromedp.Steps(all...))
}

func get[T any](b *tab, a chromedp.Action[T]) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// open goes to a page and waits until it is whole.
func (b *tab) open(url string) {
	b.Helper()
	b.do(chromedp.Navigate(url))
}

// leaving does what sends a form, and waits until the page that answers is
// whole. A page that is gone to before that would abort it, or be aborted.
func (b *tab) leaving(click func()) {
	b.Helper()
	says[bool](b, "window.left = false, true")
	click()
	until(b.T, "the next page is whole", func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		// Between two pages there is none to ask.
		whole, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`window.left === undefined && document.readyState === "complete"`))
		return err == nil && whole
	})
}

// says evaluates a script's value.
func says[T any](b *tab, script string) T {
	b.Helper()
	return get(b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// window sets how wide it is, and the theme that the person prefers.
func (b *tab) window(width int64, theme string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, 900), call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}))
}

// scripts switches those of the pages on or off, from the next page on.
func (b *tab) scripts(on bool) {
	b.Helper()
	b.do(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on}))
}

// screenshot keeps what is seen, where git does not look.
func (b *tab) screenshot(name string) {
	b.Helper()
	dir := filepath.Join("..", "..", "build", "screenshots")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	png := get(b, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		beyond, fast := true, true
		shot, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond, OptimizeForSpeed: &fast})
		return shot.Data, err
	})
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.Fatal(err)
	}
}
