// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// policy admits the API servers to the webhooks, or any peer if their addresses are unknown:
// network plugins disagree on how to exclude all pods, and an ipBlock that matches no API
// server is an outage. It admits scrapers to the metrics, and the API servers, which proxy to
// them. A kubelet can always reach the probes on its own node.
func (c *Callers) policy(config registration.Config, pods map[string]string) ([]runtime.Object, error) {
	if config.Endpoint.Service == nil {
		return nil, errors.New("--network-policy is for a server in the cluster: give --service")
	}
	selector := &metav1.LabelSelector{MatchLabels: pods}
	if c.PodSelector != "" {
		var err error
		if selector, err = metav1.ParseToLabelSelector(c.PodSelector); err != nil {
			return nil, fmt.Errorf("--pod-selector: %w", err)
		}
	}
	var servers []networkingv1.NetworkPolicyPeer
	for _, cidr := range c.CIDRs {
		servers = append(servers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
	}
	port := func(name string) []networkingv1.NetworkPolicyPort {
		named := intstr.FromString(name)
		return []networkingv1.NetworkPolicyPort{{Port: &named}}
	}
	ingress := []networkingv1.NetworkPolicyIngressRule{{From: servers, Ports: port(install.WebhooksPort)}}
	readers := slices.Clone(servers)
	if c.MetricsFrom != "" {
		namespaces, err := metav1.ParseToLabelSelector(c.MetricsFrom)
		if err != nil {
			return nil, fmt.Errorf("--metrics-from: %w", err)
		}
		readers = append(readers, networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaces})
	}
	if len(readers) > 0 { // an empty list would admit any peer
		ingress = append(ingress, networkingv1.NetworkPolicyIngressRule{From: readers, Ports: port(install.MetricsPort)})
	}
	return []runtime.Object{&networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: config.Endpoint.Service.Namespace, Name: config.Name,
			Labels: map[string]string{registration.ManagedByLabel: registration.ManagedByValue},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *selector,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     ingress,
		},
	}}, nil
}
