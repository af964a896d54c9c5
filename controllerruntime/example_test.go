// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/controllerruntime"
)

// One line of a project on controller-runtime changes.
func ExampleNewServer() {
	options := ctrl.Options{
		WebhookServer: controllerruntime.NewServer(webhook.Options{Port: 9443, CertDir: "/tmp/k8s-webhook-server/serving-certs"}),
	}
	fmt.Printf("%T\n", options.WebhookServer)
	// Output: *controllerruntime.server
}

// teams is a defaulter for controller-runtime.
type teams struct{}

func (teams) Default(ctx context.Context, pod *corev1.Pod) error {
	request, err := ctrladmission.RequestFromContext(ctx)
	if err == nil {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, "team", request.Namespace)
	}
	return err
}

// Defaulters and validators move into an application as they are.
func ExampleDefaulter() {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
	app, err := sallyport.New("teams", sallyport.WithWebhooks(
		admission.Mutating("team.pods.example.com", pods, controllerruntime.Defaulter(teams{}), admission.AtPath("/mutate--v1-pod")),
	))
	if err != nil {
		fmt.Println(err)
		return
	}
	request := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "a", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}}
	request.Object.Raw = []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}}}`)
	response, err := app.Webhooks()[0].Handler.Handle(context.Background(), request)
	if err != nil {
		fmt.Println(err)
		return
	}
	patch, err := json.Marshal(response.Patch)
	fmt.Println(string(patch), err)
	// Output: [{"op":"add","path":"/metadata/labels/team","value":"a"}] <nil>
}

// A handler of controller-runtime answers with responses of its own.
func ExampleHandler() {
	handler := controllerruntime.Handler(ctrladmission.HandlerFunc(func(_ context.Context, request ctrladmission.Request) ctrladmission.Response {
		return ctrladmission.Denied(request.Name + " is reserved")
	}))
	response, err := handler.Handle(context.Background(), &admissionv1.AdmissionRequest{Name: "web"})
	fmt.Println(response.Allowed, response.Status.Message, err)
	// Output: false web is reserved <nil>
}
