// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe finds what keeps people from using a page (https://github.com/dequelabs/axe-core). It is
// version 4.11.0 of the npm registry, for tests only.
//
//go:embed testdata/axe-core/axe.min.js
var axe string

// chromium returns the path of the browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("SALLYPORT_BROWSER"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Fatal("there is no chromium to try the pages: install one (Debian: apt-get install chromium), or set SALLYPORT_BROWSER to its path")
	return ""
}

// A tab is an open page of the browser.
type tab struct {
	*world
	context.Context // chromedp keeps the browser in it

	mutex    sync.Mutex
	problems []string // what the browser reports: exceptions, violations of the policy
}

// newTab starts the browser.
func newTab(t *testing.T, w *world) *tab {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it does not start as root otherwise
	}
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := &tab{world: w, Context: ctx}
	check(t, chromedp.Listen(ctx, func(event any) {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, event.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if !strings.Contains(event.Entry.Text, "the server responded with a status of") { // which the tests expect
				b.problems = append(b.problems, event.Entry.Text)
			}
		}
	}))
	call(t, b, log.Enable, cdp.Empty{})
	call(t, b, runtime.Enable, cdp.Empty{})
	return b
}

// run runs an action, and fails if it is not done in time.
func run[T any](t *testing.T, b *tab, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.Context, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		text, _ := chromedp.Run(b.Context, chromedp.Evaluate[string](`document.body.innerText`)) // for the message
		t.Fatalf("%v, at\n%s", err, text)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.problems) > 0 {
		t.Errorf("the browser reports: %s", strings.Join(b.problems, "; "))
		b.problems = nil
	}
	return value
}

// do runs actions without a result.
func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	run(t, b, chromedp.Steps(actions...))
}

// call sends a command of the protocol.
func call[P, R any](t *testing.T, b *tab, command cdp.Command[P, R], params P) {
	t.Helper()
	_, err := chromedp.Call(b.Context, command, params)
	check(t, err)
}

// open opens a page of the console.
func (b *tab) open(t *testing.T, path string) {
	t.Helper()
	b.do(t, chromedp.Navigate(b.url+path), chromedp.WaitVisible(chromedp.CSS("main")))
}

// evaluate returns the value of an expression on the page.
func evaluate[T any](t *testing.T, b *tab, expression string) (value T) {
	t.Helper()
	return run(t, b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// has fails unless the page has all texts, and none of those after a "!".
func (b *tab) has(t *testing.T, texts ...string) {
	t.Helper()
	body := evaluate[string](t, b, `document.documentElement.outerHTML`)
	for _, text := range texts {
		if not, negated := strings.CutPrefix(text, "!"); negated && strings.Contains(body, not) {
			t.Errorf("%q is in\n%s", not, body)
		} else if !negated && !strings.Contains(body, text) {
			t.Errorf("no %q in\n%s", text, body)
		}
	}
}

// screen sets the size of the window and the color scheme.
func (b *tab) screen(t *testing.T, width, height int64, scheme string) {
	t.Helper()
	call(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// accessible fails if axe finds something on the page as it is.
func (b *tab) accessible(t *testing.T) {
	t.Helper()
	var found struct {
		Passes     int
		Violations []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
	}
	raw := evaluate[string](t, b, `(async () => { if (!window.axe) {`+axe+`}
		const result = await axe.run(document);
		return JSON.stringify({passes: result.passes.length, violations: result.violations.map(v => ({id: v.id, impact: v.impact, help: v.help,
			nodes: v.nodes.slice(0, 3).map(n => ({html: n.html, failureSummary: n.failureSummary}))}))});
	})()`)
	check(t, json.Unmarshal([]byte(raw), &found))
	if found.Passes < 10 {
		t.Errorf("axe has checked only %d rules", found.Passes)
	}
	for _, violation := range found.Violations {
		t.Errorf("axe: %s: %s (%s): %v", violation.Impact, violation.Help, violation.ID, violation.Nodes)
	}
}

// scripts switches scripts of pages off or on. It counts from the next page.
func (b *tab) scripts(t *testing.T, on bool) {
	t.Helper()
	call(t, b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
}

// screenshot writes a picture of the window.
func (b *tab) screenshot(t *testing.T, file string) {
	t.Helper()
	check(t, os.WriteFile(file, run(t, b, chromedp.CaptureScreenshot()), 0o644)) // for everybody
}
