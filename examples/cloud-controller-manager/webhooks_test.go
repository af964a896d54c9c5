// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/fake"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cloud"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// zoned labels Services of type LoadBalancer with the zone of the cloud.
func zoned(d cloud.Dependencies) (admission.Handler, error) {
	return admission.Mutate(func(ctx context.Context, service *corev1.Service) error {
		zones, ok := d.Cloud.Zones()
		if !ok {
			return nil
		}
		zone, err := zones.GetZone(ctx)
		if err != nil {
			return err // a fault, for which the failure policy is
		}
		if service.Labels == nil {
			service.Labels = map[string]string{}
		}
		service.Labels[corev1.LabelTopologyZone] = zone.FailureDomain
		return nil
	}), nil
}

func register(webhooks *cloud.Registry) error {
	return webhooks.Register("zoned", []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Service")}, zoned,
		cloud.WithInitializedCloud(),
		cloud.WithDefinition(admission.WithMatchCondition("load-balancers", "object.spec.type == 'LoadBalancer'")))
}

func TestAWebhookOfOnesOwn(t *testing.T) {
	webhooks, err := cloud.New(cloud.PersistentVolumeLabel("gce"))
	if err != nil {
		t.Fatal(err)
	}
	if err := register(webhooks); err != nil {
		t.Fatal(err)
	}
	handler, err := zoned(cloud.Dependencies{Cloud: &fake.Cloud{Zone: cloudprovider.Zone{FailureDomain: "north-1-a"}}})
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{}
	service.Name, service.Spec.Type = "web", corev1.ServiceTypeLoadBalancer
	labelled := service.DeepCopy()
	labelled.Labels = map[string]string{corev1.LabelTopologyZone: "north-1-a"}
	sallyporttest.Run(t, handler, sallyporttest.Case{Review: sallyporttest.Create(service), Want: labelled})
}
