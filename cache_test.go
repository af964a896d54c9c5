// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/serving"
)

func TestCachesAreChecked(t *testing.T) {
	withoutKind := &unstructured.Unstructured{}
	for name, c := range map[string]struct {
		option sallyport.Option
		want   string
	}{
		"no object":                         {sallyport.WithCache(nil), "the object is nil"},
		"a type that is in no scheme":       {sallyport.WithCache(&corev1.Pod{}), "cache of *v1.Pod: the type is not in the scheme"},
		"an unstructured one without kind":  {sallyport.WithCache(withoutKind), "has no kind: set its apiVersion and kind"},
		"two of a kind":                     {sallyport.WithCache(&Book{}), "two caches of Book of books.example.com/v1"},
		"two indexes of a name":             {sallyport.WithCache(&Book{}, byISBN(), byISBN()), `two indexes have the name "isbn"`},
		"an index of another type":          {sallyport.WithCache(&Book{}, sallyport.Index("a", func(*corev1.Pod) []string { return nil })), `cache of *sallyport_test.Book: index "a" is for *v1.Pod`},
		"an index without a name":           {sallyport.WithCache(&Book{}, sallyport.Index("", func(*Book) []string { return nil })), "an index has no name"},
		"an index without a function":       {sallyport.WithCache(&Book{}, sallyport.Index[*Book]("a", nil)), `index "a": the function that returns the values is missing`},
		"a kind in two forms has one cache": {sallyport.WithCache(bookAs(&metav1.PartialObjectMetadata{})), "two caches of Book of books.example.com/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bookstore(c.option)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func bookAs[T client.Object](object T) T {
	object.GetObjectKind().SetGroupVersionKind(books.WithKind("Book"))
	return object
}

// The content of the application is known without running it: no kubeconfig, no API
// server.
func TestDefinitionsAreKnownWithoutRunning(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	never := func(sallyport.Environment) (sallyport.Component, error) {
		return sallyport.Component{}, errors.New("it is built")
	}
	rule := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"shop.example.com"}, Resources: []string{resource}, Verbs: []string{"list"}}
	}
	app, err := sallyport.New("shop",
		sallyport.WithScheme(bookScheme()), sallyport.WithCRDs(bookCRD()),
		sallyport.WithComponent(never,
			sallyport.WithWebhooks(admission.Validating("unique.books.example.com", admission.Rules(books.WithResource("tomes")), unique(sallyport.Cache))),
			sallyport.WithCache(&Book{}, byISBN()), sallyport.WithPolicyRules(rule("tills"))),
		sallyport.WithController("lender", func(manager.Manager) error { return errors.New("it is set up") },
			sallyport.WithWebhooks(mutating("lend.shop.example.com")), sallyport.WithPolicyRules(rule("loans"))))
	if err != nil {
		t.Fatal(err)
	}
	if webhooks := app.Webhooks(); len(webhooks) != 2 || webhooks[0].Name != "unique.books.example.com" || webhooks[1].Name != "lend.shop.example.com" {
		t.Errorf("the webhooks are %+v", webhooks)
	}
	if caches := app.Caches(); len(caches) != 1 || caches[0].Indexes["isbn"] == nil {
		t.Errorf("the caches are %+v", caches)
	}
	command := app.Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(io.Discard)
	command.SetArgs([]string{"manifests", "--service", "shop/shop", "--part", "rbac,configurations"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- tills", "- loans", "- tomes", "name: unique.books.example.com", "name: lend.shop.example.com"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not printed:\n%s", want, &out)
		}
	}
}

// A component with declarations has no other webhooks, which would be unknown.
func TestAComponentDeclaresAllItsWebhooks(t *testing.T) {
	app, err := sallyport.New("shop", sallyport.WithComponent(func(sallyport.Environment) (sallyport.Component, error) {
		return sallyport.Component{Name: "till", Webhooks: []admission.Webhook{mutating("b.shop.example.com")}}, nil
	}, sallyport.WithWebhooks(mutating("a.shop.example.com"))))
	if err != nil {
		t.Fatal(err)
	}
	settings := app.DefaultSettings()
	settings.Client, settings.Registration.Mode, settings.Registration.URL = &rest.Config{Host: "https://192.0.2.1"}, registration.ModeNone, "https://192.0.2.2"
	settings.Certificate.Source, settings.Certificate.CertFile, settings.Certificate.PrivateKeyFile = certificate.SourceFiles, "tls.crt", "tls.key"
	if err := app.Run(t.Context(), settings); err == nil || !strings.Contains(err.Error(), "component till has webhooks that it does not declare") {
		t.Errorf("it runs: %v", err)
	}
}

func TestRightsOfACache(t *testing.T) {
	for name, c := range map[string]struct {
		options []func(*sallyport.CachedKind)
		want    string
		not     string
	}{
		"everywhere": {nil, "kind: ClusterRole\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: sallyport\n  name: bookstore\nrules:\n- apiGroups:\n  - books.example.com\n  resources:\n  - tomes\n  verbs:\n  - get\n  - list\n  - watch\n", "namespace: shelf"},
		"in some namespaces": {
			[]func(*sallyport.CachedKind){func(k *sallyport.CachedKind) { k.Namespaces = map[string]cache.Config{"shelf": {}} }},
			"kind: Role\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: sallyport\n  name: bookstore-webhooks\n  namespace: shelf\nrules:\n- apiGroups:\n  - books.example.com\n  resources:\n  - tomes\n  verbs:\n  - get\n  - list\n  - watch\n",
			"name: bookstore\nrules:\n- apiGroups:\n  - books.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			app, err := sallyport.New("bookstore", sallyport.WithWebhooks(mutating("a.books.example.com")),
				sallyport.WithScheme(bookScheme()), sallyport.WithCRDs(bookCRD()), sallyport.WithCache(&Book{}, c.options...))
			if err != nil {
				t.Fatal(err)
			}
			command := app.Command()
			var out bytes.Buffer
			command.SetOut(&out)
			command.SetArgs([]string{"manifests", "--service", "shop/bookstore", "--part", "rbac"})
			if err := command.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), c.not) {
				t.Errorf("want\n%s\nand not\n%s\nin\n%s", c.want, c.not, &out)
			}
		})
	}
}

// A handler runs no cache: whoever serves it gives requests a context that has one, or gets
// faults from webhooks that read it.
func TestAHandlerReadsTheCacheOfItsRequests(t *testing.T) {
	app, err := bookstore()
	if err != nil {
		t.Fatal(err)
	}
	options := serving.DefaultOptions()
	options.Logger = slog.New(slog.DiscardHandler)
	handler, err := app.Handler(options)
	if err != nil {
		t.Fatal(err)
	}
	object, err := json.Marshal(book("c", "1"))
	if err != nil {
		t.Fatal(err)
	}
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
		`"kind":{"group":"books.example.com","version":"v1","kind":"Book"},"object":` + string(object) + `}}`
	ask := func(ctx context.Context) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(ctx, http.MethodPost, app.Webhooks()[0].Path, strings.NewReader(review))
		req.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		return answer
	}
	if answer := ask(t.Context()); answer.Code != http.StatusInternalServerError || !strings.Contains(answer.Body.String(), "there is no cache") {
		t.Errorf("without a cache: %d %s", answer.Code, answer.Body)
	}
	if answer := ask(sallyporttest.CacheContext(t, app, book("a", "2"))); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"allowed":true`) {
		t.Errorf("with another ISBN in the cache: %d %s", answer.Code, answer.Body)
	}
	if answer := ask(sallyporttest.CacheContext(t, app, book("a", "1"))); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"allowed":false`) {
		t.Errorf("with the same ISBN in the cache: %d %s", answer.Code, answer.Body)
	}
}

// Handlers are tested without an API server, with the kinds and indexes of the
// application.
func TestHandlersReadACacheOfObjects(t *testing.T) {
	app, err := bookstore()
	if err != nil {
		t.Fatal(err)
	}
	ctx := sallyporttest.CacheContext(t, app, book("a", "1"), book("b", "2"))
	for name, reader := range map[string]func(context.Context) client.Reader{
		"of the context":    sallyport.Cache,
		"given when made":   func(context.Context) client.Reader { return sallyport.CacheReader() },
		"of the definition": nil,
	} {
		t.Run(name, func(t *testing.T) {
			handler := app.Webhooks()[0].Handler
			if reader != nil {
				handler = unique(reader)
			}
			for name, c := range map[string]sallyporttest.Case{
				"a new one":          {Review: review(book("c", "3"))},
				"the same book":      {Review: review(book("a", "1"))},
				"another one has it": {Review: review(book("c", "1")), Denied: "book a has this ISBN already"},
			} {
				t.Run(name, func(t *testing.T) {
					c.Context = ctx
					sallyporttest.Run(t, handler, c)
				})
			}
			t.Run("no cache", func(t *testing.T) {
				sallyporttest.Run(t, handler, sallyporttest.Case{Review: review(book("c", "3")), Fault: "declare what handlers read with sallyport.WithCache"})
			})
		})
	}
}

func review(b *Book) sallyporttest.Review {
	return sallyporttest.Create(b, sallyporttest.InScheme(bookScheme()), sallyporttest.ForResource(books.WithResource("tomes")))
}
