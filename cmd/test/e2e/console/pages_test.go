// SPDX-License-Identifier: Apache-2.0

package console

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// maxMemory is how much the console may have resident, in MiB.
const maxMemory = 150

var (
	screenshots = flag.String("screenshots", "", "folder for pictures of the pages: see `make screenshots`")
	widths      = flag.String("widths", "", "with -screenshots: take every page as a whole at these widths instead, such as 360,1280,1920")
)

// sitemap are the pages, and a text of each.
var sitemap = []struct {
	name, path, text string
	picture          int64 // its height in docs/console.md; 0 if it is not there
}{
	{"overview", "", "Is it safe to upgrade?", 850},
	{"namespaces", "poddefaults", "team-b", 0},
	{"poddefaults", "poddefaults?namespace=team-a", "gcp-credentials", 900},
	{"pod", "pod?namespace=team-a&type=pod&name=notebook-0", "gcp-credentials", 1100},
	{"pods", "pod?namespace=team-a", "notebook-0", 0},
	{"workload", "pod?namespace=team-a&type=deployment&name=web", "http-proxy", 0},
	{"try", "try?namespace=team-a&type=poddefault&name=http-proxy", "proxy-2.example.com", 900},
	{"who", "who?kind=Secret&text=gcp", "notebook-0", 760},
	{"rollouts", "rollouts", "PodDefault team-a/http-proxy", 0},
	{"rollout", "rollouts?namespace=team-a&type=poddefault&name=http-proxy", "~ env: changed HTTPS_PROXY", 1000},
	{"drift", "drift", "team-a/deployment/web", 760},
	{"exemptions", "exemptions", "the proxy breaks its certificates", 0},
	{"webhooks", "webhooks", "poddefault.sallyport.io", 900},
	{"latency", "latency", "poddefault.sallyport.io: calls by latency", 900},
	{"upgrade", "upgrade", "rollouts of PodDefaults", 0},
	{"search", "search?text=notebook", "team-b", 0},
	{"problem", "pod?namespace=team-a&type=pod&name=gone", "There is no such object", 0},
}

// TestPagesOnARealAPIServer tries all pages in one browser.
func TestPagesOnARealAPIServer(t *testing.T) {
	w := newWorld(t)
	w.story(t)
	b := newTab(t, w)
	if *screenshots != "" {
		b.takeScreenshots(t)
		return
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *tab)
	}{
		{"each question is answered within two clicks", testQuestions},
		{"each page is accessible in light and dark, on large and small screens", testEachPage},
		{"values are shown after a click", testValues},
		{"the keyboard suffices", testKeyboard},
		{"a change can be tried without scripts", testTry},
		{"tables are sorted and filtered without scripts", testTables},
		{"a key leads to the search", testSearch},
		{"a command is copied", testCopy},
		{"markup in objects is text", testMarkup},
		{"an open page follows the cluster", testLive},
		{"a browser shows each page of a big cluster at once", testWeight},
		{"an API server that goes away and returns", testOutage},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, b) })
	}
	if most := w.memory(t); most > maxMemory {
		t.Errorf("the console has had %d MiB of memory, of %d", most, maxMemory)
	}
}

// takeScreenshots takes a picture of each page in light and in dark.
func (b *tab) takeScreenshots(t *testing.T) {
	check(t, os.MkdirAll(*screenshots, 0o755)) // for everybody
	for _, page := range sitemap {
		if *widths != "" {
			for _, text := range strings.Split(*widths, ",") {
				width, err := strconv.ParseInt(text, 10, 64)
				check(t, err)
				b.screen(t, width, 900, "light")
				b.open(t, page.path)
				height := evaluate[int64](t, b, `document.documentElement.scrollHeight`)
				t.Logf("%s at %d: %d pixels high", page.name, width, height)
				b.screen(t, width, min(height, 6000), "light")
				b.screenshot(t, filepath.Join(*screenshots, page.name+"-"+text+".png"))
			}
			continue
		}
		for _, scheme := range []string{"light", "dark"} {
			if page.picture == 0 {
				continue
			}
			b.screen(t, 1280, page.picture, scheme)
			b.open(t, page.path)
			b.screenshot(t, filepath.Join(*screenshots, page.name+map[string]string{"light": "", "dark": "-dark"}[scheme]+".png"))
		}
	}
}

func testEachPage(t *testing.T, b *tab) {
	for _, page := range sitemap {
		t.Run(page.name, func(t *testing.T) {
			b.screen(t, 1280, 800, "light")
			b.open(t, page.path)
			b.has(t, page.text, "!<script>", "! style=")
			b.accessible(t)
			b.screen(t, 1280, 800, "dark")
			b.accessible(t)
			if high := evaluate[int](t, b, `document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth`); high > 0 {
				t.Errorf("the content is %d pixels wider than its place", high)
			}
			b.screen(t, 2560, 1440, "light")
			if wide := evaluate[int](t, b, `document.documentElement.scrollWidth`); wide > 2560 {
				t.Errorf("on a screen of 2560 pixels the page is %d wide", wide)
			}
			b.screen(t, 360, 740, "light")
			if wide := evaluate[int](t, b, `document.documentElement.scrollWidth`); wide > 360 {
				t.Errorf("on a screen of 360 pixels the page is %d wide", wide)
			}
			b.accessible(t)
		})
	}
	b.screen(t, 1280, 800, "light")
}

func testValues(t *testing.T, b *tab) {
	b.open(t, "pod?namespace=team-a&type=pod&name=notebook-0")
	b.has(t, "hidden ", "PodDefault team-a/gcp-credentials", "the API server or another webhook", "!"+secret)
	b.do(t, chromedp.Click(`//a[contains(., "Show the values")]`), chromedp.WaitVisible(`//a[contains(., "Hide values")]`))
	b.has(t, secret)
	b.do(t, chromedp.Click(`//a[contains(., "Hide values")]`), chromedp.WaitVisible(`//a[contains(., "Show the values")]`))
	b.has(t, "!"+secret)
}

func testKeyboard(t *testing.T, b *tab) {
	const focused = `document.activeElement.innerText`
	b.open(t, "pod?namespace=team-a")
	b.do(t, chromedp.KeyEvent(kb.Tab))
	if got := evaluate[string](t, b, focused); got != "Skip to the content" {
		t.Errorf("the first stop of the keyboard is %q", got)
	}
	b.do(t, chromedp.KeyEvent(kb.Enter))
	if got := evaluate[string](t, b, `document.activeElement.id`); got != "content" {
		t.Errorf("the link leads to %q", got)
	}
	reached := false
	for range 30 {
		b.do(t, chromedp.KeyEvent(kb.Tab))
		if reached = evaluate[string](t, b, focused) == "notebook-0"; reached {
			break
		}
	}
	if !reached {
		t.Fatal("the keyboard does not reach the pod")
	}
	if outline := evaluate[string](t, b, `getComputedStyle(document.activeElement).outlineStyle`); outline == "none" {
		t.Error("what the keyboard is at cannot be seen")
	}
	b.do(t, chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//h2[contains(., "Pod team-a/notebook-0")]`))
}

func testTry(t *testing.T, b *tab) {
	b.scripts(t, false)
	defer b.scripts(t, true)
	b.open(t, "try?namespace=team-a&type=poddefault&name=http-proxy")
	b.do(t, chromedp.Focus(chromedp.CSS("textarea")), chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(kb.ModifierCtrl)),
		chromedp.SendKeys(chromedp.CSS("textarea"), "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: mine, labels: {use-proxy: 'true'}}\nspec: {containers: [{name: c, image: x}]}\n"),
		chromedp.Click(`//button[contains(., "Try it")]`), chromedp.WaitVisible(`//h2[contains(., "Whose pods would change")]`))
	b.has(t, " workloads would change", "Pod mine", "PodDefault team-a/http-proxy", "kubectl apply --namespace team-a")

	b.open(t, "try?namespace=team-a")
	b.do(t, chromedp.SendKeys(chromedp.CSS("textarea"), "a: [\n"), chromedp.Click(`//button[contains(., "Try it")]`), chromedp.WaitVisible(chromedp.CSS("[role=alert]")))
	b.has(t, "This cannot be tried", "manifest:")
}

func testMarkup(t *testing.T, b *tab) {
	attack := credentials("team-b")
	attack.Name, attack.Spec.Desc = "markup", markup
	attack.Spec.Env[0].Value = markup
	attack.Spec.Annotations = map[string]string{"example.com/markup": markup}
	attacked := pod("team-b", "attacked", nil)
	attacked.Annotations = map[string]string{"example.com/markup": markup}
	attacked.Spec.Containers[0].Env[0].Value = markup
	b.create(t, attack, attacked)
	for _, path := range []string{
		"poddefaults?namespace=team-b", "pod?namespace=team-b&type=pod&name=attacked&values=show", "try?namespace=team-b&type=poddefault&name=markup", "who?kind=Secret&text=gcp",
	} {
		b.open(t, path)
		if found := evaluate[int](t, b, `document.querySelectorAll("img, script:not([src='live.js'])").length + (document.title === "attacked" ? 1 : 0)`); found > 0 {
			t.Errorf("%s: markup of an object is part of the page", path)
		}
	}
}

func testLive(t *testing.T, b *tab) {
	b.open(t, "poddefaults?namespace=team-b")
	evaluate[bool](t, b, `window.opened = true`)
	later := credentials("team-b")
	later.Name, later.Spec.Desc = "later", markup
	b.create(t, later)
	b.do(t, chromedp.WaitVisible(`//h2[contains(., "PodDefault later")]`))
	if !evaluate[bool](t, b, `window.opened === true`) {
		t.Error("the page was loaded again")
	}
	if found := evaluate[int](t, b, `document.querySelectorAll("img").length + (document.title === "attacked" ? 1 : 0)`); found > 0 {
		t.Error("markup of an object is part of the page")
	}
	b.accessible(t)

	b.do(t, chromedp.Focus(chromedp.CSS("main input[type=search]")))
	read := evaluate[string](t, b, `document.querySelector("footer time").textContent`)
	latest := credentials("team-b")
	latest.Name = "latest"
	b.create(t, latest)
	evaluate[bool](t, b, `new Promise((done) => new MutationObserver(() => setTimeout(() => done(true))).observe(document.querySelector("footer time"), {childList: true}))`)
	b.has(t, "!PodDefault latest", "!"+read+"</time>") // it was read again, while the user is in the form
	b.do(t, chromedp.Focus(chromedp.CSS("nav a")), chromedp.WaitVisible(`//h2[contains(., "PodDefault latest")]`))
}

func testOutage(t *testing.T, b *tab) {
	b.APIServer.Signal(syscall.SIGKILL)
	<-b.APIServer.Ended
	b.open(t, "poddefaults?namespace=team-a")
	b.has(t, "The API server does not answer")
	b.accessible(t)
	check(t, b.RestartAPIServer(t.Context(), syscall.SIGKILL))
	b.do(t, chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS("main")))
	b.has(t, "gcp-credentials", "!does not answer")
}
