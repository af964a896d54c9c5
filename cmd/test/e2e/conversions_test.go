// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/serving"
)

// fieldOf is what each version calls the one field that there is.
var fieldOf = map[string]string{"v1": "colour", "v2": "color"}

// renameField gives the field the name that it has in the version.
func renameField(_ context.Context, object *unstructured.Unstructured, version string) error {
	for other, field := range fieldOf {
		if value, ok := object.Object[field]; ok && other != version {
			delete(object.Object, field)
			object.Object[fieldOf[version]] = value
		}
	}
	return nil
}

func renaming(kind schema.GroupKind) conversion.Converter {
	return conversion.Unstructured(kind, []string{"v1", "v2"}, renameField)
}

// withLabels renames the field and says in labels and annotations what it did.
func withLabels(ctx context.Context, object *unstructured.Unstructured, version string) error {
	object.SetLabels(map[string]string{"as": version})
	object.SetAnnotations(nil)
	return renameField(ctx, object, version)
}

func example(kind schema.GroupKind, version, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.Group + "/" + version, "kind": kind.Kind, fieldOf[version]: value,
		"metadata": map[string]any{"name": name, "annotations": map[string]any{"note": "a"}},
	}}
}

// define makes a CustomResourceDefinition that has the server convert its objects, and
// waits until they are served. It goes, with all of them, before the server does.
func (w *world) define(t *testing.T, server *webhookServer, converter conversion.Converter, reviews ...string) {
	t.Helper()
	config := registration.Config{Name: "e2e", Endpoint: registration.Endpoint{URL: server.url}}
	stanza, err := registration.ConversionManifest(config, registration.Conversion{
		CRD: converter.CRD(), Path: wire.ConversionPath, ReviewVersions: reviews,
	}, server.caBundle)
	if err != nil {
		t.Fatal(err)
	}
	kind := converter.Kind()
	plural := strings.TrimSuffix(converter.CRD(), "."+kind.Group)
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: converter.CRD()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped, Conversion: stanza,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind.Kind), Kind: kind.Kind, ListKind: kind.Kind + "List"},
		},
	}
	preserve := true
	for i, version := range []string{"v1", "v2"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &preserve,
			}},
		})
	}
	clients, err := apiextensionsclient.NewForConfig(w.config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := clients.CustomResourceDefinitions()
	if _, err := definitions.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := definitions.Delete(ctx, crd.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		eventuallyIn(ctx, t, "the definition to be gone", func(ctx context.Context) (bool, error) {
			_, err := definitions.Get(ctx, crd.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
	})
	eventually(t, "the kind to be served", func(ctx context.Context) (bool, error) {
		for version := range fieldOf {
			if _, err := w.objects.Resource(kind.WithVersion(version).GroupVersion().WithResource(plural)).List(ctx, metav1.ListOptions{}); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// testConversions takes objects through all that a client does, in both versions.
func testConversions(t *testing.T, w *world) {
	n := 0
	for _, reviews := range []string{"v1", "v1beta1"} {
		for _, tc := range []struct {
			name      string
			converter func(schema.GroupKind) conversion.Converter
			renames   bool
			labels    bool
		}{
			{"nothing but the version", func(kind schema.GroupKind) conversion.Converter { return conversion.APIVersionOnly(kind, "v1", "v2") }, false, false},
			{"a field", renaming, true, false},
			{"a field, labels and annotations", func(kind schema.GroupKind) conversion.Converter {
				return conversion.Unstructured(kind, []string{"v1", "v2"}, withLabels)
			}, true, true},
		} {
			n++
			kind := schema.GroupKind{Group: "shapes.example.com", Kind: fmt.Sprintf("Converted%d", n)}
			t.Run(reviews+", "+tc.name, func(t *testing.T) {
				t.Parallel() // definitions take seconds to come and go
				v := &converted{kind: kind, renames: tc.renames, labels: tc.labels}
				v.live(t, w, tc.converter(kind), reviews)
			})
		}
	}
}

// converted is a kind of which something changes between versions.
type converted struct {
	kind            schema.GroupKind
	renames, labels bool
	clients         map[string]dynamic.ResourceInterface // by version
}

// connect serves the converter and makes clients of each version. It returns the requests
// that arrive: what the caller showed of itself.
func (v *converted) connect(t *testing.T, w *world, converter conversion.Converter, reviews string) *journal[string] {
	t.Helper()
	app, err := sallyport.New("converters", sallyport.WithConverters(converter))
	if err != nil {
		t.Fatal(err)
	}
	arrived := &journal[string]{}
	server := w.start(t, nil, app, serving.DefaultOptions(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			arrived.note(r.URL.Path+"?"+r.URL.RawQuery, shown(r))
			next.ServeHTTP(rw, r)
		})
	})
	w.define(t, server, converter, reviews)
	namespace := w.namespace(t, strings.ToLower(v.kind.Kind))
	v.clients = map[string]dynamic.ResourceInterface{}
	for version := range fieldOf {
		v.clients[version] = w.objects.Resource(v.kind.WithVersion(version).GroupVersion().WithResource(strings.ToLower(v.kind.Kind) + "s")).Namespace(namespace)
	}
	return arrived
}

// check looks at an object as a client got it in a version. It was written in another, or
// in the same.
func (v *converted) check(t *testing.T, what string, object *unstructured.Unstructured, version, written, value string) {
	t.Helper()
	field := fieldOf[written]
	if v.renames {
		field = fieldOf[version]
	}
	if got := object.Object[field]; got != value {
		t.Errorf("%s in %s of what was written in %s: %s is %v, want %q in %v", what, version, written, field, got, value, object.Object)
	}
	if object.GetAPIVersion() != v.kind.Group+"/"+version || object.GetKind() != v.kind.Kind || object.GetUID() == "" || object.GetCreationTimestamp() == (metav1.Time{}) {
		t.Errorf("%s in %s: it is %v", what, version, object.Object)
	}
	if v.labels && version != "v1" && (object.GetLabels()["as"] != version || len(object.GetAnnotations()) != 0) {
		t.Errorf("%s in %s: labels %v, annotations %v", what, version, object.GetLabels(), object.GetAnnotations())
	}
	if !v.labels && object.GetAnnotations()["note"] != "a" {
		t.Errorf("%s in %s: annotations %v", what, version, object.GetAnnotations())
	}
}

func (v *converted) live(t *testing.T, w *world, converter conversion.Converter, reviews string) {
	arrived := v.connect(t, w, converter, reviews)
	ctx := t.Context()
	must := func(object *unstructured.Unstructured, err error) *unstructured.Unstructured {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
	for version, client := range v.clients {
		v.check(t, "create", must(client.Create(ctx, example(v.kind, version, "written-in-"+version, "red"), metav1.CreateOptions{})), version, version, "red")
	}
	for written := range v.clients {
		for version, client := range v.clients {
			v.check(t, "get", must(client.Get(ctx, "written-in-"+written, metav1.GetOptions{})), version, written, "red")
		}
	}
	for version, client := range v.clients {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != len(v.clients) {
			t.Errorf("the list in %s has %d items", version, len(list.Items))
		}
		for _, item := range list.Items {
			v.check(t, "list", &item, version, strings.TrimPrefix(item.GetName(), "written-in-"), "red")
		}
	}

	// Changes in the version that is not stored, seen by a watch in each.
	one := must(v.clients["v2"].Get(ctx, "written-in-v2", metav1.GetOptions{}))
	watches := map[string]watch.Interface{}
	for version, client := range v.clients {
		events, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: one.GetResourceVersion(), FieldSelector: "metadata.name=written-in-v2"})
		if err != nil {
			t.Fatal(err)
		}
		defer events.Stop()
		watches[version] = events
	}
	one.Object[fieldOf["v2"]] = "green"
	v.check(t, "update", must(v.clients["v2"].Update(ctx, one, metav1.UpdateOptions{})), "v2", "v2", "green")
	for version, events := range watches {
		select {
		case event := <-events.ResultChan():
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type != watch.Modified {
				t.Fatalf("the watch in %s shows %s %v", version, event.Type, event.Object)
			}
			v.check(t, "watch", object, version, "v2", "green")
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
	patch := []byte(`{"` + fieldOf["v2"] + `":"blue"}`)
	v.check(t, "patch", must(v.clients["v2"].Patch(ctx, "written-in-v2", types.MergePatchType, patch, metav1.PatchOptions{})), "v2", "v2", "blue")
	if v.renames {
		applied := example(v.kind, "v2", "written-in-v1", "grey")
		v.check(t, "apply", must(v.clients["v2"].Apply(ctx, "written-in-v1", applied, metav1.ApplyOptions{FieldManager: "e2e", Force: true})), "v2", "v2", "grey")
		v.check(t, "get", must(v.clients["v1"].Get(ctx, "written-in-v1", metav1.GetOptions{})), "v1", "v2", "grey")
	}
	for version, client := range v.clients {
		if err := client.Delete(ctx, "written-in-"+version, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete in %s: %v", version, err)
		}
	}
	calls := arrived.take()
	for call, callers := range calls {
		if call != wire.ConversionPath+"?timeout=30s" || strings.Join(callers, "") != "" {
			t.Errorf("%s was called by %q; the API server shows nothing of itself to converters", call, callers)
		}
	}
	if len(calls) == 0 {
		t.Error("nothing was converted")
	}
}

// misdeeds are what a converter of testBadConversions does to an object that names one, and
// what a client is told of it.
var misdeeds = map[string]struct {
	convert func(object *unstructured.Unstructured) error
	told    string
}{
	"error":             {func(*unstructured.Unstructured) error { return errors.New("there is no such colour") }, "there is no such colour"},
	"panic":             {func(object *unstructured.Unstructured) error { panic(object.Object["secret"]) }, "the converter panicked"},
	"another-name":      {func(object *unstructured.Unstructured) error { object.SetName("other"); return nil }, "changed metadata.name"},
	"another-namespace": {func(object *unstructured.Unstructured) error { object.SetNamespace("other"); return nil }, "changed metadata.namespace"},
	"another-uid":       {func(object *unstructured.Unstructured) error { object.SetUID("other"); return nil }, "changed metadata.uid"},
	"another-kind":      {func(object *unstructured.Unstructured) error { object.SetKind("Other"); return nil }, "changed kind"},
	"no-metadata":       {func(object *unstructured.Unstructured) error { delete(object.Object, "metadata"); return nil }, "lost metadata.name"},
	"labels-that-are-no-strings": {func(object *unstructured.Unstructured) error {
		return unstructured.SetNestedField(object.Object, int64(1), "metadata", "labels", "number")
	}, "metadata.labels is not a map of strings"},
}

// testBadConversions looks at what a client sees of a converter that does not do what it
// should. The objects are written in the stored version, so that they can be there.
func testBadConversions(t *testing.T, w *world) {
	const secret = "canary-of-the-object"
	for _, reviews := range []string{"v1", "v1beta1"} {
		t.Run(reviews, func(t *testing.T) {
			t.Parallel()
			v := &converted{kind: schema.GroupKind{Group: "shapes.example.com", Kind: "Broken" + reviews}}
			v.connect(t, w, conversion.Unstructured(v.kind, []string{"v1", "v2"}, func(ctx context.Context, object *unstructured.Unstructured, version string) error {
				if name, ok := object.Object["misdeed"].(string); ok {
					return misdeeds[name].convert(object)
				}
				return renameField(ctx, object, version)
			}), reviews)
			broken := func(version, name string) *unstructured.Unstructured {
				object := example(v.kind, version, name+"-"+version, "red")
				object.Object["misdeed"], object.Object["secret"] = name, secret
				return object
			}
			if _, err := v.clients["v2"].Create(t.Context(), example(v.kind, "v2", "sound", "red"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			for name, misdeed := range misdeeds {
				t.Run(name, func(t *testing.T) {
					if _, err := v.clients["v1"].Create(t.Context(), broken("v1", name), metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					_, errGet := v.clients["v2"].Get(t.Context(), name+"-v1", metav1.GetOptions{})
					_, errCreate := v.clients["v2"].Create(t.Context(), broken("v2", name), metav1.CreateOptions{})
					for what, err := range map[string]error{"get": errGet, "create": errCreate} {
						if err == nil || !strings.Contains(err.Error(), misdeed.told) || !strings.Contains(err.Error(), v.kind.Kind) {
							t.Errorf("%s: the client is told %v, want %q", what, err, misdeed.told)
						}
						if err != nil && strings.Contains(err.Error(), secret) {
							t.Errorf("%s tells a value: %v", what, err)
						}
					}
					if _, err := v.clients["v1"].Get(t.Context(), name+"-v1", metav1.GetOptions{}); err != nil {
						t.Errorf("the version that is stored cannot be read: %v", err)
					}
				})
			}
			v.check(t, "get", mustGet(t, v.clients["v2"], "sound"), "v2", "v2", "red")
			if _, err := v.clients["v2"].List(t.Context(), metav1.ListOptions{}); err == nil {
				t.Error("a list with objects that cannot be converted is not an error")
			}
		})
	}
}

// testUnknownKind has the API server ask for a kind that nobody converts there.
func testUnknownKind(t *testing.T, w *world) {
	for _, reviews := range []string{"v1", "v1beta1"} {
		t.Run(reviews, func(t *testing.T) {
			t.Parallel()
			kind := schema.GroupKind{Group: "shapes.example.com", Kind: "Unknown" + reviews}
			app, err := sallyport.New("converters", sallyport.WithConverters(renaming(schema.GroupKind{Group: kind.Group, Kind: "Known"})))
			if err != nil {
				t.Fatal(err)
			}
			w.define(t, w.start(t, nil, app, serving.DefaultOptions(), nil), renaming(kind), reviews)
			namespace := w.namespace(t, strings.ToLower(kind.Kind))
			objects := func(version string) dynamic.ResourceInterface {
				return w.objects.Resource(kind.WithVersion(version).GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")).Namespace(namespace)
			}
			if _, err := objects("v1").Create(t.Context(), example(kind, "v1", "one", "red"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err = objects("v2").Get(t.Context(), "one", metav1.GetOptions{})
			if err == nil || !strings.Contains(err.Error(), `there is no converter for kind "`+kind.Kind+`"`) {
				t.Errorf("the client is told %v", err)
			}
		})
	}
}

func mustGet(t *testing.T, client dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}
