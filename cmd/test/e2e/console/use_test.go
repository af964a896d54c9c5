// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// questions are those of the first page, with the clicks that lead to the answer: links and buttons by their text.
var questions = []struct {
	question string
	clicks   []string
	answers  []string // texts
}{
	{"Why is my pod not injected?", []string{"Why is my pod not injected?", "web-7c9d-0"}, []string{"Pod team-a/web-7c9d-0", "not applied", "http-proxy"}},
	{"Who can read this Secret through pods?", []string{"Who can read this Secret through pods?"}, []string{"user-gcp-sa", "team-a/notebook-0", "team-b/notebook-0", "<svg"}},
	{"What would this change do, and to whom?", []string{"What would this change do, and to whom?", "Try it"}, []string{"Whose pods would change", "would change"}},
	{"Which webhook slows my cluster?", []string{"Which webhook slows my cluster?"}, []string{"poddefault.sallyport.io", "99 % within", "<svg"}},
	{"What is wrong, and what do I do?", nil, []string{"Checks of the installation", "not checked", "checks passed"}},
	{"What did last week's change do?", []string{"What did last week's change do?", "PodDefault team-a/http-proxy"}, []string{"~ env: changed HTTPS_PROXY", "Pods by revision", "At step 1 of 2", "kubectl sallyport rollout promote"}},
	{"Who is exempt, and until when?", []string{"Who is exempt, and until when?"}, []string{"Deployment/mirror", "the proxy breaks its certificates", "ends within 7 days"}},
	{"Is it safe to upgrade?", []string{"Is it safe to upgrade?"}, []string{"No: fix 1 of these checks first", "rollouts of PodDefaults", "1 in progress", "created without the webhook"}},
}

// maxClicks is how many clicks lead from the first page to an answer.
const maxClicks = 2

func testQuestions(t *testing.T, b *tab) {
	b.screen(t, 1280, 800, "light")
	for _, q := range questions {
		t.Run(q.question, func(t *testing.T) {
			if len(q.clicks) > maxClicks {
				t.Fatalf("it takes %d clicks", len(q.clicks))
			}
			b.open(t, "")
			b.has(t, q.question[:12])
			for i, text := range q.clicks {
				if text == "Try it" { // what people paste
					b.do(t, chromedp.SendKeys(chromedp.CSS("textarea"), "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: more, namespace: team-a}\nspec: {selector: {matchLabels: {use-proxy: 'true'}}, env: [{name: MORE, value: x}]}\n"))
				}
				b.click(t, text)
				t.Logf("click %d: %s", i+1, text)
			}
			b.has(t, q.answers...)
		})
	}
}

// click follows the link, or presses the button, in the content of the page that has a text, and waits for the next page.
func (b *tab) click(t *testing.T, text string) {
	t.Helper()
	evaluate[string](t, b, `document.body.dataset.left = "this page"`)
	b.do(t, chromedp.Click(`//main//*[self::a or self::button][normalize-space(.)="`+text+`"]`), chromedp.WaitVisible(chromedp.CSS("body:not([data-left]) footer")))
}

func testTables(t *testing.T, b *tab) {
	b.scripts(t, false)
	defer b.scripts(t, true)
	const first = `document.querySelector("tbody th").innerText.trim()`
	b.open(t, "pod?namespace=team-a&sort=pods-of-the-namespace-team-a.-pod")
	descending := evaluate[string](t, b, first)
	b.do(t, chromedp.Click(`//th/a[normalize-space(.)="Pod"]`), chromedp.WaitVisible(`//th[@aria-sort="ascending"]`))
	if ascending := evaluate[string](t, b, first); ascending >= descending {
		t.Errorf("%q comes first, and in the other order %q", ascending, descending)
	}
	b.do(t, chromedp.SendKeys(chromedp.CSS(".filter input[type=search]"), "notebook"), chromedp.Click(`//form[@class="filter"]/button`), chromedp.WaitVisible(`//a[.="Show all"]`))
	b.has(t, "notebook-0", "!web-7c9d-0")
	b.open(t, "webhooks?q=no-such-webhook")
	b.has(t, "the text of the filter", "!poddefault.sallyport.io</div>")
}

func testSearch(t *testing.T, b *tab) {
	b.open(t, "drift")
	b.do(t, chromedp.KeyEvent("/"), chromedp.KeyEvent("note"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`//h2[.="Objects"]`))
	b.has(t, "notebook-0", "team-b", "!web-7c9d-0</a>")
	b.click(t, "notebook-0")
	b.has(t, "As sent and as stored")
}

func testCopy(t *testing.T, b *tab) {
	b.open(t, "drift")
	b.do(t, chromedp.Click(`//button[@data-copy]`), chromedp.WaitVisible(`//button[.="Copied" or .="Selected"]`))
	b.scripts(t, false)
	defer b.scripts(t, true)
	b.open(t, "drift")
	if shown := evaluate[bool](t, b, `getComputedStyle(document.querySelector("[data-copy]")).display !== "none"`); shown {
		t.Error("there is a button that does nothing without scripts")
	}
}
