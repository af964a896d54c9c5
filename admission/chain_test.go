// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

func label(key, value string) admission.Handler {
	return admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[key] = value
		return nil
	})
}

func prepend(name string) admission.Handler {
	return admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
		pod.Spec.Containers = append([]corev1.Container{{Name: name}}, pod.Spec.Containers...)
		return nil
	})
}

// patches answers with a patch of its own making.
func patches(ops ...jsonpatch.Operation) admission.Handler {
	return admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Patched(ops), nil
	})
}

func names(object map[string]any) string {
	var out []string
	for _, c := range object["spec"].(map[string]any)["containers"].([]any) {
		out = append(out, c.(map[string]any)["name"].(string))
	}
	return strings.Join(out, " ")
}

func TestChainHandsOnTheMutatedObject(t *testing.T) {
	copyLabel := admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
		pod.Labels["second"] = pod.Labels["first"]
		return nil
	})
	copyUntyped := admission.Mutate(func(_ context.Context, o *unstructured.Unstructured) error {
		labels := o.GetLabels()
		labels["third"] = labels["second"]
		o.SetLabels(labels)
		return nil
	})
	raw := patches(jsonpatch.Operation{Op: jsonpatch.Add, Path: "/metadata/labels/first", Value: []byte(`"raw"`)})
	for _, tc := range []struct {
		name       string
		chain      admission.Handler
		labels     string
		operations int // 0 means any number
	}{
		{"typed mutators of one type give one patch", admission.Chain(label("first", "1"), label("first", "2"), copyLabel), "first:2 second:2", 2},
		{"of several types", admission.Chain(label("first", "1"), copyLabel, copyUntyped), "first:1 second:1 third:1", 0},
		{"after a patch", admission.Chain(raw, copyLabel, copyUntyped), "first:raw second:raw third:raw", 0},
		{"before a patch", admission.Chain(label("first", "1"), raw), "first:raw", 0},
		{"chains of chains", admission.Chain(admission.Chain(label("first", "1")), admission.Named("x", admission.Chain(copyLabel))), "first:1 second:1", 0},
		{"what is undone is not patched", admission.Chain(label("first", "1"), admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			delete(pod.Labels, "first")
			return nil
		})), "", 0},
		{"what only looks is asked too", admission.Chain(label("first", "1"), admission.Validate(func(_ context.Context, pod *corev1.Pod) error {
			if pod.Labels["first"] != "1" {
				return errors.New("not the mutated object")
			}
			return nil
		})), "first:1", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := podRequest(admissionv1.Create)
			resp := allowed(t, tc.chain, req)
			got := apply(t, req.Object.Raw, resp)["metadata"].(map[string]any)["labels"].(map[string]any)
			want := map[string]any{"app": "x"}
			for pair := range strings.FieldsSeq(tc.labels) {
				key, value, _ := strings.Cut(pair, ":")
				want[key] = value
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("labels are %v, want %v", got, want)
			}
			if tc.operations > 0 && len(resp.Patch) != tc.operations || tc.labels == "" && len(resp.Patch) > 0 {
				t.Errorf("patch is %s", resp.Patch.AppendJSON(nil))
			}
			if string(req.Object.Raw) != podJSON {
				t.Error("the request was changed")
			}
		})
	}
}

func TestChainEndsAtTheFirstThatSaysNo(t *testing.T) {
	warn := func(text string, err error) admission.Handler {
		return admission.Mutate(func(ctx context.Context, _ *corev1.Pod) error {
			admission.Warn(ctx, text)
			admission.Audit(ctx, text, "said")
			return err
		})
	}
	never := admission.Validate(func(context.Context, *corev1.Pod) error { t.Error("called after the end"); return nil })

	resp := handle(t, admission.Chain(label("a", "b"), admission.Named("n", warn("one", nil)), patches(), warn("two", admission.Denyf("no")), never), podRequest(admissionv1.Create))
	if resp.Allowed || len(resp.Patch) > 0 || !reflect.DeepEqual(resp.Warnings, []string{"one", "two"}) || len(resp.AuditAnnotations) != 2 || resp.Status.Message != "no" {
		t.Errorf("got %+v", resp)
	}
	raw := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return nil, admission.Denyf("no")
	})
	if resp := handle(t, admission.Chain(warn("one", nil), raw, never), podRequest(admissionv1.Create)); resp.Allowed || resp.Status.Message != "no" || len(resp.Warnings) != 1 {
		t.Errorf("got %+v", resp)
	}
	if resp, err := admission.Chain(label("a", "b"), warn("x", admission.Fault(errors.New("bug"))), never).Handle(t.Context(), podRequest(admissionv1.Create)); err == nil {
		t.Errorf("got %+v, want a fault", resp)
	}
	nothing := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) { return nil, nil })
	if resp, err := admission.Chain(nothing, never).Handle(t.Context(), podRequest(admissionv1.Create)); err == nil {
		t.Errorf("got %+v for a handler that says nothing", resp)
	}
	bad := patches(jsonpatch.Operation{Op: jsonpatch.Remove, Path: "/not/there"})
	if resp, err := admission.Chain(bad, never).Handle(t.Context(), podRequest(admissionv1.Create)); err == nil {
		t.Errorf("got %+v for a patch that does not apply", resp)
	}
}

func TestOriginsTellWhoChangedWhat(t *testing.T) {
	own := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return &admission.Response{
			Allowed: true,
			Patch:   jsonpatch.Patch{{Op: jsonpatch.Add, Path: "/spec/containers/0", Value: []byte(`{"name":"own","image":"x"}`)}},
			Origins: []admission.Origin{{Path: "/spec/containers/0/image", Source: "inner"}},
		}, nil
	})
	raw := patches(
		jsonpatch.Operation{Op: jsonpatch.Add, Path: "/spec/containers/-", Value: []byte(`{"name":"raw"}`)},
		jsonpatch.Operation{Op: jsonpatch.Copy, From: "/metadata/labels/app", Path: "/metadata/labels/copy"},
		jsonpatch.Operation{Op: jsonpatch.Move, From: "/metadata/labels/app", Path: "/metadata/labels/moved"},
		jsonpatch.Operation{Op: jsonpatch.Test, Path: "/metadata/labels/moved", Value: []byte(`"x"`)},
	)
	for _, tc := range []struct {
		name    string
		handler admission.Handler
		want    []string
		names   string
	}{
		{"a named mutator", admission.Named("n", label("a", "b")), []string{"/metadata/labels/a n"}, "main"},
		{"what comes later shifts what was there", admission.Chain(admission.Named("one", prepend("first")), admission.Named("two", prepend("second"))),
			[]string{"/spec/containers/0 two", "/spec/containers/1 one"}, "second first main"},
		{"the last one counts", admission.Chain(admission.Named("one", label("a", "1")), admission.Named("two", label("a", "2"))), []string{"/metadata/labels/a two"}, "main"},
		{"nobody for what is undone", admission.Chain(admission.Named("one", label("a", "1")), admission.Named("two", admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			delete(pod.Labels, "a")
			return nil
		}))), nil, "main"},
		{"whoever removed what was there", admission.Chain(admission.Named("one", label("a", "1")), admission.Named("two", admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			delete(pod.Labels, "a")
			delete(pod.Labels, "app")
			return nil
		}))), []string{"/metadata/labels two"}, "main"},
		{"a handler that knows its own", admission.Chain(own, admission.Named("one", prepend("first"))), []string{"/spec/containers/0 one", "/spec/containers/1/image inner"}, "first own main"},
		{"a patch with a name", admission.Chain(admission.Named("one", prepend("first")), admission.Named("raw", raw)),
			[]string{"/metadata/labels/copy raw", "/metadata/labels/moved raw", "/spec/containers/0 one", "/spec/containers/2 raw"}, "first main raw"},
		{"a patch with a name alone", admission.Named("raw", raw), []string{"/metadata/labels/copy raw", "/metadata/labels/moved raw", "/spec/containers/1 raw"}, "main raw"},
		{"elements of a list that is sent as a whole", admission.Named("n", admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "a"}, corev1.Container{Name: "b"})
			return nil
		})), []string{"/spec/containers/1 n", "/spec/containers/2 n"}, "main a b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			req := podRequest(admissionv1.Create)
			plain := allowed(t, tc.handler, req)
			resp, err := tc.handler.Handle(admission.WithOrigins(t.Context()), req)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, origin := range resp.Origins {
				got = append(got, origin.Path+" "+origin.Source)
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %q\nwant %q\npatch %s", got, tc.want, resp.Patch.AppendJSON(nil))
			}
			if a, b := string(plain.Patch.AppendJSON(nil)), string(resp.Patch.AppendJSON(nil)); a != b {
				t.Errorf("to ask for origins changes the patch: %s, %s", a, b)
			}
			if got := names(apply(t, req.Object.Raw, resp)); got != tc.names {
				t.Errorf("containers are %s", got)
			}
		})
	}
}

func TestOriginsHaveTheNameOfTheFunctionIfThereIsNoOther(t *testing.T) {
	for want, handler := range map[string]admission.Handler{
		"admission_test.nodeName":       admission.Mutate(nodeName),
		"*admission_test.defaulter":     admission.MutateWith(&defaulter{}),
		"admission_test.namer.NodeName": admission.Mutate(namer{}.NodeName),
	} {
		resp, err := handler.Handle(admission.WithOrigins(t.Context()), podRequest(admissionv1.Create))
		if err != nil || len(resp.Origins) != 1 || resp.Origins[0].Source != want {
			t.Errorf("got %+v, %v; want %q", resp.Origins, err, want)
		}
	}
}

func nodeName(_ context.Context, pod *corev1.Pod) error {
	pod.Spec.NodeName = "n"
	return nil
}

type namer struct{}

func (namer) NodeName(ctx context.Context, pod *corev1.Pod) error { return nodeName(ctx, pod) }
