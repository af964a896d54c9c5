// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
)

func testMatchConditions(t *testing.T, w *world) {
	const fail, ignore = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	for i, tc := range []struct {
		name       string
		policy     admissionregistrationv1.FailurePolicyType
		conditions []string
		// Who is called of creation, update and deletion, one letter each.
		called  string
		refused bool // all three, by the API server
	}{
		{name: "all that are true", policy: fail, conditions: []string{"true", "1 < 2"}, called: "CUD"},
		{name: "one that is false", policy: fail, conditions: []string{"true", "false"}},
		{name: "the operation", policy: fail, conditions: []string{"request.operation == 'UPDATE'"}, called: "U"},
		{name: "the object", policy: fail, conditions: []string{"request.operation == 'DELETE' || object.metadata.name == 'one'"}, called: "CUD"},
		{name: "the object that a deletion does not have", policy: fail, conditions: []string{"object == null"}, called: "D"},
		{name: "the old object", policy: fail, conditions: []string{"oldObject != null && oldObject.data['a'] == 'old'"}, called: "UD"},
		{name: "the user", policy: fail, conditions: []string{"request.userInfo.groups.exists(g, g == 'system:masters')"}, called: "CUD"},
		{name: "what the user may do", policy: fail, conditions: []string{"authorizer.group('').resource('configmaps').namespace(request.namespace).check('create').allowed()"}, called: "CUD"},
		{name: "the resource that was asked for", policy: fail, conditions: []string{"request.requestResource.resource == 'configmaps' && request.kind.kind == 'ConfigMap'"}, called: "CUD"},
		{name: "an error, failing closed", policy: fail, conditions: []string{"request.namespace == dyn(1).none"}, refused: true},
		{name: "an error, failing open", policy: ignore, conditions: []string{"request.namespace == dyn(1).none"}},
		{name: "an error beside one that is false", policy: fail, conditions: []string{"request.namespace == dyn(1).none", "false"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := fmt.Sprintf("match-conditions-%d", i)
			calls := &journal[admissionv1.Operation]{}
			webhook := admission.Webhook{
				Name: "conditions.sallyport.io", Path: "/conditions", Type: admission.TypeValidating, FailurePolicy: tc.policy,
				Rules: admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps"),
					admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete),
				NamespaceSelector: within(name), TimeoutSeconds: 30, AllowWedge: "only a namespace of the test",
				Handler: admission.HandlerFunc(func(_ context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
					calls.note("", req.Operation)
					return admission.Allowed(), nil
				}),
			}
			for n, condition := range tc.conditions {
				webhook.MatchConditions = append(webhook.MatchConditions,
					admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("condition-%d", n), Expression: condition})
			}
			w.namespace(t, name)
			objects := w.clients.CoreV1().ConfigMaps(name)
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"a": "old"}}
			if tc.refused { // it must be there to be changed and deleted
				if _, err := objects.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			w.serve(t, name, []admission.Webhook{webhook}, nil)
			changed := object.DeepCopy()
			changed.Data["a"] = "new"
			created := object.DeepCopy()
			if tc.refused {
				created.Name = "two"
			}
			_, errCreate := objects.Create(t.Context(), created, metav1.CreateOptions{})
			// A dry run: the deletion is of the old object.
			_, errUpdate := objects.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			errDelete := objects.Delete(t.Context(), object.Name, metav1.DeleteOptions{})
			for operation, err := range map[string]error{"creation": errCreate, "update": errUpdate, "deletion": errDelete} {
				switch {
				case tc.refused && (err == nil || status(t, err).Code != http.StatusForbidden):
					t.Errorf("the %s ended with %v, want it forbidden", operation, err)
				case !tc.refused && err != nil:
					t.Errorf("the %s ended with %v", operation, err)
				}
			}
			got := ""
			for _, operation := range calls.take()[""] {
				got += string(operation[:1])
			}
			if got != tc.called {
				t.Errorf("called for %q, want %q", got, tc.called)
			}
		})
	}
}
