// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/lab"
)

const ofCluster = `
{apiVersion: v1, kind: Namespace, metadata: {name: aggregated}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: lost}, spec: {paramKind: {apiVersion: example.com/v1, kind: Limit}, matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [endpoints]}]}, validations: [{expression: "true"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: lost}, spec: {policyName: lost, validationActions: [Deny], paramRef: {name: x, parameterNotFoundAction: Deny}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: missing}, spec: {paramKind: {apiVersion: v1, kind: ConfigMap}, matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [endpoints]}]}, validations: [{expression: "true"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: denies}, spec: {policyName: missing, validationActions: [Deny], paramRef: {name: p, namespace: default, parameterNotFoundAction: Deny}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: allows}, spec: {policyName: missing, validationActions: [Deny], paramRef: {name: p, namespace: default, parameterNotFoundAction: Allow}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: there}, spec: {policyName: missing, validationActions: [Deny], paramRef: {name: there, namespace: default, parameterNotFoundAction: Deny}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: there, namespace: default}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: some}, rules: [{apiGroups: [admissionregistration.k8s.io], resources: [validatingadmissionpolicies, validatingadmissionpolicybindings], verbs: [get, list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: all}, rules: [{apiGroups: [admissionregistration.k8s.io], resources: ["*"], verbs: [get, list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: some}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: some}, subjects: [{kind: ServiceAccount, name: some, namespace: aggregated}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: all}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}, subjects: [{kind: ServiceAccount, name: all, namespace: aggregated}]}
`

// TestPoliciesOfAClusterOnARealAPIServer has an API server of its own, because aggregated API servers that do not answer disturb
// the discovery of others.
func TestPoliciesOfAClusterOnARealAPIServer(t *testing.T) {
	cp, err := lab.StartControlPlane(t.Context(), t.TempDir(), lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: lab.SharedFlags})
	t.Cleanup(cp.Kill)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(config, "")
	if err != nil {
		t.Fatal(err)
	}
	sound := &doctor{Cluster: c}
	checkPolicies(t.Context(), sound)
	if len(sound.Checks) != 1 || sound.Checks[0].Status != OK {
		t.Errorf("without policies: %+v", sound.Checks)
	}
	text := ofCluster
	for _, account := range []string{"some", "all", "none"} {
		text += strings.ReplaceAll(`---
{apiVersion: v1, kind: Service, metadata: {name: NAME, namespace: aggregated}, spec: {selector: {app: NAME}, ports: [{port: 443}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: NAME, namespace: aggregated, labels: {app: NAME}}, spec: {serviceAccountName: NAME, automountServiceAccountToken: false, containers: [{name: c, image: i}]}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAME.example.com}, spec: {group: NAME.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: NAME, namespace: aggregated}}}
`, "NAME", account)
	}
	objects, _, err := manifest.Parse("cluster.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(config)
	for _, o := range objects {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(o.Raw, u); err != nil {
			t.Fatal(err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(o.GVK())
		if _, err := client.Resource(plural).Namespace(o.Namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", o.Title(), err)
		}
	}
	d := &doctor{Cluster: c}
	checkPolicies(t.Context(), d)
	lacks := "cannot list mutatingadmissionpolicies, mutatingadmissionpolicybindings"
	if lab.KubernetesMinor(t) < 36 {
		lacks = ""
	}
	for want, status := range map[string]Status{
		"ValidatingAdmissionPolicy lost: the API server does not serve its paramKind, example.com/v1 Limit":      Fix,
		"ValidatingAdmissionPolicy missing: the parameter of its binding denies is missing, ConfigMap default/p": Fix,
		"the parameter of its binding allows is missing":                                                         Note,
		lacks: Fix,
	} {
		found := want == ""
		for _, diagnosis := range d.Checks {
			found = found || diagnosis.Status == status && strings.Contains(diagnosis.Text, want)
		}
		if !found {
			t.Errorf("%s: %s is not among %+v", status, want, d.Checks)
		}
	}
	for _, diagnosis := range d.Checks {
		for _, sound := range []string{"binding there", "aggregated/all", "aggregated/none", "not observed"} {
			if strings.Contains(diagnosis.Text, sound) {
				t.Errorf("found %+v", diagnosis)
			}
		}
	}
	later := &policies{doctor: &doctor{Cluster: c}} // no controller runs that observes policies
	if err := later.readValidating(t.Context()); err != nil {
		t.Fatal(err)
	}
	later.checkObserved(time.Now().Add(2 * observedWithin))
	if len(later.Checks) != 1 || !strings.Contains(later.Checks[0].Text, "not observed since their last change: ValidatingAdmissionPolicy lost, missing.") {
		t.Errorf("found %+v", later.Checks)
	}
}
