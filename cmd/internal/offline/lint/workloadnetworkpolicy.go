// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

func workloadNetworkPolicy() Rule {
	return Rule{
		ID: "workload-network-policy", Group: groupWorkload, Severities: []Severity{Error, Warning}, Source: "practice",
		What: "Network policies that select the pods admit the API server to the webhooks' port.",
		Why:  "The API server is usually not a pod: a policy that allows only pods blocks it.",
		Fix:  "Allow the port from the addresses of the API servers, by ipBlock, or from anywhere.",
		check: func(c *checker) {
			for _, b := range c.oncePerContainer() {
				container, port := b.targetPort()
				var selecting []*typed[networkingv1.NetworkPolicy]
				for _, p := range c.networkPolicies {
					if p.Namespace == b.workload.Namespace && isolatesIngress(p.value.Spec) && selectors.Selects(&p.value.Spec.PodSelector, b.workload.template.Labels) {
						selecting = append(selecting, p)
					}
				}
				if len(selecting) == 0 {
					continue
				}
				allowed, fromPods := false, false
				for _, p := range selecting {
					for _, rule := range p.value.Spec.Ingress {
						if !allowsPort(rule.Ports, container, port) {
							continue
						}
						outside := len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool { return peer.IPBlock != nil })
						allowed, fromPods = allowed || outside, true
					}
				}
				switch p := selecting[0]; {
				case allowed:
				case fromPods:
					c.object(p.Object, Warning, "/spec/ingress", "network policy %s lets only pods reach port %d; the API server is usually none", p.Name, port)
				default:
					c.object(p.Object, Error, "/spec", "network policy %s blocks port %d for the API server", p.Name, port)
				}
			}
		},
	}
}

// isolatesIngress applies the API's default policy types.
func isolatesIngress(spec networkingv1.NetworkPolicySpec) bool {
	return len(spec.PolicyTypes) == 0 || slices.Contains(spec.PolicyTypes, networkingv1.PolicyTypeIngress)
}

func allowsPort(ports []networkingv1.NetworkPolicyPort, container *corev1.Container, port int32) bool {
	if len(ports) == 0 {
		return true
	}
	return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		switch {
		case p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP:
			return false
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return slices.ContainsFunc(container.Ports, func(c corev1.ContainerPort) bool { return c.Name == p.Port.StrVal && c.ContainerPort == port })
		case p.EndPort != nil:
			return p.Port.IntVal <= port && port <= *p.EndPort
		default:
			return p.Port.IntVal == port
		}
	})
}
