// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

const sidecarImage = "registry.example.com/sidecar:1"

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func podWithLabel(value string) *corev1.Pod {
	return pod(func(p *corev1.Pod) { p.Labels[testKey] = value })
}

func toBeMutated(p *corev1.Pod) { p.Name = "webhook-to-be-mutated" }

func configMap(data ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c"}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		c.Data[data[i]] = data[i+1]
	}
	return c
}

func object(apiVersion, kind string, data any, labels map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "o", "namespace": "team-a", "labels": labels},
	}}
	if data != nil {
		o.Object["data"] = data
	}
	return o
}

func custom(data ...string) *unstructured.Unstructured {
	tree := map[string]any{}
	for i := 0; i < len(data); i += 2 {
		tree[data[i]] = data[i+1]
	}
	return object("stable.example.com/v1", "E2eTest", tree, nil)
}

func crd(version, label string) *unstructured.Unstructured {
	return object("apiextensions.k8s.io/"+version, "CustomResourceDefinition", nil, map[string]any{testKey: label})
}

func attachment(name string, stdin bool, container string) sallyporttest.Review {
	return sallyporttest.Connect(&corev1.PodAttachOptions{Stdin: stdin, Container: container}, sallyporttest.Named("team-a", name),
		sallyporttest.ForResource(pods), sallyporttest.ForSubresource("attach"))
}

// misdirected is a review that no rules of the webhook match.
func misdirected(r *admissionv1.AdmissionRequest) {
	r.Resource = metav1.GroupVersionResource{Version: "v1", Resource: "services"}
}

// The table of Kubernetes' test webhook, row by row. A denial has code 0 where nothing
// else is said: the API server makes it 400.
func TestPathsAnswerAsKubernetesTestWebhookDoes(t *testing.T) {
	type c = sallyporttest.Case
	create, update, remove := sallyporttest.Create, sallyporttest.Update, sallyporttest.Delete
	other := sallyporttest.With(misdirected)
	withContainer := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Name = name }
	}
	for _, tc := range []struct {
		path, name string
		c          sallyporttest.Case
		reason     bool // the text is in the reason, and there is no message
	}{
		{"/always-allow-delay-5s", "allows", c{Review: create(pod(nil)), Unchanged: true}, false},
		{"/always-deny", "denies", c{Review: create(pod(nil)), Denied: "this webhook denies all requests"}, false},

		{"/add-label", "no labels", c{Review: create(pod(func(p *corev1.Pod) { p.Labels = nil })), Want: pod(func(p *corev1.Pod) { p.Labels = map[string]string{"added-label": "yes"} })}, false},
		{"/add-label", "empty labels", c{Review: create(object("v1", "Pod", nil, map[string]any{})), Want: object("v1", "Pod", nil, map[string]any{"added-label": "yes"})}, false},
		{"/add-label", "another label", c{Review: create(pod(nil)), Want: pod(func(p *corev1.Pod) { p.Labels["added-label"] = "yes" })}, false},
		{"/add-label", "another value", c{Review: create(pod(func(p *corev1.Pod) { p.Labels["added-label"] = "no" })), Want: pod(func(p *corev1.Pod) { p.Labels["added-label"] = "yes" })}, false},
		{"/add-label", "the right value", c{Review: create(pod(func(p *corev1.Pod) { p.Labels["added-label"] = "yes" })), Unchanged: true}, false},
		{"/add-label", "any kind", c{Review: create(custom("a", "b")), Want: func() *unstructured.Unstructured {
			o := custom("a", "b")
			o.SetLabels(map[string]string{"added-label": "yes"})
			return o
		}()}, false},

		{"/pods", "nothing unwanted", c{Review: create(pod(nil))}, false},
		{"/pods", "the label", c{Review: create(podWithLabel(disallowed)), Denied: "the pod contains unwanted label;"}, false},
		{"/pods", "a container", c{Review: create(pod(withContainer("my-webhook-disallow-too"))), Denied: "the pod contains unwanted container name;"}, false},
		{"/pods", "both", c{Review: create(func() *corev1.Pod { p := podWithLabel(disallowed); p.Spec.Containers[0].Name = disallowed; return p }()),
			Denied: "the pod contains unwanted label; the pod contains unwanted container name;"}, false},
		{"/pods", "waits for ever", c{Review: create(podWithLabel("wait-forever")), Timeout: 10 * time.Millisecond, Fault: "deadline"}, false},
		{"/pods", "another resource", c{Review: create(pod(nil), other), Denied: "expect resource to be"}, false},

		{"/pods/attach", "the pod", c{Review: attachment("to-be-attached-pod", true, "container1"), Denied: "attaching to pod 'to-be-attached-pod' is not allowed"}, false},
		{"/pods/attach", "another pod", c{Review: attachment("another", true, "container1")}, false},
		{"/pods/attach", "without stdin", c{Review: attachment("to-be-attached-pod", false, "container1")}, false},
		{"/pods/attach", "another container", c{Review: attachment("to-be-attached-pod", true, "container2")}, false},

		{"/mutating-pods", "the pod", c{Review: create(pod(toBeMutated)), Want: pod(func(p *corev1.Pod) {
			toBeMutated(p)
			p.Spec.InitContainers = []corev1.Container{{Name: "webhook-added-init-container", Image: "webhook-added-image"}}
		})}, false},
		{"/mutating-pods", "another pod", c{Review: create(pod(nil)), Unchanged: true}, false},
		{"/mutating-pods", "another resource", c{Review: create(pod(nil), other), Fault: "expect resource to be"}, false},

		{"/mutating-pods-sidecar", "any pod", c{Review: create(pod(nil)), Want: pod(func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "webhook-added-sidecar", Image: sidecarImage})
		})}, false},
		{"/mutating-pods-sidecar", "another resource", c{Review: create(pod(nil), other), Fault: "expect resource to be"}, false},

		{"/configmaps", "creation", c{Review: create(configMap(testKey, disallowed)), Denied: "the configmap contains unwanted key and value"}, true},
		{"/configmaps", "creation of another", c{Review: create(configMap(testKey, "webhook-nondeletable"))}, false},
		{"/configmaps", "update", c{Review: update(configMap(), configMap(testKey, disallowed)), Denied: "the configmap contains unwanted key and value"}, true},
		{"/configmaps", "update of what was unwanted", c{Review: update(configMap(testKey, disallowed), configMap())}, false},
		{"/configmaps", "deletion", c{Review: remove(configMap(testKey, "webhook-nondeletable")), Denied: "the configmap cannot be deleted because it contains unwanted key and value"}, true},
		{"/configmaps", "deletion of another", c{Review: remove(configMap(testKey, disallowed))}, false},
		{"/configmaps", "another resource", c{Review: create(configMap(), other), Fault: "expect resource to be"}, false},
		{"/configmaps", "an object that cannot be decoded", c{Review: create(object("v1", "ConfigMap", "text", nil)), Denied: "/data", Code: 400}, false},

		{"/mutating-configmaps", "the first stage", c{Review: create(configMap("mutation-start", "yes")), NotIdempotent: true,
			Want: configMap("mutation-start", "yes", "mutation-stage-1", "yes")}, false},
		{"/mutating-configmaps", "the second", c{Review: create(configMap("mutation-start", "yes", "mutation-stage-1", "yes")),
			Want: configMap("mutation-start", "yes", "mutation-stage-1", "yes", "mutation-stage-2", "yes")}, false},
		{"/mutating-configmaps", "none", c{Review: create(configMap("mutation-start", "no")), Unchanged: true}, false},
		{"/mutating-configmaps", "another resource", c{Review: create(configMap(), other), Fault: "expect resource to be"}, false},

		{"/custom-resource", "creation", c{Review: create(custom(testKey, disallowed)), Denied: "the custom resource contains unwanted data"}, true},
		{"/custom-resource", "update", c{Review: update(custom(), custom(testKey, disallowed)), Denied: "the custom resource contains unwanted data"}, true},
		{"/custom-resource", "deletion", c{Review: remove(custom(testKey, "webhook-nondeletable")), Denied: "the custom resource cannot be deleted because it contains unwanted key and value"}, true},
		{"/custom-resource", "another", c{Review: create(custom("a", "b"))}, false},
		{"/custom-resource", "no data", c{Review: create(object("stable.example.com/v1", "E2eTest", nil, nil))}, false},
		{"/custom-resource", "an object that cannot be decoded", c{Review: create(object("stable.example.com/v1", "E2eTest", "text", nil)), Denied: "data"}, false},

		{"/mutating-custom-resource", "the first stage", c{Review: create(custom("mutation-start", "yes")), NotIdempotent: true,
			Want: custom("mutation-start", "yes", "mutation-stage-1", "yes")}, false},
		{"/mutating-custom-resource", "the second", c{Review: create(custom("mutation-stage-1", "yes")),
			Want: custom("mutation-stage-1", "yes", "mutation-stage-2", "yes")}, false},
		{"/mutating-custom-resource", "none", c{Review: create(custom("a", "b")), Unchanged: true}, false},
		{"/mutating-custom-resource", "no data", c{Review: create(object("stable.example.com/v1", "E2eTest", nil, nil)), Unchanged: true}, false},

		{"/crd", "version v1", c{Review: create(crd("v1", disallowed)), Denied: "the crd contains unwanted label"}, false},
		{"/crd", "version v1beta1", c{Review: create(crd("v1beta1", disallowed)), Denied: "the crd contains unwanted label"}, false},
		{"/crd", "another label", c{Review: create(crd("v1", "fine"))}, false},
		{"/crd", "another resource", c{Review: create(pod(nil), other), Denied: "expect resource to be"}, false},
	} {
		t.Run(tc.path[1:]+", "+tc.name, func(t *testing.T) {
			webhook := at(t, tc.path, sidecarImage)
			result := sallyporttest.Run(t, webhook.Handler, tc.c)
			if tc.c.Denied == "" || tc.c.Code != 0 {
				return
			}
			want := metav1.Status{Status: metav1.StatusFailure, Message: tc.c.Denied}
			if tc.reason {
				want = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReason(tc.c.Denied)}
			}
			if got := *result.Response.Status; got.Code != 0 || got.Reason != want.Reason || tc.reason && got.Message != "" {
				t.Errorf("the status is %+v, want %+v", got, want)
			}
		})
	}
}

func TestSidecarWithoutImageIsDenied(t *testing.T) {
	sallyporttest.Run(t, at(t, "/mutating-pods-sidecar", "").Handler, sallyporttest.Case{
		Review: sallyporttest.Create(pod(nil)), Denied: "No image specified by the sidecar-image parameter", Code: 500,
	})
}

func TestBothVersionsOfReviewsAreAnswered(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		for _, path := range []string{"/mutating-pods-sidecar", "/crd"} {
			review := sallyporttest.Create(pod(nil), sallyporttest.InVersion(version))
			if path == "/crd" {
				review = sallyporttest.Create(crd("v1", "fine"), sallyporttest.InVersion(version))
			}
			sallyporttest.RunWebhook(t, at(t, path, sidecarImage), sallyporttest.Case{Review: review})
		}
	}
}

func at(t *testing.T, path, sidecarImage string) admission.Webhook {
	t.Helper()
	app, err := newApp(sidecarImage, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	all := app.Webhooks()
	i := slices.IndexFunc(all, func(w admission.Webhook) bool { return w.Path == path })
	if i < 0 {
		t.Fatalf("nothing answers at %s", path)
	}
	return all[i]
}
