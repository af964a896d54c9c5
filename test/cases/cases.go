// SPDX-License-Identifier: Apache-2.0

// Package cases runs the cases of a ready-made webhook: one txtar archive of testdata each
// (golang.org/x/tools/txtar), whose files are
//
//	settings.yaml  the settings; without it they are the defaults
//	cluster.yaml   what the webhook knows of the cluster, if it reads from one
//	request.yaml   what else the request says: an AdmissionRequest in part
//	old.yaml       the object as it was: with it the request is an UPDATE
//	object.yaml    the object that comes in; the deleted one for DELETE
//	want.yaml      the object that must come out, or
//	want.txt       the message of the denial
//
// Lines of either that begin with "# warning: " are the warnings. Requests are replayed as
// the API server would have them, see package replay.
package cases

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
	"github.com/sallyport-io/sallyport/jsonpatch"
	"github.com/sallyport-io/sallyport/test/golden"
)

// Make makes the webhooks of a case. Settings and cluster are YAML, nil if the case has
// none.
type Make func(t testing.TB, settings, cluster []byte) []admission.Webhook

// A Case is one archive.
type Case struct {
	*golden.Archive
	Name string
}

// All are the cases of the package that is tested.
func All(t testing.TB) []*Case {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in testdata (%v)", err)
	}
	all := make([]*Case, len(paths))
	for i, path := range paths {
		all[i] = open(t, path)
	}
	return all
}

// Named is one of them.
func Named(t testing.TB, name string) *Case {
	t.Helper()
	return open(t, filepath.Join("testdata", name+".txtar"))
}

func open(t testing.TB, path string) *Case {
	t.Helper()
	return &Case{golden.Open(t, path), strings.TrimSuffix(filepath.Base(path), ".txtar")}
}

// Run runs every case. What is admitted is sent again: that must change nothing. The
// webhooks that others make must answer alike. With -update it writes what comes out.
func Run(t *testing.T, resource metav1.GroupVersionResource, webhooks Make, others ...Make) {
	t.Helper()
	for _, c := range All(t) {
		t.Run(strings.ReplaceAll(c.Name, "-", " "), func(t *testing.T) {
			out, denied := c.run(t, resource, webhooks)
			for _, other := range others {
				if got, _ := c.run(t, resource, other); got != out {
					t.Errorf("other webhooks answer\n%s\nand not\n%s", got, out)
				}
			}
			if denied {
				c.Equal(t, "want.txt", out, "want.yaml")
			} else {
				c.Equal(t, "want.yaml", out, "want.txt")
			}
		})
	}
}

// run tells what comes out: the object, or why it is denied.
func (c *Case) run(t *testing.T, resource metav1.GroupVersionResource, newWebhooks Make) (out string, isDenied bool) {
	t.Helper()
	req := c.Request(t, resource)
	webhooks := newWebhooks(t, c.File("settings.yaml"), c.File("cluster.yaml"))
	after, warnings, denied := Review(t, webhooks, req)
	for _, warning := range warnings {
		out += "# warning: " + warning + "\n"
	}
	if denied != nil {
		return out + denied.Message + "\n", true
	}
	text, err := yaml.JSONToYAML(after)
	if err != nil {
		t.Fatal(err)
	}
	again, want := req.DeepCopy(), after
	if req.Operation != admissionv1.Delete {
		want, err = replay.WithManagedFields(after, req.Object.Raw)
		if err != nil {
			t.Fatal(err)
		}
		again.Object.Raw = want
	}
	second, _, denied := Review(t, webhooks, again)
	if denied != nil || !bytes.Equal(second, want) {
		t.Errorf("the second pass is not empty: %+v\n%s", denied, second)
	}
	return out + string(text), false
}

// Namespace is that of requests about objects that name none.
const Namespace = "team-a"

// ofCluster are resources of cases that are in no namespace.
var ofCluster = map[string]bool{"namespaces": true, "persistentvolumes": true, "projectrequests": true}

// Request is the request that the case describes.
func (c *Case) Request(t testing.TB, resource metav1.GroupVersionResource) *admissionv1.AdmissionRequest {
	t.Helper()
	req := &admissionv1.AdmissionRequest{
		UID: "c8a5c4b2-0000-4000-8000-000000000001", Resource: resource, Operation: admissionv1.Create,
	}
	object := toJSON(t, c.File("object.yaml"))
	old := c.File("old.yaml")
	if old != nil {
		req.Operation = admissionv1.Update
	}
	if more := c.File("request.yaml"); more != nil {
		if err := yaml.UnmarshalStrict(more, req); err != nil {
			t.Fatalf("request.yaml: %v", err)
		}
	}
	var meta metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(object, &meta); err == nil {
		req.Kind = metav1.GroupVersionKind(meta.GroupVersionKind())
		req.Name, req.Namespace = meta.Name, meta.Namespace
	}
	inNamespace(req)
	replay.Complete(req)
	if req.Operation == admissionv1.Delete {
		req.OldObject = runtime.RawExtension{Raw: object}
		return req
	}
	req.Object = runtime.RawExtension{Raw: object}
	if old != nil {
		req.OldObject = runtime.RawExtension{Raw: toJSON(t, old)}
	}
	return req
}

// inNamespace puts a request into a namespace that says none: no rule for namespaced
// resources covers it otherwise.
func inNamespace(req *admissionv1.AdmissionRequest) {
	if req.Namespace == "" && !ofCluster[req.Resource.Resource] {
		req.Namespace = Namespace
	}
}

// Review replays a request. It returns the object as it is then, or the denial.
func Review(t testing.TB, webhooks []admission.Webhook, req *admissionv1.AdmissionRequest) (after []byte, warnings []string, denied *metav1.Status) {
	t.Helper()
	req = req.DeepCopy()
	inNamespace(req)
	result, err := replay.Review{Request: req}.Run(t.Context(), webhooks)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range result.Calls {
		if call.Patch != nil {
			CheckOrigins(t, call.After, call.Response)
		}
	}
	if result.Denied != nil {
		return nil, result.Warnings, result.Denied
	}
	return result.After, result.Warnings, nil
}

// CheckOrigins reports origins that lead nowhere in the object as patched, unless they are
// of something that was removed.
func CheckOrigins(t testing.TB, after []byte, resp *admission.Response) {
	t.Helper()
	for _, origin := range resp.Origins {
		tokens, err := jsonpatch.SplitPointer(origin.Path)
		_, there := rawjson.Lookup(after, tokens...)
		removed := slices.ContainsFunc(resp.Patch, func(op jsonpatch.Operation) bool { return op.Op == jsonpatch.Remove && op.Path == origin.Path })
		if err != nil || !there && !removed || origin.Source == "" {
			t.Errorf("the origin %s (%q) leads nowhere", origin.Path, origin.Source)
		}
	}
}

// Handle calls one webhook, which must not be at fault.
func Handle(t testing.TB, webhook admission.Webhook, req *admissionv1.AdmissionRequest) *admission.Response {
	t.Helper()
	resp, err := webhook.Handler.Handle(admission.WithOrigins(context.Background()), req)
	if err != nil || resp == nil {
		t.Fatalf("webhook %s: %+v, %v", webhook.Name, resp, err)
	}
	return resp
}

// Apply applies the patch of a response.
func Apply(t testing.TB, raw []byte, resp *admission.Response) []byte {
	t.Helper()
	if len(resp.Patch) == 0 {
		return raw
	}
	out, err := replay.Apply(raw, resp.Patch.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func toJSON(t testing.TB, data []byte) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
