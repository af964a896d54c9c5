// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/test/lab"
)

// TestASourceListsAndWatchesOnARealAPIServer compares what a source lists with what client-go
// decodes.
func TestASourceListsAndWatchesOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	namespace := lab.Namespace(t, config)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := Client(config, corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	maps := clients.CoreV1().ConfigMaps(namespace)
	created, err := maps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "listed", Labels: map[string]string{"a": "1"}},
		Data:       map[string]string{"text": "ü \"quoted\"\n"}, BinaryData: map[string][]byte{"bytes": {0, 255}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	source := Source(client, "configmaps", &corev1.ConfigMap{})
	var listed *corev1.ConfigMap
	if err := Each(t.Context(), source, func(item *corev1.ConfigMap) {
		if item.Namespace == namespace && item.Name == created.Name {
			listed = item
		}
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created, listed); diff != "" {
		t.Errorf("(-created +listed):\n%s", diff)
	}

	store := recorder{make(chan []any, 1), make(chan any, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Reflector("test", Soon, inPages(source, func(c *corev1.ConfigMap) string { return c.Name }), &corev1.ConfigMap{}, store).RunWithContext(ctx)
	}()
	defer func() { cancel(); <-done }()
	<-store.replaced
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "later"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for came := range store.set {
		if later := came.(*corev1.ConfigMap); later.Namespace == namespace && later.Name == "later" {
			break
		}
	}

	absent := Source(client, "absents", &corev1.ConfigMap{})
	if _, err := cache.ToListerWatcherWithContext(absent).ListWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a resource that is not there: %v", err)
	}
	if _, err := cache.ToListerWatcherWithContext(source).ListWithContext(t.Context(), metav1.ListOptions{Continue: "none"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a token of no list: %v", err)
	}
}

func TestAListThatCannotBeDecodedIsDescribedWithoutItsContent(t *testing.T) {
	for raw, want := range map[string]string{
		`{"items":[{"data":{"a":"secret"}}`:         "the response ended early",
		`{"items":[{"data":{"a":"secret","a":1}}]}`: "no valid JSON",
		`{"items":[{"data":"secret"}]}`:             "expected an object, found a string",
		`["secret"]`:                                "expected a list",
		``:                                          "the response ended early",
		`{"items":[]} "secret"`:                     "behind the list",
		`secret`:                                    "no valid JSON",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(raw)) }))
		client, err := Client(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion, corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		err = Each(t.Context(), Source(client, "configmaps", &corev1.ConfigMap{}), func(*corev1.ConfigMap) {})
		if server.Close(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v, want one with %q", raw, err, want)
		}
	}
}

// TestAServerMayHaveALimitOfItsOwn has one that answers in two pages although none were asked for.
func TestAServerMayHaveALimitOfItsOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := `{"metadata":{"resourceVersion":"7","continue":"x"},"items":[{"metadata":{"name":"a"}}]}`
		if r.URL.Query().Get("continue") == "x" {
			answer = `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b"}}]}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	client, err := Client(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := Each(t.Context(), Source(client, "configmaps", &corev1.ConfigMap{}), func(c *corev1.ConfigMap) { names = append(names, c.Name) }); err != nil || strings.Join(names, ",") != "a,b" {
		t.Errorf("got %v, %v", names, err)
	}
}
