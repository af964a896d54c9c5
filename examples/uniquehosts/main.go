// SPDX-License-Identifier: Apache-2.0

// Command uniquehosts refuses an Ingress whose host another namespace has already: a webhook that
// reads other objects, from a cache.
package main

import (
	"context"
	"fmt"
	"os"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
)

func main() {
	app, err := newApp()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(sallyport.Execute(app.Command()))
}

func newApp() (*sallyport.App, error) {
	return sallyport.New("uniquehosts",
		sallyport.WithCache(&networkingv1.Ingress{}, sallyport.Index("host", hosts),
			func(k *sallyport.CachedKind) { k.Transform = cache.TransformStripManagedFields() }),
		sallyport.WithWebhooks(admission.Validating("hosts.uniquehosts.example.com",
			admission.Rules(networkingv1.SchemeGroupVersion.WithResource("ingresses")), admission.Validate(checkHosts))),
	)
}

// hosts are those that an Ingress serves.
func hosts(ingress *networkingv1.Ingress) []string {
	var all []string
	for _, rule := range ingress.Spec.Rules {
		if rule.Host != "" {
			all = append(all, rule.Host)
		}
	}
	return all
}

// checkHosts denies hosts that an Ingress of another namespace has.
func checkHosts(ctx context.Context, ingress *networkingv1.Ingress) error {
	var errs field.ErrorList
	for i, rule := range ingress.Spec.Rules {
		var same networkingv1.IngressList
		if err := sallyport.Cache(ctx).List(ctx, &same, client.MatchingFields{"host": rule.Host}); err != nil {
			return err
		}
		for _, other := range same.Items {
			if other.Namespace != ingress.Namespace {
				path := field.NewPath("spec", "rules").Index(i).Child("host")
				errs = append(errs, field.Forbidden(path, "namespace "+other.Namespace+" has an Ingress for this host: use another host"))
				break
			}
		}
	}
	return errs.ToAggregate()
}
