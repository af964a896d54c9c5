// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/serving"
)

// team labels pods, like a kubebuilder defaulter.
type team struct{ name string }

func (t team) Default(_ context.Context, pod *corev1.Pod) error {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels["team"] = t.name
	return nil
}

func ExampleNew() {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
	app, err := sallyport.New("teams",
		sallyport.WithWebhooks(admission.Mutating("team.pods.example.com", pods, admission.MutateWith(team{"a"}))))
	if err != nil {
		fmt.Println(err)
		return
	}
	cmd := app.Command() // for os.Exit(cli.Run(cmd)), or as a part of another command
	fmt.Println(cmd.Use, cmd.Flag("service") != nil, cmd.Flag("controllers") != nil)
	// Output: teams true false
}

func ExampleWithTypes() {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	app, err := sallyport.New("teams", sallyport.WithTypes(scheme, team{"a"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, webhook := range app.Webhooks() {
		fmt.Println(webhook.Type, webhook.Name, webhook.Path)
	}
	// Output: Mutating default.v1.pod.core /mutate--v1-pod
}

func ExampleType() {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	app, err := sallyport.New("teams", sallyport.WithTypes(scheme, sallyport.Type{
		Implementation: team{"a"},
		Options:        []admission.WebhookOption{admission.WithTimeout(2), admission.WithFailurePolicy("Ignore")},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	webhook := app.Webhooks()[0]
	fmt.Println(webhook.Path, webhook.TimeoutSeconds, webhook.FailurePolicy)
	// Output: /mutate--v1-pod 2 Ignore
}

func ExampleApp_Handler() {
	pods := admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), "CREATE")
	app, err := sallyport.New("teams",
		sallyport.WithWebhooks(admission.Mutating("team.pods.example.com", pods, admission.MutateWith(team{"a"}), admission.AtPath("/team"))))
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := app.Handler(serving.DefaultOptions())
	if err != nil {
		fmt.Println(err)
		return
	}
	review := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"object":{"kind":"Pod","metadata":{"name":"web"}}}}`
	req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/team", strings.NewReader(review))
	req.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), `"patchType":"JSONPatch"`))
	// Output: 200 true
}
