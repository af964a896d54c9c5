// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/test/lab"
)

// A shape is what a request for admission looks like, the contents of its objects aside.
type shape struct {
	Operation                       admissionv1.Operation
	Kind, RequestKind               metav1.GroupVersionKind
	Resource, RequestResource       metav1.GroupVersionResource
	SubResource, RequestSubResource string
	Namespace, Name                 string
	Object, OldObject, Options      string // "apiVersion, kind", empty if there is none
	DryRun                          bool
	UID                             bool // there is one
}

// shapeOf is the shape of a request as a handler sees it.
func shapeOf(req *admissionv1.AdmissionRequest) shape {
	s := shape{
		Operation: req.Operation, Kind: req.Kind, Resource: req.Resource, SubResource: req.SubResource,
		RequestSubResource: req.RequestSubResource, Namespace: req.Namespace, Name: req.Name,
		Object: kindIn(req.Object.Raw), OldObject: kindIn(req.OldObject.Raw), Options: kindIn(req.Options.Raw),
		DryRun: req.DryRun == nil || *req.DryRun, UID: req.UID != "",
	}
	if req.RequestKind != nil {
		s.RequestKind = *req.RequestKind
	}
	if req.RequestResource != nil {
		s.RequestResource = *req.RequestResource
	}
	return s
}

func kindIn(raw []byte) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var object metav1.TypeMeta
	if err := json.Unmarshal(raw, &object); err != nil {
		return err.Error()
	}
	return describeKind(object.GroupVersionKind())
}

func describeKind(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + ", " + gvk.Kind
}

// optionsOf is the kind of the options of an operation.
var optionsOf = map[admissionv1.Operation]string{
	admissionv1.Create: "meta.k8s.io/v1, CreateOptions", admissionv1.Update: "meta.k8s.io/v1, UpdateOptions", admissionv1.Delete: "meta.k8s.io/v1, DeleteOptions",
}

// shapesUser is who makes the requests that are looked at.
const shapesUser = "shapes"

// listener is one of the webhooks that listen to every request: for each version of
// reviews, each type, and with rules that name everything or just one version of each
// resource.
type listener struct {
	version    string
	kind       admission.Type
	equivalent bool
}

func (l listener) name() string {
	match := "exact"
	if l.equivalent {
		match = "equivalent"
	}
	return fmt.Sprintf("%s.%s.%s.shapes.sallyport.io", match, strings.ToLower(string(l.kind)), l.version)
}

func listeners() []listener {
	var all []listener
	for _, version := range []string{"v1", "v1beta1"} {
		for _, kind := range []admission.Type{admission.TypeMutating, admission.TypeValidating} {
			for _, equivalent := range []bool{false, true} {
				all = append(all, listener{version, kind, equivalent})
			}
		}
	}
	return all
}

// webhook notes every request of the user and says so with a warning. A mutating one
// adds a field that no type has, so that the way of a patch is gone, and nothing changes.
func (l listener) webhook(heard *journal[shape], rules []admissionregistrationv1.RuleWithOperations) admission.Webhook {
	mark := admission.Mutate(func(_ context.Context, object *unstructured.Unstructured) error {
		object.Object["fieldOfNoType"] = l.name()
		return nil
	})
	w := admission.Webhook{
		Name: l.name(), Path: "/" + l.name(), Type: l.kind, Rules: rules, MatchPolicy: admissionregistrationv1.Exact,
		ReviewVersions: []string{l.version}, TimeoutSeconds: 30, AllowWedge: "the API server is the test's own",
		Handler: admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
			if req.UserInfo.Username != shapesUser {
				return admission.Allowed(), nil
			}
			heard.note(l.name(), shapeOf(req))
			response := admission.Allowed()
			if l.kind == admission.TypeMutating && req.Operation != admissionv1.Delete {
				var err error
				if response, err = mark.Handle(ctx, req); err != nil {
					return nil, err
				}
				if len(response.Patch) == 0 {
					return nil, fmt.Errorf("no patch")
				}
			}
			return response.Warn(l.name()), nil
		}),
	}
	if l.kind == admission.TypeMutating {
		w.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy
	}
	if l.equivalent {
		w.MatchPolicy = admissionregistrationv1.Equivalent
	}
	return w
}

// A servedResource is a resource or sub-resource in one version, as discovery has it.
type servedResource struct {
	schema.GroupVersionResource // of the sub-resource: pods/status
	kind                        schema.GroupVersionKind
	namespaced                  bool
	verbs                       metav1.Verbs
	heardAs                     *servedResource // with the webhooks of the policy Equivalent
	silent                      bool            // no webhook hears of it
}

func (r *servedResource) parent() string { name, _, _ := strings.Cut(r.Resource, "/"); return name }
func (r *servedResource) sub() string    { _, name, _ := strings.Cut(r.Resource, "/"); return name }

func (r *servedResource) has(verb string) bool { return slices.Contains(r.verbs, verb) }

// key names the resource in testdata, without its version.
func (r *servedResource) key() string {
	return strings.TrimSuffix(schema.GroupResource{Group: r.Group, Resource: r.parent()}.String(), ".")
}

// servedResources are all that the API server serves, sorted, each parent before its
// sub-resources. Those of one name are one resource in several groups or versions; the
// last of them is the one that the webhooks of the policy Equivalent have in their rules.
func servedResources(t *testing.T, client discovery.DiscoveryInterface) []*servedResource {
	t.Helper()
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var all []*servedResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			r := &servedResource{
				GroupVersionResource: gv.WithResource(resource.Name), kind: gv.WithKind(resource.Kind),
				namespaced: resource.Namespaced, verbs: resource.Verbs,
			}
			if resource.Version != "" { // that of a sub-resource differs from its parent's
				r.kind.Group, r.kind.Version = resource.Group, resource.Version
			}
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *servedResource) int {
		return strings.Compare(a.GroupVersion().String()+" "+a.Resource, b.GroupVersion().String()+" "+b.Resource)
	})
	last := map[string]*servedResource{}
	minor := lab.KubernetesMinor(t)
	for _, r := range all {
		r.silent = silent(r, minor)
		if !r.silent {
			last[r.Resource] = r
		}
	}
	for _, r := range all {
		r.heardAs = last[r.Resource]
	}
	return all
}

// silent tells whether no webhook hears of a resource: of the configurations of admission,
// so that they can always be repaired, and, since Kubernetes 1.37, of reviews that are not
// stored.
func silent(r *servedResource, minor int) bool {
	switch r.Group {
	case admissionregistrationv1.GroupName:
		return true
	case "authorization.k8s.io":
		return minor >= 37
	case "authentication.k8s.io":
		return minor >= 37 && (r.Resource == "tokenreviews" || r.Resource == "selfsubjectreviews")
	}
	return false
}

// testRequestShapes makes every request for admission that there can be, of every resource
// of the API server in every version, and compares what webhooks hear of it.
func testRequestShapes(t *testing.T, w *world) {
	served := servedResources(t, w.clients.Discovery())
	heard := &journal[shape]{}
	everything := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	}}
	var one []admissionregistrationv1.RuleWithOperations
	for _, r := range served {
		if r.heardAs == r {
			one = append(one, admissionregistrationv1.RuleWithOperations{
				Operations: everything[0].Operations,
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource}},
			})
		}
	}
	var webhooks []admission.Webhook
	for _, l := range listeners() {
		rules := everything
		if l.equivalent {
			rules = one
		}
		webhooks = append(webhooks, l.webhook(heard, rules))
	}
	w.serve(t, "shapes", webhooks, nil)
	namespace := w.namespace(t, "shapes")

	f := newRequests(t, w, namespace, heard)
	for _, r := range served {
		if r.sub() != "" {
			continue
		}
		t.Run(r.GroupVersion().String()+" "+r.Resource, func(t *testing.T) {
			f.t = t
			f.tour(r, served)
		})
	}
	f.t = t
	f.specials(served)
	if missing := f.uncovered(served); len(missing) > 0 {
		t.Errorf("no request was made for %s", strings.Join(missing, ", "))
	}
	t.Logf("%d requests of %d resources and sub-resources were heard by %d webhooks each", f.made, len(served), len(webhooks))
}

// expect compares what every webhook has heard with what it should have, after one
// request.
func (f *requests) expect(r *servedResource, want shape) {
	f.t.Helper()
	f.made++
	heard, warned := f.heard.take(), f.warnings.take()
	want.UID = true
	want.Options = optionsOf[want.Operation]
	want.RequestResource = metav1.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.parent()}
	want.SubResource, want.RequestSubResource = r.sub(), r.sub()
	want.RequestKind = metav1.GroupVersionKind(r.kind)
	for _, l := range listeners() {
		got := heard[l.name()]
		if r.silent {
			if len(got) != 0 || len(warned[l.name()]) != 0 {
				f.t.Errorf("%s: %s heard of it: %+v", want.Operation, l.name(), got)
			}
			continue
		}
		want := want
		if want.Name == madeUp {
			// Validating webhooks come after the name was made up.
			switch {
			case l.kind == admission.TypeMutating:
				want.Name = ""
			case len(got) > 0 && strings.HasPrefix(got[0].Name, madeUp):
				want.Name = got[0].Name
			}
		}
		as := r
		if l.equivalent {
			as = r.heardAs
		}
		want.Kind = metav1.GroupVersionKind(as.kind)
		want.Resource = metav1.GroupVersionResource{Group: as.Group, Version: as.Version, Resource: as.parent()}
		if want.Object != "" {
			want.Object = describeKind(as.kind)
		}
		if want.OldObject != "" {
			want.OldObject = describeKind(as.kind)
		}
		// When somebody else has changed the object meanwhile, the API server begins again.
		if diff := cmp.Diff([]shape{want}, slices.Compact(got)); diff != "" {
			f.t.Errorf("%s: what %s heard (-want +got):\n%s", want.Operation, l.name(), diff)
		}
		if len(warned[l.name()]) == 0 {
			f.t.Errorf("%s: the warning of %s has not arrived", want.Operation, l.name())
		}
	}
}

// madeUp stands in a wanted shape for a name that begins so, and goes on as the API server
// likes.
const madeUp = "made-up-"

// there stands in a wanted shape for an object that must be in the request.
const there = "there"

func (f *requests) path(r *servedResource, name string) string {
	path := "/apis/" + r.Group
	if r.Group == "" {
		path = "/api"
	}
	path += "/" + r.Version
	if r.namespaced {
		path += "/namespaces/" + f.namespace
	}
	path += "/" + r.parent()
	if name != "" {
		path += "/" + name
	}
	if sub := r.sub(); sub != "" {
		path += "/" + sub
	}
	return path
}

// send makes one request, and fails the test if the API server refuses it.
func (f *requests) send(method, path, contentType string, body []byte) []byte {
	f.t.Helper()
	code, answer := f.try(method, path, contentType, body)
	if code >= http.StatusBadRequest {
		f.t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}
