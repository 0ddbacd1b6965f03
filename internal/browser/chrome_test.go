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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("force-prefers-reduced-motion", true))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // events of a browser newer than the library
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		stop()
	})
	b := &tab{T: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			b.fault(ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.APITypeError || ev.Type == runtime.APITypeAssert {
				b.fault(fmt.Sprint("console.", ev.Type, " ", len(ev.Args), " arguments"))
			}
		case *log.EventEntryAdded:
			if ev.Entry.Level == log.LevelError {
				b.fault(ev.Entry.Text + " " + ev.Entry.URL)
			}
		}
	})
	b.do(log.Enable(), runtime.Enable())
	return b
}

func (b *tab) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expect == "" || !strings.Contains(text, b.expect) {
		b.faults = append(b.faults, text)
	}
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

func (b *tab) do(all ...chromedp.Action) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, all...); err != nil {
		b.Fatal(err)
	}
}

// open goes to a page and waits until it is whole.
func (b *tab) open(url string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Navigate(url)); err != nil {
		b.Fatalf("%s: %v", url, err)
	}
}

// says evaluates a script's value.
func says[T any](b *tab, script string) (v T) {
	b.Helper()
	b.do(chromedp.Evaluate(script, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// window sets how wide it is, and the theme that the person prefers.
func (b *tab) window(width int64, theme string) {
	b.Helper()
	height := int64(900)
	b.do(emulation.SetDeviceMetricsOverride(width, height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}))
}

// screenshots are kept where git does not look.
func (b *tab) screenshot(name string) {
	b.Helper()
	dir := filepath.Join("..", "..", "build", "screenshots")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	var png []byte
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.Fatal(err)
	}
}
