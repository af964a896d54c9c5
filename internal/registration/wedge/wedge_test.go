// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

func TestWedges(t *testing.T) {
	for _, test := range []struct {
		name                          string
		groups, resources             string // separated by commas
		policy                        admissionregistrationv1.FailurePolicyType
		namespaces, objects           string // selectors
		condition, allow, ownResident string
		want                          string // substring of the only problem; empty for none
	}{
		{name: "own resources", groups: "example.com", resources: "crontabs"},
		{name: "all groups", groups: "*", resources: "crontabs", want: "all API groups"},
		{name: "all resources", groups: "example.com", resources: "*", want: "all resources (*)"},
		{name: "all resources and their parts", groups: "example.com", resources: "*/*", want: "all resources (*/*)"},
		{name: "all resources, whatever is selected", groups: "example.com", resources: "*", namespaces: "a", objects: "b", want: "all resources"},
		{name: "all resources, failing open", groups: "*", resources: "*", policy: "Ignore"},
		{name: "all resources, with a reason", groups: "*", resources: "*", allow: "it is a cluster of tests"},
		{name: "pods without exclusion", resources: "pods", want: "pods in kube-system"},
		{name: "pods, failing open", resources: "pods", policy: "Ignore"},
		{name: "pods of namespaces with other names", resources: "pods", namespaces: "kubernetes.io/metadata.name notin (kube-system)"},
		{name: "pods of other excluded namespaces", resources: "pods", namespaces: "kubernetes.io/metadata.name notin (x)", want: "pods in kube-system"},
		{name: "pods of some namespaces", resources: "pods", namespaces: "kubernetes.io/metadata.name in (x)"},
		{name: "pods of namespaces with a label", resources: "pods", namespaces: "profile"},
		{name: "pods of namespaces without a label", resources: "pods", namespaces: "!control-plane", want: "pods in kube-system"},
		{name: "pods with a label", resources: "pods", objects: "inject=yes"},
		{name: "pods without a label", resources: "pods", objects: "inject notin (no)", want: "pods in kube-system"},
		{name: "pods with a condition", resources: "pods", condition: "x", want: "pods in kube-system"},
		{name: "a part of pods that decides", resources: "pods/binding", want: "pods in kube-system"},
		{name: "a part of pods that does not", resources: "pods/exec"},
		{name: "own pods too", resources: "pods", namespaces: "kubernetes.io/metadata.name notin (kube-system)", ownResident: "home", want: "own server in home"},
		{name: "own pods excluded by namespace", resources: "pods", namespaces: "kubernetes.io/metadata.name notin (kube-system,home)", ownResident: "home"},
		{name: "own pods excluded by label", resources: "pods", namespaces: "kubernetes.io/metadata.name notin (kube-system)", objects: "app notin (x)", ownResident: "home"},
		{name: "own pods excluded by condition", resources: "pods", namespaces: "kubernetes.io/metadata.name notin (kube-system)", condition: OwnPodsCondition, ownResident: "home"},
		{name: "leases need the namespace of nodes too", groups: "coordination.k8s.io", resources: "leases", namespaces: "kubernetes.io/metadata.name notin (kube-system)", want: "NotIn [kube-node-lease]"},
		{name: "nodes", resources: "nodes", want: "it covers nodes:"},
		{name: "status of nodes", resources: "nodes/status", want: "it covers nodes:"},
		{name: "nodes are in no namespace", resources: "nodes", namespaces: "a", want: "it covers nodes:"},
		{name: "nodes with a condition", resources: "nodes", condition: "x"},
		{name: "volumes", resources: "persistentvolumes", want: "it covers persistentvolumes:"},
		{name: "volumes of some source", resources: "persistentvolumes", condition: "x"},
		{name: "volumes, failing open", resources: "persistentvolumes", policy: "Ignore"},
		{name: "nodes of another group", groups: "example.com", resources: "nodes"},
		{name: "approval of signing requests", groups: "certificates.k8s.io", resources: "certificatesigningrequests/approval", want: "certificatesigningrequests.certificates.k8s.io"},
		{name: "namespaces", resources: "namespaces", want: "namespaces in kube-system"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := admission.Webhook{
				FailurePolicy: test.policy, AllowWedge: test.allow, NamespaceSelector: parse(t, test.namespaces), ObjectSelector: parse(t, test.objects),
				Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{
					APIGroups: strings.Split(test.groups, ","), Resources: strings.Split(test.resources, ","),
				}}},
			}.Defaulted()
			if test.condition != "" {
				w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: test.condition, Expression: "true"}}
			}
			got := Of(w, test.ownResident)
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("got %q", got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func parse(t *testing.T, text string) *metav1.LabelSelector {
	t.Helper()
	s, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
