// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/lab"
)

func at(path, value string) string {
	return fmt.Sprintf("[JSONPatch{op: 'add', path: '%s', value: %s}]", path, value)
}

// TestPoliciesAreEvaluatedAsTheReleaseDoesOnARealAPIServer has expressions with which releases differ. It compares the chain
// for the release of the API server with that.
func TestPoliciesAreEvaluatedAsTheReleaseDoesOnARealAPIServer(t *testing.T) {
	config, mutatingVersion := mutatingAPIServer(t)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	of, err := release.OfServer(clients.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	const toleration, params = "Object.spec.tolerations{key: 'a', operator: 'Exists'}", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n"
	// Unknown is the minor before which the libraries here do not say what the API server does.
	cases := map[string]struct {
		policy  string
		unknown int
	}{
		"a list of Objects":          {policy: mutating("m", at("/spec/tolerations", "["+toleration+"]"), "", "")},
		"which is ignored":           {policy: mutating("m", at("/spec/tolerations", "["+toleration+"]"), "  failurePolicy: Ignore\n", "")},
		"a map of Objects":           {policy: mutating("m", at("/metadata/annotations", "{'probe': Object.metadata.annotations{}}"), "", "")},
		"a sum of lists":             {policy: mutating("m", at("/spec/tolerations", "object.spec.tolerations + ["+toleration+"]"), "", "")},
		"an Object with a list":      {policy: mutating("m", at("/spec/initContainers", "[]")[:len(at("/spec/initContainers", "[]"))-1]+", JSONPatch{op: 'add', path: '/spec/initContainers/-', value: Object.spec.initContainers{name: 'i', image: 'x', env: [Object.spec.initContainers.env{name: 'A', value: 'b'}]}}]", "", "")},
		"a list of maps":             {policy: mutating("m", at("/spec/tolerations", "[{'key': 'a', 'operator': 'Exists'}]"), "", "")},
		"labels of the object":       {policy: mutating("m", at("/metadata/annotations", "object.metadata.labels"), "", "")},
		"labels of the namespace":    {policy: mutating("m", at("/metadata/annotations", "namespaceObject.metadata.labels"), "", ""), unknown: 37},
		"data of the parameter":      {policy: mutating("m", at("/metadata/annotations", "params.data"), params, ", paramRef: {name: p, parameterNotFoundAction: Deny}"), unknown: 37},
		"data by a variable":         {policy: mutating("m", at("/metadata/annotations", "variables.d"), params+"  variables: [{name: d, expression: params.data}]\n", ", paramRef: {name: p, parameterNotFoundAction: Deny}"), unknown: 37},
		"data of it, copied":         {policy: mutating("m", at("/metadata/annotations", "{'k': params.data.k}"), params, ", paramRef: {name: p, parameterNotFoundAction: Deny}")},
		"groups of the user, copied": {policy: mutating("m", at("/spec/containers/0/args", "request.userInfo.groups.map(g, g)"), "", "")},
		"a function since 1.34":      {policy: validating("v", "{expression: 'lists.range(3).size() == 2', message: three}", "", "")},
		"a function since 1.37":      {policy: validating("v", "{expression: '[1].includes(2)', message: not}", "", "")},
		"any expression":             {policy: validating("v", "{expression: 'object.metadata.name == \"q\"', message: another}", "", "")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := lab.Namespace(t, config)
			inNamespace := strings.Replace(onPods, "matchConstraints: {", "matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+namespace+"}}, ", 1)
			inNamespace = strings.Replace(inNamespace, "operations: ['*']", "operations: [CREATE]", 1)
			text := strings.ReplaceAll(tc.policy, onPods, inNamespace)
			if strings.Contains(text, "MutatingAdmissionPolicy") {
				text = strings.ReplaceAll(text, "admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/"+mutatingVersion)
			}
			for _, name := range []string{"m", "v"} {
				text = strings.ReplaceAll(strings.ReplaceAll(text, "metadata: {name: "+name+"}", "metadata: {name: "+name+"-"+namespace+"}"), "policyName: "+name, "policyName: "+name+"-"+namespace)
			}
			objects, _, err := manifest.Parse("with.yaml", []byte(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s, labels: {kubernetes.io/metadata.name: %[1]s}}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: p, namespace: %[1]s}, data: {k: v}}\n---\n%[2]s", namespace, text)))
			if err != nil {
				t.Fatal(err)
			}
			about := fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: %s, labels: {l: v}}, spec: {priority: 0, automountServiceAccountToken: false, tolerations: [{key: b, operator: Exists}], containers: [{name: c, image: i}]}}", namespace)
			r := run(t, objects, about, func(r *chain.Run) {
				r.Request.Namespace, r.Release, r.FromFiles = namespace, of, true
				r.Request.UserInfo.Username, r.Request.UserInfo.Groups = "system:admin", []string{"system:masters", "system:authenticated"}
			})
			got, problem := r.Do(t.Context())

			if _, err := clients.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			refused := created(t, config, objects[1:])
			if refused != nil || problem != nil {
				if (refused != nil) != (problem != nil) {
					t.Errorf("here: %v; the API server: %v", problem, refused)
				}
				return
			}
			if of.Minor < tc.unknown {
				if len(got.Unknown) == 0 || got.Denied != nil || !strings.Contains(strings.Join(got.Unknown, "\n"), of.String()) {
					t.Errorf("unknown: %q, denied: %+v", got.Unknown, got.Denied)
				}
				return
			}
			sent := &corev1.Pod{}
			if err := json.Unmarshal(r.Request.Object.Raw, sent); err != nil {
				t.Fatal(err)
			}
			here := &corev1.Pod{}
			raw, err := json.Marshal(got.Object)
			if err == nil {
				err = json.Unmarshal(raw, here)
			}
			if err != nil {
				t.Fatal(err)
			}
			parts := func(pod *corev1.Pod) any {
				return []any{pod.Annotations, pod.Spec.Tolerations[:1], len(pod.Spec.InitContainers), len(pod.Spec.Containers[0].Args) > 0}
			}
			difference := ""
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) { // until the policy is in force
				stored, err := clients.CoreV1().Pods(namespace).Create(t.Context(), sent, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				switch {
				case (got.Denied == nil) != (err == nil):
					difference = fmt.Sprintf("here: %+v; the API server: %v", got.Denied, err)
				case err != nil:
					difference = ""
				default:
					difference = cmp.Diff(parts(stored), parts(here))
				}
				if difference == "" {
					break
				}
			}
			if difference != "" || strings.Contains(strings.Join(got.Unknown, "\n"), "1.3") {
				t.Errorf("%s\nunknown: %q\n%s", difference, got.Unknown, outcomes(got))
			}
		})
	}
}

// created creates objects, and returns the refusal of one.
func created(t *testing.T, config *rest.Config, objects []*manifest.Object) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	known, err := resources.OfFiles(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(o.Raw, u); err != nil {
			t.Fatal(err)
		}
		of := client.Resource(known.OfKind(o.GVK()).GroupVersionResource)
		if o.Namespace != "" {
			if _, err := of.Namespace(o.Namespace).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
				return err
			}
			continue
		}
		if _, err := of.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := of.Delete(context.Background(), o.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	return nil
}
