// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/podtemplate"
	"github.com/sallyport-io/sallyport/internal/hosting"
)

func loadText(t *testing.T, webhooks string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sallyport.yaml")
	text := "apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\nregistration: {service: {namespace: a, name: b}}\nwebhooks: " + webhooks + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path, nil)
}

func TestPodTemplateNeedsAWebhookToAskAndFailsOpen(t *testing.T) {
	for webhooks, want := range map[string]string{
		"[{name: podtemplate}]": "webhooks[0]: Forbidden: it warns of what other webhooks do with pods: enable poddefault, too",
		"[{name: poddefault, enabled: false}, {name: podtemplate}]":               "webhooks[1]: Forbidden: it warns of",
		"[{name: poddefault}, {name: podtemplate, failurePolicy: Fail}]":          `webhooks[1].failurePolicy: Invalid value: "Fail": the webhook only warns`,
		"[{name: poddefault}, {name: podtemplate, settings: {kinds: [Pod]}}]":     `webhooks[1].settings.kinds[0]: Unsupported value: "Pod"`,
		"[{name: poddefault}, {name: podtemplate, settings: {resources: [{}]}}]":  "webhooks[1].settings.resources[0].group: Required value",
		"[{name: poddefault}, {name: podtemplate, settings: {kind: Deployment}}]": "kind",
	} {
		if _, err := loadText(t, webhooks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", webhooks, err, want)
		}
	}
	for webhooks, seconds := range map[string]int32{
		"[{name: poddefault}, {name: podtemplate, failurePolicy: Ignore}]":                                       2,
		"[{name: poddefault}, {name: podtemplate, timeoutSeconds: 9, names: {podtemplate.sallyport.io: a.b.c}}]": 9,
	} {
		c, err := loadText(t, webhooks)
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Define(NoSources())
		if err != nil {
			t.Fatal(err)
		}
		settings := c.AppRegistration()
		applied, err := hosting.Apply(&settings, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range applied {
			if of := w.Path == podtemplate.Path; of && (w.FailurePolicy != "Ignore" || w.TimeoutSeconds != seconds) || !of && w.TimeoutSeconds != 5 {
				t.Errorf("%s: %s has the failure policy %s and waits for %d seconds", webhooks, w.Name, w.FailurePolicy, w.TimeoutSeconds)
			}
		}
	}
}

// mayNot is an authorizer that allows nothing.
type mayNot struct{}

func (mayNot) May(context.Context, *authenticationv1.UserInfo, *authorizationv1.ResourceAttributes) (bool, string, error) {
	return false, "", nil
}

// The pods are only reviewed where the webhook for pods is called, and with its settings.
func TestPodTemplateAsksAsPodDefaultIsConfigured(t *testing.T) {
	index := source.NewIndex()
	index.SetNamespace(podtest.Namespace, map[string]string{"tier": "gold"})
	for _, pd := range podtest.PodDefaults(t, []byte(`
metadata: {name: proxy}
spec: {selector: {}, env: [{name: PROXY, value: a}], envFrom: [{secretRef: {name: s}}]}
`)) {
		index.Set(plan.Compile(pd))
	}
	const raw = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"template":{"metadata":{"labels":{"app":"web"}},"spec":{
		"serviceAccountName":"robot","containers":[{"name":"app","env":[{"name":"PROXY","value":"VALUE"}]}]}}}}`
	const conflict = "pods of Deployment web would be refused: PodDefault team-a/proxy: env PROXY of container app: the pod has a literal value, wanted is another (values hidden)"
	for name, tc := range map[string]struct{ entry, value, want string }{
		"without terms":                        {"", "b", conflict},
		"a namespace that is selected":         {"namespaceSelector: {matchLabels: {tier: gold}}", "b", conflict},
		"a namespace that is not selected":     {"namespaceSelector: {matchLabels: {tier: tin}}", "b", ""},
		"pods that are selected":               {"objectSelector: {matchLabels: {app: web}}", "b", conflict},
		"pods that are not selected":           {"objectSelector: {matchLabels: {app: other}}", "b", ""},
		"a condition that holds":               {"matchConditions: [{name: a, expression: \"object.metadata.labels.app == 'web' && request.namespace == 'team-a'\"}]", "b", conflict},
		"a condition that does not hold":       {"matchConditions: [{name: a, expression: \"'pod-template-hash' in object.metadata.labels == false\"}]", "b", ""},
		"pods without a conflict":              {"", "a", ""},
		"a ServiceAccount without a right":     {"settings: {usage: Check}", "a", "may not use it"},
		"without rights, freshness Consistent": {"settings: {usage: Check, freshness: Consistent}", "a", "ServiceAccount team-a/robot may not use it"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loadText(t, "[{name: poddefault, "+strings.TrimSuffix(tc.entry, ",")+"}, {name: podtemplate}]")
			if err != nil {
				t.Fatal(err)
			}
			all, err := c.Define(From(PodDefaultSources{PodDefaults: index, Authors: mayNot{}}))
			if err != nil {
				t.Fatal(err)
			}
			resp := answerAt(t, all, podtemplate.Path, strings.Replace(raw, "VALUE", tc.value, 1))
			if got := strings.Join(resp.Warnings, "\n"); !resp.Allowed || (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// answerAt asks the webhook at a path about a new Deployment.
func answerAt(t *testing.T, all []admission.Webhook, path, raw string) *admission.Response {
	t.Helper()
	for _, w := range all {
		if w.Path != path {
			continue
		}
		resp, err := w.Handler.Handle(t.Context(), &admissionv1.AdmissionRequest{
			Resource:  metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Operation: admissionv1.Create, Namespace: podtest.Namespace, Object: runtime.RawExtension{Raw: []byte(raw)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	t.Fatalf("no webhook at %s", path)
	return nil
}
