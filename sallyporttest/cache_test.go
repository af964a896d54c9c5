// SPDX-License-Identifier: Apache-2.0

package sallyporttest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// teams caches ConfigMaps without their data, indexed by a team label.
func teams(t *testing.T) *sallyport.App {
	t.Helper()
	app, err := sallyport.New("teams",
		sallyport.WithWebhooks(admission.Validating("a.teams.example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("pods")),
			admission.Validate(func(context.Context, *corev1.Pod) error { return nil }))),
		sallyport.WithCache(&corev1.ConfigMap{},
			sallyport.Index("team", func(c *corev1.ConfigMap) []string { return strings.Fields(c.Annotations["teams"]) }),
			func(k *sallyport.CachedKind) {
				k.Transform = func(object any) (any, error) { object.(*corev1.ConfigMap).Data = nil; return object, nil }
			}),
		sallyport.WithCache(&corev1.Namespace{}))
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func configMap(namespace, name, teams string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{"teams": teams}},
		Data:       map[string]string{"large": "large"},
	}
}

func TestCacheContextReadsAsTheApplicationDoes(t *testing.T) {
	given := configMap("a", "one", "red blue")
	ctx := sallyporttest.CacheContext(t, teams(t), given, configMap("a", "two", "blue"), configMap("b", "three", "red"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	reader := sallyport.Cache(ctx)

	for _, c := range []struct {
		name    string
		options []client.ListOption
		want    string
	}{
		{"all", nil, "[one three two]"},
		{"of a team", []client.ListOption{client.MatchingFields{"team": "red"}}, "[one three]"},
		{"of a team in a namespace", []client.ListOption{client.MatchingFields{"team": "red"}, client.InNamespace("b")}, "[three]"},
		{"of no team", []client.ListOption{client.MatchingFields{"team": "green"}}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var list corev1.ConfigMapList
			if err := reader.List(ctx, &list, c.options...); err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			for _, item := range list.Items {
				names[item.Name] = true
				if item.Data != nil {
					t.Errorf("%s was not transformed", item.Name)
				}
			}
			var sorted []string
			for _, name := range []string{"one", "three", "two"} {
				if names[name] {
					sorted = append(sorted, name)
				}
			}
			if got := fmt.Sprint(sorted); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	if given.Data == nil {
		t.Error("the object of the test was transformed")
	}

	var got corev1.ConfigMap
	if err := reader.Get(ctx, client.ObjectKey{Namespace: "a", Name: "two"}, &got); err != nil || got.Annotations["teams"] != "blue" {
		t.Errorf("%v, %v", got.Annotations, err)
	}
	got.Annotations["teams"] = "green" // the reader owns its copy
	if err := reader.Get(ctx, client.ObjectKey{Namespace: "a", Name: "two"}, &got); err != nil || got.Annotations["teams"] != "blue" {
		t.Errorf("a change came through: %v, %v", got.Annotations, err)
	}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: "a", Name: "none"}, &got); !apierrors.IsNotFound(err) {
		t.Errorf("one that is not there: %v", err)
	}
	if err := reader.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Namespace{}); err != nil {
		t.Errorf("one without a namespace: %v", err)
	}
}

// Reading an undeclared kind is an error that says what to declare.
func TestACacheReadsOnlyWhatIsDeclared(t *testing.T) {
	ctx := sallyporttest.CacheContext(t, teams(t))
	reader := sallyport.Cache(ctx)
	loose := &unstructured.UnstructuredList{}
	loose.SetAPIVersion("v1")
	loose.SetKind("ConfigMapList")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"an object":      {reader.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Pod{}), "Pod of v1 is not cached: add sallyport.WithCache(&v1.Pod{}) to the application"},
		"a list":         {reader.List(ctx, &corev1.PodList{}), "Pod of v1 is not cached: add sallyport.WithCache(&v1.Pod{}) to the application"},
		"an index":       {reader.List(ctx, &corev1.ConfigMapList{}, client.MatchingFields{"size": "1"}), `the cache of *v1.ConfigMap has no index "size", but ["team"]: add sallyport.Index("size", …)`},
		"no index":       {reader.List(ctx, &corev1.NamespaceList{}, client.MatchingFields{"size": "1"}), `has no index "size", but none`},
		"another form":   {reader.List(ctx, loose), "ConfigMap of v1 is cached as *v1.ConfigMap and read as *unstructured.UnstructuredList, which would be a second copy"},
		"no cache":       {sallyport.Cache(t.Context()).Get(ctx, client.ObjectKey{}, &corev1.ConfigMap{}), "declare what handlers read with sallyport.WithCache"},
		"a late context": {sallyport.CacheReader().List(t.Context(), &corev1.ConfigMapList{}), "declare what handlers read with sallyport.WithCache"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}
