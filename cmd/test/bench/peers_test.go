// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestPeersAreMeasuredOnlyIfTheyAreNamed(t *testing.T) {
	if (schedule{}).measures(partPeers) {
		t.Error("a run of all parts measures peers, which takes minutes to build")
	}
	if p := (schedule{Only: partPeers}); !p.measures(partPeers) || p.measures(partPodDefaults) {
		t.Error("a run of the peers measures something else")
	}
}

func TestPoliciesOfPeers(t *testing.T) {
	for name, want := range map[string]struct{ one, hundred int }{
		gatekeeperName: {4, 100},
		kyvernoName:    {1, 100},
		istioName:      {0, 0},
	} {
		for n, want := range map[int]int{1: want.one, 100: want.hundred} {
			policies, err := manyPolicies(name, peers[name].policies, n)
			if err != nil || len(policies) != want {
				t.Errorf("%s, %d: got %d policies, %v; want %d", name, n, len(policies), err, want)
			}
			names, selecting := map[string]bool{}, 0
			for _, p := range policies {
				names[p.Name] = true
				if strings.Contains(string(p.Raw), `{"add-gcp-secret":"true"}`) {
					selecting++
				}
			}
			if len(names) != len(policies) {
				t.Errorf("%s, %d: two policies have the same name", name, n)
			}
			if perInjection := map[string]int{gatekeeperName: 4, kyvernoName: 1}[name]; selecting != perInjection {
				t.Errorf("%s, %d: %d policies select the pod, %d make the injection", name, n, selecting, perInjection)
			}
		}
	}
}

func TestAPeerGetsTheVariablesThatAreKnownWithoutAPod(t *testing.T) {
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	p := installedPeer{peer: peer{namespace: "peers", deployment: "server"}, container: corev1.Container{Env: []corev1.EnvVar{
		{Name: "PLAIN", Value: "a b"},
		{Name: "NAMESPACE", ValueFrom: field("metadata.namespace")},
		{Name: "POD", ValueFrom: field("metadata.name")},
		{Name: "ACCOUNT", ValueFrom: field("spec.serviceAccountName")},
		{Name: "GOMAXPROCS", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
	}}}
	if diff := cmp.Diff([]string{"PLAIN=a b", "NAMESPACE=peers", "POD=server-0"}, p.variables()); diff != "" {
		t.Error(diff)
	}
}

func TestAnswerWithASidecar(t *testing.T) {
	r, err := loadReview("notebook-selecting")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ patch, want string }{
		"as a container":       {`[{"op":"add","path":"/spec/containers/-","value":{"name":"istio-proxy"}}]`, "<nil>"},
		"as an init container": {`[{"op":"add","path":"/spec/initContainers","value":[{"name":"istio-proxy"}]}]`, "<nil>"},
		"another container":    {`[{"op":"add","path":"/spec/containers/-","value":{"name":"proxy"}}]`, "no container istio-proxy"},
		"a patch of nothing":   {`[{"op":"remove","path":"/spec/none"}]`, "does not apply"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`,
				r.uid, base64.StdEncoding.EncodeToString([]byte(test.patch)))
			if got := fmt.Sprint(verifySidecar([]byte(answer), r)); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
