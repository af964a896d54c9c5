// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/internal/registration"
)

// flowPrecedence ranks the server's requests above those of all service accounts
// (service-accounts has 9000), and below those of nodes and the control plane
// (kube-controller-manager has 800).
const flowPrecedence = 900

// flowControl reserves a share of the API server's capacity for the server's requests. A list
// queued behind other clients' lists delays readiness, and a lease renewed too late changes
// hands. The user of a server outside the cluster is unknown, so it has no share of its own.
func flowControl(config registration.Config, serviceAccount string) []runtime.Object {
	service := config.Endpoint.Service
	if service == nil {
		return nil
	}
	meta := metav1.ObjectMeta{Name: config.Name, Labels: map[string]string{registration.ManagedByLabel: registration.ManagedByValue}}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: flowcontrolv1.SchemeGroupVersion.String(), Kind: kind}
	}
	return []runtime.Object{
		&flowcontrolv1.PriorityLevelConfiguration{
			TypeMeta: kind("PriorityLevelConfiguration"), ObjectMeta: meta,
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: flowcontrolv1.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
					// A third of the share of leader-election. The API server lends most of it
					// while it is unused.
					NominalConcurrencyShares: new(int32(5)),
					LendablePercent:          new(int32(80)),
					LimitResponse: flowcontrolv1.LimitResponse{
						Type:    flowcontrolv1.LimitResponseTypeQueue,
						Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 16, HandSize: 4, QueueLengthLimit: 50},
					},
				},
			},
		},
		&flowcontrolv1.FlowSchema{
			TypeMeta: kind("FlowSchema"), ObjectMeta: meta,
			Spec: flowcontrolv1.FlowSchemaSpec{
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: config.Name},
				MatchingPrecedence:         flowPrecedence,
				// Requests about many pods queue separately from the lease.
				DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByNamespaceType},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{
						Kind:           flowcontrolv1.SubjectKindServiceAccount,
						ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: service.Namespace, Name: serviceAccount},
					}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: []string{rbacv1.VerbAll}, APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll},
						ClusterScope: true, Namespaces: []string{flowcontrolv1.NamespaceEvery},
					}},
					NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{rbacv1.VerbAll}, NonResourceURLs: []string{rbacv1.NonResourceAll}}},
				}},
			},
		},
	}
}
