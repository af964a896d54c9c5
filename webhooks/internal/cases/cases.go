// SPDX-License-Identifier: Apache-2.0

// Package cases runs the cases of a ready-made webhook: one folder of testdata each.
//
//	object.yaml    the object that comes in; the deleted one for DELETE
//	old.yaml       the object as it was: with it the request is an UPDATE
//	request.yaml   what else the request says: an AdmissionRequest in part
//	settings.yaml  the settings; without it they are the defaults
//	cluster.yaml   what the webhook knows of the cluster, if it reads from one
//	want.yaml      the object that must come out, or
//	want.txt       the message of the denial
//
// Webhooks whose rules cover the request are called in their order, each on what the
// one before left, as the API server does.
package cases

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Make makes the webhooks of a case. Settings and cluster are YAML, nil if the folder
// has none.
type Make func(t testing.TB, settings, cluster []byte) []admission.Webhook

// Run runs every folder of testdata. What is admitted is sent again: that must
// change nothing. If update is set, it writes what comes out instead.
func Run(t *testing.T, resource metav1.GroupVersionResource, newWebhooks Make) {
	t.Helper()
	objects, err := filepath.Glob("testdata/*/object.yaml")
	if err != nil || len(objects) == 0 {
		t.Fatalf("no cases in testdata (%v)", err)
	}
	for _, path := range objects {
		folder := filepath.Dir(path)
		t.Run(strings.ReplaceAll(filepath.Base(folder), "-", " "), func(t *testing.T) {
			run(t, folder, resource, newWebhooks)
		})
	}
}

func run(t *testing.T, folder string, resource metav1.GroupVersionResource, newWebhooks Make) {
	req := Request(t, folder, resource)
	webhooks := newWebhooks(t, read(t, folder, "settings.yaml"), read(t, folder, "cluster.yaml"))
	after, warnings, denied := Review(t, webhooks, req)
	wanted, unwanted := "want.yaml", "want.txt"
	var out []byte
	if denied != nil {
		wanted, unwanted = unwanted, wanted
		out = []byte(denied.Message + "\n")
	} else {
		var err error
		if out, err = yaml.JSONToYAML(after); err != nil {
			t.Fatal(err)
		}
		again := req.DeepCopy()
		if req.Operation != admissionv1.Delete {
			again.Object.Raw = after
		}
		second, _, denied := Review(t, webhooks, again)
		if denied != nil || !bytes.Equal(second, after) {
			t.Errorf("the second pass is not empty: %+v\n%s", denied, second)
		}
	}
	for _, warning := range warnings {
		out = append([]byte("# warning: "+warning+"\n"), out...)
	}
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(filepath.Join(folder, wanted), out, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, folder, unwanted) != nil {
		t.Errorf("the folder has a %s; what comes out is for %s", unwanted, wanted)
	}
	if want := read(t, folder, wanted); !bytes.Equal(want, out) {
		t.Errorf("%s: want\n%s\ngot\n%s", wanted, want, out)
	}
}

// Request is the request that a folder describes.
func Request(t testing.TB, folder string, resource metav1.GroupVersionResource) *admissionv1.AdmissionRequest {
	t.Helper()
	req := &admissionv1.AdmissionRequest{
		UID: "c8a5c4b2-0000-4000-8000-000000000001", Resource: resource, Operation: admissionv1.Create,
	}
	object := toJSON(t, read(t, folder, "object.yaml"))
	old := read(t, folder, "old.yaml")
	if old != nil {
		req.Operation = admissionv1.Update
	}
	if more := read(t, folder, "request.yaml"); more != nil {
		if err := yaml.UnmarshalStrict(more, req); err != nil {
			t.Fatalf("request.yaml: %v", err)
		}
	}
	var meta metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(object, &meta); err == nil {
		req.Kind = metav1.GroupVersionKind(meta.GroupVersionKind())
		req.Name, req.Namespace = meta.Name, meta.Namespace
	}
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

// Review sends a request through the webhooks that are for it. It returns the object
// as it is then, or the denial.
func Review(t testing.TB, webhooks []admission.Webhook, req *admissionv1.AdmissionRequest) (after []byte, warnings []string, denied *metav1.Status) {
	t.Helper()
	req = req.DeepCopy()
	object := &req.Object.Raw
	if req.Operation == admissionv1.Delete {
		object = &req.OldObject.Raw
	}
	for _, webhook := range webhooks {
		if !slices.ContainsFunc(webhook.Rules, func(rule admissionregistrationv1.RuleWithOperations) bool { return covers(rule, req) }) {
			continue
		}
		before := bytes.Clone(*object)
		resp := Handle(t, webhook, req)
		if !bytes.Equal(before, *object) {
			t.Fatalf("webhook %s has changed the bytes of the request", webhook.Name)
		}
		warnings = append(warnings, resp.Warnings...)
		if !resp.Allowed {
			return nil, warnings, resp.Status
		}
		if webhook.Type == admission.TypeValidating && len(resp.Patch) > 0 {
			t.Fatalf("the validating webhook %s sends a patch", webhook.Name)
		}
		if patched := Apply(t, *object, resp); len(resp.Patch) > 0 {
			for _, origin := range resp.Origins {
				tokens, err := jsonpatch.SplitPointer(origin.Path)
				if _, there := jsonpatch.Lookup(patched, tokens...); err != nil || !there || origin.Source == "" {
					t.Errorf("the origin %s (%q) leads nowhere", origin.Path, origin.Source)
				}
			}
			*object = patched
		}
	}
	return *object, warnings, nil
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

// Apply applies a patch with the library that the API server uses.
func Apply(t testing.TB, raw []byte, resp *admission.Response) []byte {
	t.Helper()
	if len(resp.Patch) == 0 {
		return raw
	}
	encoded := resp.Patch.AppendJSON(nil)
	patch, err := jsonpatchv4.DecodePatch(encoded)
	if err != nil {
		t.Fatalf("the patch cannot be decoded: %v", err)
	}
	out, err := patch.Apply(raw)
	if err != nil {
		t.Fatalf("the patch does not apply: %v\n%s", err, encoded)
	}
	return out
}

func covers(rule admissionregistrationv1.RuleWithOperations, req *admissionv1.AdmissionRequest) bool {
	resource := req.Resource.Resource
	if req.SubResource != "" {
		resource += "/" + req.SubResource
	}
	return slices.Contains(rule.Operations, admissionregistrationv1.OperationType(req.Operation)) &&
		slices.Contains(rule.APIGroups, req.Resource.Group) &&
		slices.Contains(rule.APIVersions, req.Resource.Version) && slices.Contains(rule.Resources, resource)
}

func read(t testing.TB, folder, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func toJSON(t testing.TB, data []byte) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
