// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/sallyporttest"
)

func ingress(namespace string, hosts ...string) *networkingv1.Ingress {
	made := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	for _, host := range hosts {
		made.Spec.Rules = append(made.Spec.Rules, networkingv1.IngressRule{Host: host})
	}
	return made
}

func TestHosts(t *testing.T) {
	app, err := newApp()
	if err != nil {
		t.Fatal(err)
	}
	ctx := sallyporttest.CacheContext(t, app, ingress("shop", "shop.example.com", "example.com"), ingress("blog"))
	for name, c := range map[string]sallyporttest.Case{
		"takes a host that nobody has": {Review: sallyporttest.Create(ingress("blog", "blog.example.com"))},
		"takes its own hosts again":    {Review: sallyporttest.Create(ingress("shop", "shop.example.com"))},
		"takes a rule without a host":  {Review: sallyporttest.Create(ingress("wiki", ""))},
		"denies a host of another namespace": {
			Review: sallyporttest.Create(ingress("wiki", "wiki.example.com", "example.com")),
			Denied: "namespace shop has an Ingress for this host", Code: 422, Causes: []string{"spec.rules[1].host"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.Context = ctx
			sallyporttest.RunWebhook(t, app.Webhooks()[0], c)
		})
	}
}
