// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/commands"
	v1 "github.com/sallyport-io/sallyport/examples/bookstore/api/v1"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

const (
	emma    = "9780141439587"
	ulysses = "9780141182803"
)

func application(t *testing.T) *sallyport.App {
	t.Helper()
	app, err := newApp()
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func book(name string, spec v1.BookSpec) *v1.Book {
	return &v1.Book{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "Book"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       spec,
	}
}

func TestWebhooks(t *testing.T) {
	app := application(t)
	ctx := sallyporttest.CacheContext(t, app, book("emma", v1.BookSpec{Title: "Emma", ISBN: emma}))
	complete := v1.BookSpec{Title: "Ulysses", ISBN: ulysses, Authors: []string{"James Joyce"},
		Price: &v1.Price{Cents: 1250, Currency: "GBP"}, Copies: new(int32(1000))}
	scale := func(replicas int32) sallyporttest.Review {
		scaled := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "emma"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		return sallyporttest.Update(scaled, scaled, sallyporttest.ForResource(v1.Resource), sallyporttest.ForSubresource("scale"))
	}
	for _, tc := range []struct {
		webhook, name string
		sallyporttest.Case
	}{
		{"default", "sets copies and currency, and removes hyphens from the ISBN", sallyporttest.Case{
			Review: sallyporttest.Create(book("ulysses", v1.BookSpec{ISBN: "978-0-14-118280-3", Price: &v1.Price{Cents: 1250}})),
			Want:   book("ulysses", v1.BookSpec{ISBN: ulysses, Price: &v1.Price{Cents: 1250, Currency: "EUR"}, Copies: new(int32(1))}),
		}},
		{"default", "leaves what is set", sallyporttest.Case{Review: sallyporttest.Create(book("ulysses", complete)), Unchanged: true}},
		{"validate", "admits a new ISBN", sallyporttest.Case{Review: sallyporttest.Create(book("ulysses", complete))}},
		{"validate", "leaves it to the API server that the object exists", sallyporttest.Case{
			Review: sallyporttest.Create(book("emma", v1.BookSpec{Title: "Emma", ISBN: emma})),
		}},
		{"validate", "denies the ISBN of another Book", sallyporttest.Case{
			Review: sallyporttest.Create(book("ulysses", v1.BookSpec{Title: "Ulysses", ISBN: emma})),
			Denied: "Book default/emma has this ISBN", Code: 422, Causes: []string{"spec.isbn"},
		}},
		{"validate", "reports all problems", sallyporttest.Case{
			Review: sallyporttest.Create(book("ulysses", v1.BookSpec{ISBN: "9780141182804", Price: &v1.Price{Cents: -1}, Copies: new(int32(1001))})),
			Denied: "name the book", Code: 422, Causes: []string{"spec.title", "spec.isbn", "spec.price.cents", "spec.copies"},
		}},
		{"validate", "denies an ISBN with a letter", sallyporttest.Case{
			Review: sallyporttest.Create(book("ulysses", v1.BookSpec{Title: "Ulysses", ISBN: "978014118280X"})),
			Denied: "must have 13 digits", Code: 422, Causes: []string{"spec.isbn"},
		}},
		{"validate", "denies an ISBN of 10 digits", sallyporttest.Case{
			Review: sallyporttest.Create(book("ulysses", v1.BookSpec{Title: "Ulysses", ISBN: "0141182806"})),
			Denied: "must have 13 digits", Code: 422, Causes: []string{"spec.isbn"},
		}},
		{"validate", "admits another title", sallyporttest.Case{
			Review: sallyporttest.Update(book("emma", v1.BookSpec{Title: "Ema", ISBN: emma}), book("emma", v1.BookSpec{Title: "Emma", ISBN: emma})),
		}},
		{"validate", "denies a change of the ISBN", sallyporttest.Case{
			Review: sallyporttest.Update(book("emma", v1.BookSpec{Title: "Emma", ISBN: emma}), book("emma", v1.BookSpec{Title: "Emma", ISBN: ulysses})),
			Denied: "is immutable", Code: 422, Causes: []string{"spec.isbn"},
		}},
		{"scale", "admits as many copies as fit", sallyporttest.Case{Review: scale(1000)}},
		{"scale", "denies more", sallyporttest.Case{Review: scale(1001), Denied: "must be from 0 to 1000", Code: 422, Causes: []string{"spec.replicas"}}},
		{"scale", "is not called for the Book", sallyporttest.Case{Review: sallyporttest.Create(book("ulysses", complete)), NotCalled: true}},
	} {
		t.Run(tc.webhook+" "+tc.name, func(t *testing.T) {
			webhooks := app.Webhooks()
			i := slices.IndexFunc(webhooks, func(w admission.Webhook) bool { return strings.HasPrefix(w.Name, tc.webhook+".") })
			tc.Context = ctx
			sallyporttest.RunWebhook(t, webhooks[i], tc.Case)
		})
	}
}

func TestManifestsAreComplete(t *testing.T) {
	cmd, out := application(t).Command(), &bytes.Buffer{}
	cmd.SetOut(out)
	cmd.SetArgs([]string{"manifests", "--service", "bookstore-system/bookstore", "--part", "namespace,crd,rbac,service,workload", "--image", "bookstore:dev"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: Namespace", "kind: CustomResourceDefinition", "kind: ClusterRole", "books/status", "kind: Service", "kind: Deployment"} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestManifestsHaveNoFindings(t *testing.T) {
	app := application(t)
	run := func(in io.Reader, args ...string) *bytes.Buffer {
		cmd, out := app.Command(), &bytes.Buffer{}
		commands.AddTo(cmd, app)
		cmd.SetIn(in)
		cmd.SetOut(out)
		cmd.SetArgs(args)
		if status := sallyport.Execute(cmd); status != 0 {
			t.Errorf("%v: exit status %d\n%s", args, status, out)
		}
		return out
	}
	run(run(nil, "manifests", "--service", "bookstore-system/bookstore", "--registration", "None", "--part", "configurations"), "lint", "-f", "-")
}
