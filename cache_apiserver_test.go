// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// bookClient writes books, definitions and rights.
func bookClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := bookScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// settingsAlone returns settings for a server on this host, for all objects of an API server, and the address of its probes.
func settingsAlone(t *testing.T, app *sallyport.App, config *rest.Config, log io.Writer) (settings sallyport.Settings, probes string) {
	t.Helper()
	settings = app.DefaultSettings()
	settings.Client, settings.Logger = config, slog.New(slog.NewTextHandler(log, nil))
	probes = fmt.Sprintf("127.0.0.1:%d", freeport.For(t))
	settings.Serving.BindAddress, settings.Serving.SecurePort, settings.Serving.MetricsBindAddress = "127.0.0.1", int32(freeport.For(t)), probes
	settings.Serving.DrainMin, settings.Serving.DrainTimeout = 0, 0
	settings.Registration.URL = fmt.Sprintf("https://127.0.0.1:%d", settings.Serving.SecurePort)
	return settings, probes
}

// eventually retries until there is no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	if err := lab.Await(t.Context(), 4*time.Minute, "no error", func(context.Context) error { return try() }); err != nil {
		t.Fatal(err)
	}
}

// denied returns an error unless err is a denial for a book of that name.
func denied(err error, name string) error {
	if want := "book " + name + " has this ISBN already"; err == nil || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("got %w, want a denial with %q", err, want)
	}
	return nil
}

// Two replicas keep ISBNs unique across namespaces, once the watch has delivered the
// first book.
func TestUniquenessAcrossObjectsOnARealAPIServer(t *testing.T) {
	app, err := bookstore()
	if err != nil {
		t.Fatal(err)
	}
	cluster := sallyporttest.Start(t, app, sallyporttest.WithReplicas(2))
	create := func(b *Book, options ...client.CreateOption) error {
		return cluster.Client.Create(t.Context(), b, options...)
	}
	first := book("first", "1")
	if err := create(first); err != nil {
		t.Fatal(err)
	}
	for range 4 { // each replica
		eventually(t, func() error { return denied(create(book("second", "1"), client.DryRunAll), "first") })
	}
	other := book("second", "1")
	other.Namespace = "kube-node-lease"
	if err := create(other, client.DryRunAll); err != nil { // a namespace that is excluded
		t.Error(err)
	}
	// Updating a book is allowed, and its old ISBN becomes free when it gets another
	// one.
	first.Spec.ISBN = "2"
	if err := cluster.Client.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return create(book("second", "1"), client.DryRunAll) })
	eventually(t, func() error { return denied(create(book("second", "2"), client.DryRunAll), "first") })
	if err := cluster.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return create(book("second", "2"), client.DryRunAll) })
}

// Caches hold all books of a cluster, so that these servers run one after the other, on an API
// server of their own.
func TestCachesOnARealAPIServer(t *testing.T) {
	config := sallyporttest.StartAPIServer(t)
	for _, of := range []struct {
		name string
		test func(*testing.T, *rest.Config)
	}{
		{"of a kind that is missing at first", testMissingKind}, // which it installs
		{"with the rights that are printed", testRightsOfCache},
		{"of a server that is restarted", testRestart},
		{"for handlers and controllers", testOneCopy},
		{"with the index of a controller", testIndexOfAController},
		{"without what nobody asks for", testCachedFields},
	} {
		t.Run(of.name, func(t *testing.T) { of.test(t, config) })
		c := bookClient(t, config)
		if err := errors.Join(
			client.IgnoreNotFound(c.Delete(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "bookstore"}})),
			c.DeleteAllOf(t.Context(), &Book{}, client.InNamespace("default")),
		); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error { return c.Create(t.Context(), book("after", "1"), client.DryRunAll) }) // its webhook is forgotten
	}
}

// A restarted server answers nothing until it knows all books. They decide the first
// call after it is ready.
func testRestart(t *testing.T, config *rest.Config) {
	c := bookClient(t, config)
	if err := c.Create(t.Context(), book("first", "1")); err != nil {
		t.Fatal(err)
	}
	port := freeport.For(t)
	for i := range 3 {
		t.Run(fmt.Sprintf("start %d", i+1), func(t *testing.T) {
			app, err := bookstore()
			if err != nil {
				t.Fatal(err)
			}
			settings, probes := settingsAlone(t, app, config, io.Discard)
			settings.Certificate.AuthoritySecret, settings.LeaderElection.LeaderElect = "default/bookstore-authority", false
			settings.Serving.SecurePort, settings.Registration.URL = int32(port), fmt.Sprintf("https://127.0.0.1:%d", port)
			run(t, app, settings)
			awaitProbe(t, "http://"+probes+"/readyz", http.StatusOK, "ok")
			second := func() error {
				return denied(c.Create(t.Context(), book("second", "1"), client.DryRunAll), "first")
			}
			if i == 0 { // the API server does not know the webhook yet
				eventually(t, second)
			}
			if err := second(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Without the kind's definition the server reports that and is not ready. Once it is
// installed, the server becomes ready.
func testMissingKind(t *testing.T, config *rest.Config) {
	app, err := bookstore()
	if err != nil {
		t.Fatal(err)
	}
	log := &lab.Log{}
	settings, probes := settingsAlone(t, app, config, log)
	settings.LeaderElection.LeaderElect = false
	run(t, app, settings)

	const why = "the API server serves no such kind: install its CustomResourceDefinition"
	awaitProbe(t, "http://"+probes+"/readyz", http.StatusServiceUnavailable, "Book of books.example.com/v1: "+why)
	eventually(t, func() error {
		if !strings.Contains(log.String(), why) {
			return fmt.Errorf("the log does not say so:\n%s", log)
		}
		return nil
	})
	if err := bookClient(t, config).Create(t.Context(), bookCRD()); err != nil {
		t.Fatal(err)
	}
	awaitProbe(t, "http://"+probes+"/readyz", http.StatusOK, "ok")
}

// The rights printed by the command manifests suffice. Without those of the cache, the
// server reports what is missing and is not ready.
func testRightsOfCache(t *testing.T, config *rest.Config) {
	app, err := bookstore()
	if err != nil {
		t.Fatal(err)
	}
	c := bookClient(t, config)
	command := app.Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"manifests", "--part", "rbac", "--service", "default/bookstore"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var role *rbacv1.ClusterRole
	for document := range strings.SplitSeq(out.String(), "\n---\n") {
		object, err := decoded(c.Scheme(), document)
		if err != nil {
			t.Fatal(err)
		}
		if of, ok := object.(*rbacv1.ClusterRole); ok {
			role = of
		}
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	all := role.DeepCopy().Rules
	role.Rules = nil
	for _, rule := range all {
		if rule.APIGroups[0] != books.Group {
			role.Rules = append(role.Rules, rule)
		}
	}
	if len(role.Rules) != len(all)-1 {
		t.Fatalf("the rights are %+v", all)
	}
	if err := c.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}

	limited := rest.CopyConfig(config)
	limited.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:default:bookstore", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	log := &lab.Log{}
	settings, probes := settingsAlone(t, app, limited, log)
	settings.Certificate.AuthoritySecret, settings.LeaderElection.LeaderElect = "default/bookstore-authority", false
	run(t, app, settings)
	const why = "the API server does not let this server list and watch them: apply the rights that the command manifests prints"
	awaitProbe(t, "http://"+probes+"/readyz", http.StatusServiceUnavailable, why)
	const said = "the cache is not filled"
	if count := strings.Count(log.String(), said); count != 1 {
		t.Errorf("%q is %d times in the log:\n%s", said, count, log)
	}
	role.Rules = all
	if err := c.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	awaitProbe(t, "http://"+probes+"/readyz", http.StatusOK, "ok")
}

// decoded decodes an object from YAML.
func decoded(scheme *runtime.Scheme, document string) (client.Object, error) {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		return nil, err
	}
	object, err := scheme.New(head.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return object.(client.Object), yaml.Unmarshal([]byte(document), object)
}

// counted counts the watch requests for books.
type counted struct {
	http.RoundTripper
	watches *atomic.Int32
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/tomes") && r.URL.Query().Get("watch") != "" {
		c.watches.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// Handlers, components and controllers share one cache with its indexes. A process with
// only controllers has it too, and is not ready before it has synced.
func testOneCopy(t *testing.T, config *rest.Config) {
	c := bookClient(t, config)
	trimmed := book("first", "1")
	trimmed.Annotations = map[string]string{"large": "large"}
	if err := c.Create(t.Context(), trimmed); err != nil {
		t.Fatal(err)
	}
	for name, webhooks := range map[string][]string{"webhooks and controllers": {"*"}, "controllers alone": nil} {
		t.Run(name, func(t *testing.T) {
			var watches atomic.Int32
			counting := rest.CopyConfig(config)
			counting.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &watches} })
			reconciled := make(chan error, 1)
			var once sync.Once
			var env sallyport.Environment
			app, err := bookstore(
				sallyport.WithController("lender", func(m manager.Manager) error {
					return builder.ControllerManagedBy(m).Named(strings.ReplaceAll(name, " ", "-")).For(&Book{}).Complete(reconcile.Func(
						func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
							err := firstByISBN(ctx, m.GetClient())
							if err == nil {
								once.Do(func() { close(reconciled) })
							}
							return reconcile.Result{}, err
						}))
				}),
				sallyport.WithComponent(func(given sallyport.Environment) (sallyport.Component, error) {
					env = given
					return sallyport.Component{Name: "shelf"}, nil
				}))
			if err != nil {
				t.Fatal(err)
			}
			log := &lab.Log{}
			settings, probes := settingsAlone(t, app, counting, log)
			settings.Certificate.AuthoritySecret, settings.LeaderElection.LeaderElect = "default/bookstore-authority", false
			settings.Webhooks = webhooks
			run(t, app, settings)
			awaitProbe(t, "http://"+probes+"/readyz", http.StatusOK, "ok")
			select {
			case err := <-reconciled:
				if err != nil {
					t.Error(err)
				}
			case <-t.Context().Done():
				t.Fatalf("the controller does not find the book:\n%s", log)
			}
			if webhooks != nil {
				if err := firstByISBN(t.Context(), env.Cache); err != nil {
					t.Error(err)
				}
				eventually(t, func() error { return denied(c.Create(t.Context(), book("second", "1"), client.DryRunAll), "first") })
			}
			if n := watches.Load(); n != 1 {
				t.Errorf("books are watched %d times", n)
			}
		})
	}
}

func firstByISBN(ctx context.Context, reader client.Reader) error {
	var list BookList
	if err := reader.List(ctx, &list, client.MatchingFields{"isbn": "1"}); err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Name != "first" {
		return fmt.Errorf("the books are %+v", list.Items)
	}
	return nil
}

// keep runs an application until it is ready, and returns what its components get.
func keep(t *testing.T, config *rest.Config, options ...sallyport.Option) sallyport.Environment {
	t.Helper()
	read := make(chan sallyport.Environment, 1)
	app, err := sallyport.New("keeper", append(options, sallyport.WithComponent(func(env sallyport.Environment) (sallyport.Component, error) {
		read <- env
		return sallyport.Component{Name: "shelf"}, nil
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	settings, probes := settingsAlone(t, app, config, io.Discard)
	settings.LeaderElection.LeaderElect = false
	run(t, app, settings)
	awaitProbe(t, "http://"+probes+"/readyz", http.StatusOK, "ok")
	return <-read
}

// Trimmed fields and objects outside a selector are not cached, wherever that is said.
func testCachedFields(t *testing.T, config *rest.Config) {
	c := bookClient(t, config)
	elsewhere := book("other", "1")
	elsewhere.Namespace = "kube-public"
	if err := errors.Join(c.Create(t.Context(), book("first", "1")), c.Create(t.Context(), elsewhere)); err != nil {
		t.Fatal(err)
	}
	kept := cache.ByObject{Transform: cache.TransformStripManagedFields(), Namespaces: map[string]cache.Config{"default": {}}}
	for name, options := range map[string][]sallyport.Option{
		"WithCache": {sallyport.WithCache(&Book{}, byISBN(), func(k *sallyport.CachedKind) { k.ByObject = kept })},
		"ctrl.Options": {sallyport.WithCache(&Book{}, byISBN()), sallyport.WithManagerOptions(func(o *manager.Options) {
			o.Cache = cache.Options{ByObject: map[client.Object]cache.ByObject{&Book{}: kept}}
		})},
		"other options of the whole cache": {sallyport.WithCache(&Book{}, byISBN(), func(k *sallyport.CachedKind) { k.ByObject = kept }), sallyport.WithManagerOptions(func(o *manager.Options) {
			o.Cache = cache.Options{}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			env := keep(t, config, append(options, sallyport.WithScheme(bookScheme()))...)
			var list BookList
			if err := env.Cache.List(t.Context(), &list, client.MatchingFields{"isbn": "1"}); err != nil {
				t.Fatal(err)
			}
			if len(list.Items) != 1 || list.Items[0].Name != "first" || list.Items[0].ManagedFields != nil {
				t.Errorf("the books are %+v", list.Items)
			}
		})
	}
}

// An index that a controller adds to its manager needs no second declaration.
func testIndexOfAController(t *testing.T, config *rest.Config) {
	c := bookClient(t, config)
	if err := c.Create(t.Context(), book("first", "1")); err != nil {
		t.Fatal(err)
	}
	env := keep(t, config, sallyport.WithScheme(bookScheme()), sallyport.WithCache(&Book{}),
		sallyport.WithController("lender", func(m manager.Manager) error {
			return m.GetFieldIndexer().IndexField(t.Context(), &Book{}, "isbn", func(object client.Object) []string { return []string{object.(*Book).Spec.ISBN} })
		}))
	if err := firstByISBN(t.Context(), env.Cache); err != nil {
		t.Error(err)
	}
	if err := env.Cache.List(t.Context(), &BookList{}, client.MatchingFields{"title": "a"}); err == nil || !strings.Contains(err.Error(), `no index "title", but ["isbn"]`) {
		t.Errorf("got %v", err)
	}
}
