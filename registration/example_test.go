// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/registration"
)

// The API server calls the webhooks through a Service, and something else writes their configurations.
func ExampleSettings() {
	check := admission.Validate(func(context.Context, *corev1.ConfigMap) error { return nil })
	app, err := sallyport.New("shop", sallyport.WithWebhooks(
		admission.Validating("check.configmaps.example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps")), check)))
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := app.DefaultSettings()
	settings.Client = &rest.Config{Host: "https://192.0.2.1"}
	settings.Registration.Mode = registration.ModeNone
	fmt.Println(app.Validate(settings))
	settings.Registration.Service = &registration.Service{Namespace: "shop", Name: "shop"}
	fmt.Println(app.Validate(settings))
	// Output:
	// registration.service: Required value: set it or url: the API server must know where the webhooks are
	// <nil>
}
