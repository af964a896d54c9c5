// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
)

// creation is what the API server asks when a pod is created.
func creation(raw string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Name: "web", Namespace: "team-a",
		Kind:   metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Object: runtime.RawExtension{Raw: []byte(raw)},
	}
}

var pods = corev1.SchemeGroupVersion.WithResource("pods")

func ExampleMutate() {
	webhook := admission.Mutating("zone.pods.example.com", admission.Rules(pods, "CREATE"),
		admission.Mutate(func(ctx context.Context, pod *corev1.Pod) error {
			if pod.Spec.NodeSelector["zone"] == "" {
				pod.Spec.NodeSelector = map[string]string{"zone": "a"}
				admission.Warn(ctx, "no zone is asked for: the pod goes to a")
			}
			return nil
		}))
	resp, err := webhook.Handler.Handle(context.Background(), creation(`{"spec":{"unknown":1}}`))
	fmt.Println(webhook.Problems(), err)
	fmt.Printf("%s\n%q\n", resp.Patch.AppendJSON(nil), resp.Warnings)
	// Output:
	// <nil> <nil>
	// [{"op":"add","path":"/spec/nodeSelector","value":{"zone":"a"}}]
	// ["no zone is asked for: the pod goes to a"]
}

func ExampleValidate() {
	check := admission.Validate(func(_ context.Context, pod *corev1.Pod) error {
		var errs field.ErrorList
		for i, c := range pod.Spec.Containers {
			if c.Image == "" {
				errs = append(errs, field.Required(field.NewPath("spec", "containers").Index(i).Child("image"), "name one"))
			}
		}
		return errs.ToAggregate()
	})
	resp, _ := check.Handle(context.Background(), creation(`{"spec":{"containers":[{"name":"main"}]}}`))
	fmt.Println(resp.Allowed, resp.Status.Code, resp.Status.Details.Causes[0].Field)
	fmt.Println(resp.Status.Message)
	// Output:
	// false 422 spec.containers[0].image
	// Pod "web" is invalid: spec.containers[0].image: Required value: name one
}

func ExampleValidateEach() {
	handler := admission.ValidateEach(admission.Checks[*corev1.Pod]{
		Update: func(ctx context.Context, old, pod *corev1.Pod) error {
			if old.Labels["owner"] != pod.Labels["owner"] && admission.RequestFrom(ctx).UserInfo.Username != "admin" {
				return field.Forbidden(field.NewPath("metadata", "labels").Key("owner"), "only admin may change it")
			}
			return nil
		},
	})
	// An operation without a function makes the definition invalid; it is not a free pass.
	fmt.Println(admission.Validating("owner.pods.example.com", admission.Rules(pods), handler).Problems())
	// Output:
	// webhook "owner.pods.example.com": rules[0].operations: the handler does not answer CREATE; it answers UPDATE
}

func ExampleChain() {
	chain := admission.Chain(
		admission.Named("defaults", admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			pod.Spec.PriorityClassName = "normal"
			return nil
		})),
		admission.Named("team", admission.Mutate(func(_ context.Context, pod *corev1.Pod) error {
			pod.Labels = map[string]string{"priority": pod.Spec.PriorityClassName}
			return nil
		})),
	)
	resp, _ := chain.Handle(admission.WithOrigins(context.Background()), creation(`{"metadata":{"name":"web"},"spec":{}}`))
	for _, origin := range resp.Origins {
		fmt.Println(origin.Path, "by", origin.Source)
	}
	// Output:
	// /metadata/labels by team
	// /spec/priorityClassName by defaults
}
