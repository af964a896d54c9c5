// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
)

var pods = schema.GroupResource{Resource: "pods"}

func TestOnlyTheAPIServersDecisionsAreAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		err       error
		operation admissionv1.Operation
		want      Verdict
	}{
		"it is accepted":                       {nil, admissionv1.Create, Accepted},
		"its name is taken, after admission":   {apierrors.NewAlreadyExists(pods, "p"), admissionv1.Create, Accepted},
		"a quota":                              {apierrors.NewForbidden(pods, "p", errors.New("exceeded quota")), admissionv1.Create, Refused},
		"it is invalid":                        {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil), admissionv1.Create, Refused},
		"a webhook that fails":                 {apierrors.NewInternalError(errors.New("failed calling webhook")), admissionv1.Create, Refused},
		"no right":                             {apierrors.NewForbidden(pods, "", errors.New(`User "alice" cannot create resource "pods" in API group "" in the namespace "a"`)), admissionv1.Create, Unknown},
		"no right to impersonate":              {apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, "bob", errors.New(`User "alice" cannot impersonate resource "users"`)), admissionv1.Create, Unknown},
		"a webhook with side effects":          {apierrors.NewBadRequest(`admission webhook "x.y.z" does not support dry run`), admissionv1.Create, Unknown},
		"another version is stored":            {apierrors.NewConflict(pods, "p", errors.New("changed")), admissionv1.Update, Unknown},
		"there is nothing to update":           {apierrors.NewNotFound(pods, "p"), admissionv1.Update, Unknown},
		"an API server that is overloaded":     {apierrors.NewTooManyRequests("later", 1), admissionv1.Create, Unknown},
		"an API server that cannot be reached": {errors.New("connection refused"), admissionv1.Create, Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.err, tc.operation)
			if got.Verdict != tc.want || (got.Status != nil) != (tc.want == Refused) || (got.Reason != "") != (tc.want == Unknown) {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := Judge(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), admissionv1.Create); !got.NoNamespace {
		t.Errorf("%+v", got)
	}
}

func TestARefusedFieldHasTheOriginThatSetIt(t *testing.T) {
	origins := []admission.Origin{
		{Path: "/spec/containers/1", Source: "PodDefault a/sidecar"},
		{Path: "/spec/containers/1/image", Source: "PodDefault a/image"},
		{Path: "/spec/containers/0/env/0", Source: "PodDefault a/env"},
		{Path: "/spec/containers/0/env/1", Source: "PodDefault a/more"},
		{Path: "/metadata/annotations/example.com~1a", Source: "PodDefault a/annotation"},
		{Path: "/spec/priorityClassName", Source: "PodDefault a/class"},
	}
	spec := field.NewPath("spec")
	for name, tc := range map[string]struct {
		err  *apierrors.StatusError
		want []Field
	}{
		"a field inside an added container":   {invalid(field.Required(spec.Child("containers").Index(1).Child("name"), "")), []Field{{"spec.containers[1].name", []string{"PodDefault a/sidecar"}}}},
		"a field that was set again":          {invalid(field.Required(spec.Child("containers").Index(1).Child("image"), "")), []Field{{"spec.containers[1].image", []string{"PodDefault a/image"}}}},
		"a list with elements of two":         {invalid(field.TooMany(spec.Child("containers").Index(0).Child("env"), 2, 1)), []Field{{"spec.containers[0].env", []string{"PodDefault a/env", "PodDefault a/more"}}}},
		"a key with dots":                     {invalid(field.Invalid(field.NewPath("metadata", "annotations").Key("example.com/a"), "", "bad")), []Field{{"metadata.annotations[example.com/a]", []string{"PodDefault a/annotation"}}}},
		"a field of the pod itself":           {invalid(field.Required(spec.Child("containers").Index(10).Child("image"), "")), []Field{{"spec.containers[10].image", nil}}},
		"a class that a plugin does not find": {apierrors.NewForbidden(pods, "p", errors.New("no PriorityClass with name x was found")), []Field{{"spec.priorityClassName", []string{"PodDefault a/class"}}}},
		"a quota, which is about no field":    {apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Fields(&tc.err.ErrStatus, origins)); diff != "" {
				t.Error(diff)
			}
		})
	}
	explained, found := Judge(invalid(field.Required(spec.Child("containers").Index(1).Child("name"), ""), field.Required(spec.Child("nodeName"), "")), admissionv1.Create).Explained(origins)
	if want := "; spec.containers[1].name comes from PodDefault a/sidecar; spec.nodeName is as it was sent"; !found || explained.Status.Message != explained.Said+want {
		t.Errorf("%v: %s", found, explained.Status.Message)
	}
}

func invalid(errs ...*field.Error) *apierrors.StatusError {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", errs)
}

func TestAPodIsSentAsAClientSendsIt(t *testing.T) {
	p := Pod{Namespace: "a", Controller: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", BlockOwnerDeletion: new(true)}}
	for in, want := range map[string]string{
		`{"metadata":{"name":"p"},"spec":{"priority":1}}`: "map[metadata:map[name:p namespace:a ownerReferences:[map[apiVersion:apps/v1 controller:true kind:ReplicaSet name:web uid:u]]] spec:map[priority:1]]",
		`{"metadata":{"name":"p","uid":"1","resourceVersion":"1","managedFields":[],"ownerReferences":[{"name":"x","blockOwnerDeletion":true}]},"spec":{"priority":1,"ephemeralContainers":[]},"status":{}}`: "map[metadata:map[name:p namespace:a ownerReferences:[map[name:x]]] spec:map[]]",
	} {
		got, err := p.sent([]byte(in))
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, %v", got, err)
		}
	}
	if got, err := (&Pod{Namespace: "a"}).sent([]byte(`{}`)); err != nil || !strings.Contains(fmt.Sprint(got), "generateName:pod-") {
		t.Errorf("%v, %v", got, err)
	}
}

func TestPodsOfOneTemplateAreAskedAboutOnce(t *testing.T) {
	key := func(meta, spec string) string {
		p := Pod{Namespace: "a"}
		pod, err := p.sent([]byte(`{"metadata":` + meta + `,"spec":` + spec + `}`))
		if err != nil {
			t.Fatal(err)
		}
		key, err := p.key(pod, pod)
		if err != nil {
			t.Fatal(err)
		}
		return string(key[:])
	}
	const owned = `"ownerReferences":[{"name":"x"}]`
	if key(`{"name":"x-1",`+owned+`}`, `{"a":1}`) != key(`{"name":"x-2",`+owned+`}`, `{"a":1}`) {
		t.Error("pods of a controller with other names are asked about twice")
	}
	if key(`{"name":"x-1",`+owned+`}`, `{"a":1}`) == key(`{"name":"x-1",`+owned+`}`, `{"a":2}`) {
		t.Error("pods that differ are asked about once")
	}
	if key(`{"name":"x-1"}`, `{}`) == key(`{"name":"x-2"}`, `{}`) {
		t.Error("a policy may read the name of a pod without a controller")
	}
}
