// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/yaml"
)

// reviewOf returns an AdmissionReview as an API server sends it.
func reviewOf(version, resource, kind, rest string) string {
	return fmt.Sprintf(`{apiVersion: admission.k8s.io/%s, kind: AdmissionReview, request: {uid: 6f1c, kind: {group: '', version: v1, kind: %s},
  resource: {group: '', version: v1, resource: %s}, userInfo: {username: alice}, %s}}`, version, kind, resource, rest)
}

func TestAnAdmissionReviewIsReplayedAsItWasRecorded(t *testing.T) {
	const (
		conflicting  = "{apiVersion: v1, kind: Pod, metadata: {labels: {proxy: 'true'}}, spec: {containers: [{name: main, env: [{name: HTTP_PROXY, value: mine}]}]}}"
		balancer     = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer}}"
		clusterIP    = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: ClusterIP}}"
		namespace    = "{apiVersion: v1, kind: Namespace, metadata: {name: third}}"
		namespaceOfA = "{apiVersion: v1, kind: Namespace, metadata: {name: n%d, annotations: {sallyport.io/requester: alice}}}\n---\n"
	)
	var tenNamespaces []string // the project limit
	for i := range 10 {
		tenNamespaces = append(tenNamespaces, fmt.Sprintf(namespaceOfA, i))
	}
	with := file(t, "with.yaml", strings.Replace(podDefaultYAML, "name: proxy\nspec", "name: proxy\n  namespace: team-a\nspec", 1)+
		"---\n"+strings.Join(tenNamespaces, ""))
	for name, tc := range map[string]struct {
		text   string
		status int
		want   string
	}{
		"a pod, in the namespace of the request": {reviewOf("v1", "pods", "Pod", "operation: CREATE, namespace: team-a, object: "+conflicting), exitDenied, "denied: Pod team-a/(without a name): poddefault.sallyport.io"},
		"a pod of another namespace":             {reviewOf("v1", "pods", "Pod", "operation: CREATE, namespace: team-b, object: "+conflicting), exitOK, ""},
		"v1beta1":                                {reviewOf("v1beta1", "pods", "Pod", "operation: CREATE, namespace: team-a, object: "+conflicting), exitDenied, "poddefault.sallyport.io"},
		"a sub-resource":                         {reviewOf("v1", "pods", "Pod", "operation: CREATE, subResource: binding, namespace: team-a, object: "+conflicting), exitOK, "no webhook is called for CREATE"},
		"an update by its old object":            {reviewOf("v1", "services", "Service", "operation: UPDATE, namespace: a, object: "+balancer+", oldObject: "+clusterIP), exitDenied, "servicetype.sallyport.io"},
		"an update that changes nothing":         {reviewOf("v1", "services", "Service", "operation: UPDATE, namespace: a, object: "+balancer+", oldObject: "+balancer), exitOK, ""},
		"a deletion":                             {reviewOf("v1", "services", "Service", "operation: DELETE, namespace: a, oldObject: "+balancer), exitOK, "no webhook is called for DELETE"},
		"a connection, which has no object":      {reviewOf("v1", "pods", "PodExecOptions", "operation: CONNECT, subResource: exec, name: web, namespace: a"), exitOK, "no webhook is called for CONNECT of PodExecOptions a/web"},
		"its user":                               {reviewOf("v1", "namespaces", "Namespace", "operation: CREATE, name: third, namespace: third, object: "+namespace), exitDenied, "projectlimit"},
		"an answer alone":                        {"{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, response: {allowed: true}}", exitError, "has no request"},
		"a request that says nothing":            {"{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: x}}", exitError, "no operation, kind or resource"},
		"an invalid object":                      {reviewOf("v1", "pods", "Pod", "operation: CREATE, object: 1"), exitError, "want a mapping, got a number"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sallyportWith(t, tc.text, "review", "-f", "-", "--with", with, "--webhooks", "*")
			if got.status != tc.status || !strings.Contains(got.stderr, tc.want) {
				t.Errorf("status %d, want %d; stderr:\n%s", got.status, tc.status, got.stderr)
			}
		})
	}
}

func TestTheAnswerToAnAdmissionReviewHasItsVersionAndUID(t *testing.T) {
	text := reviewOf("v1beta1", "pods", "Pod", "operation: CREATE, namespace: default, object: {metadata: {labels: {proxy: 'true'}}, spec: {containers: [{name: main}]}}")
	out := sallyportWith(t, text, "review", "-f", "-", "--with", file(t, "with.yaml", podDefaultYAML), "-o", "review").wantOK(t)
	var answer admissionv1.AdmissionReview
	if err := yaml.Unmarshal([]byte(out), &answer); err != nil || answer.APIVersion != "admission.k8s.io/v1beta1" || answer.Response.UID != "6f1c" || len(answer.Response.Patch) == 0 {
		t.Errorf("%v: answered\n%s", err, out)
	}
}

func TestAWorkloadInAnAdmissionReviewMakesPodsToo(t *testing.T) {
	text := `{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {uid: a, operation: UPDATE, namespace: default, userInfo: {username: a},
  kind: {group: apps, version: v1, kind: ReplicaSet}, resource: {group: apps, version: v1, resource: replicasets}, oldObject: {},
  object: {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs}, spec: {template: {metadata: {labels: {proxy: 'true'}}, ` + oneContainer + `}}}}}`
	with := file(t, "with.yaml", podDefaultYAML)
	if got := sallyportWith(t, text, "review", "-f", "-", "--with", with); got.status != exitDenied || !strings.Contains(got.stderr, "of ReplicaSet default/rs") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
	scaled := strings.Replace(text, "operation: UPDATE,", "operation: UPDATE, subResource: scale,", 1)
	if got := sallyportWith(t, scaled, "review", "-f", "-", "--with", with); got.status != exitOK {
		t.Errorf("scaled: status %d, stderr:\n%s", got.status, got.stderr)
	}
}

func TestAnUpdateIsComparedWithTheOldObject(t *testing.T) {
	const head = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: a}\n"
	now := head + "spec: {type: LoadBalancer, ports: [{port: 80}]}\n"
	before := file(t, "before.yaml", head+"spec: {type: ClusterIP, ports: [{port: 80}]}\n")
	other := file(t, "other.yaml", strings.Replace(now, "name: web", "name: other", 1))
	args := []string{"review", "--webhooks", "servicetype", "--operation", "UPDATE", "-f", "-"}
	for name, tc := range map[string]struct {
		more   []string
		status int
		want   string
	}{
		"named by --old":                      {[]string{"--old", before}, exitDenied, "servicetype.sallyport.io"},
		"found among --with":                  {[]string{"--with", before, "--with", other}, exitDenied, "servicetype.sallyport.io"},
		"the same":                            {[]string{"--old", file(t, "same.yaml", now)}, exitOK, ""},
		"not given":                           {nil, exitError, "stdin:1: Service a/web: an UPDATE needs the object as it was, and there is no old object: name the file that has it by --old, or among --with"},
		"another one given":                   {[]string{"--old", other}, exitError, "there is no old object"},
		"an old object for another operation": {[]string{"--old", before, "--operation", "CREATE"}, exitError, "--old requires --operation UPDATE"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sallyportWith(t, now, append(args, tc.more...)...)
			if got.status != tc.status || !strings.Contains(got.stderr, tc.want) || strings.Contains(got.stderr, "web of v1 is not read") {
				t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
			}
		})
	}
	sallyportWith(t, now, append(args, "--old", "-")...).wantError(t, "stdin can be read only once")
}
