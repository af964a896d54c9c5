// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"math/rand/v2"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/sallyport-io/sallyport/admission"
)

var (
	crontabs      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "crontabs"}
	crontabsBeta  = schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "crontabs"}
	crontabsAlpha = schema.GroupVersionResource{Group: "example.com", Version: "v1alpha1", Resource: "crontabs"}
)

func TestAWebhookIsAskedByItsRulesAndItsMatchPolicy(t *testing.T) {
	namespaced, ofCluster := admissionregistrationv1.NamespacedScope, admissionregistrationv1.ClusterScope
	rule := func(resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: resources},
		}
	}
	scoped := func(scope admissionregistrationv1.ScopeType) []admissionregistrationv1.RuleWithOperations {
		r := rule("*")
		r.Scope = &scope
		return []admissionregistrationv1.RuleWithOperations{r}
	}
	pods := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	about := func(change func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionRequest {
		req := &admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Namespace: "team-a", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: pods,
		}
		if change != nil {
			change(req)
		}
		return req
	}
	of := func(resource schema.GroupVersionResource) func(*admissionv1.AdmissionRequest) {
		return func(req *admissionv1.AdmissionRequest) {
			req.Resource = metav1.GroupVersionResource(resource)
			req.Kind = metav1.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: "CronTab"}
		}
	}
	sub := func(name string) func(*admissionv1.AdmissionRequest) {
		return func(req *admissionv1.AdmissionRequest) { req.SubResource = name }
	}
	list := func(r ...admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
		return r
	}
	for name, tc := range map[string]struct {
		webhook     admission.Webhook
		req         *admissionv1.AdmissionRequest
		equivalents []schema.GroupVersionResource
		as          *schema.GroupVersionResource
	}{
		"all resources are without sub-resources":      {webhook: admission.Webhook{Rules: list(rule("*"))}, req: about(sub("status"))},
		"*/* has sub-resources":                        {webhook: admission.Webhook{Rules: list(rule("*/*"))}, req: about(sub("status")), as: (*schema.GroupVersionResource)(&pods)},
		"*/* has resources":                            {webhook: admission.Webhook{Rules: list(rule("*/*"))}, req: about(nil), as: (*schema.GroupVersionResource)(&pods)},
		"pods/* has the pods themselves":               {webhook: admission.Webhook{Rules: list(rule("pods/*"))}, req: about(nil), as: (*schema.GroupVersionResource)(&pods)},
		"*/scale is one sub-resource":                  {webhook: admission.Webhook{Rules: list(rule("*/scale"))}, req: about(sub("status"))},
		"a rule for namespaced things":                 {webhook: admission.Webhook{Rules: scoped(namespaced)}, req: about(nil), as: (*schema.GroupVersionResource)(&pods)},
		"a rule for the cluster's things":              {webhook: admission.Webhook{Rules: scoped(ofCluster)}, req: about(nil)},
		"a namespace is none of the namespaced things": {webhook: admission.Webhook{Rules: scoped(namespaced)}, req: about(of(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}))},
		"an equivalent version is covered": {
			webhook: admission.Webhook{Rules: admission.Rules(crontabs)}, req: about(of(crontabsBeta)), equivalents: []schema.GroupVersionResource{crontabs}, as: &crontabs,
		},
		"the version that was asked for goes first": {
			webhook: admission.Webhook{Rules: append(admission.Rules(crontabs), admission.Rules(crontabsBeta)...)}, req: about(of(crontabsBeta)),
			equivalents: []schema.GroupVersionResource{crontabs}, as: &crontabsBeta,
		},
		"of equivalents, that of the earlier rule goes first": {
			webhook: admission.Webhook{Rules: append(admission.Rules(crontabs), admission.Rules(crontabsAlpha)...)}, req: about(of(crontabsBeta)),
			equivalents: []schema.GroupVersionResource{crontabsAlpha, crontabs}, as: &crontabs,
		},
		"a version that is not served is covered by nothing": {webhook: admission.Webhook{Rules: admission.Rules(crontabs)}, req: about(of(crontabsBeta))},
		"the policy Exact takes no equivalents": {
			webhook: admission.Webhook{Rules: admission.Rules(crontabs), MatchPolicy: admissionregistrationv1.Exact}, req: about(of(crontabsBeta)),
			equivalents: []schema.GroupVersionResource{crontabs},
		},
		"what was converted is matched by what was asked for": {
			webhook: admission.Webhook{Rules: admission.Rules(crontabs), MatchPolicy: admissionregistrationv1.Exact},
			req: about(func(req *admissionv1.AdmissionRequest) {
				of(crontabs)(req)
				req.RequestResource = (*metav1.GroupVersionResource)(&crontabsBeta)
			}),
		},
		"webhook configurations are exempt": {
			webhook: admission.Webhook{Rules: list(rule("*/*"))},
			req: about(func(req *admissionv1.AdmissionRequest) {
				of(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"})(req)
				req.Kind.Kind, req.Namespace = "MutatingWebhookConfiguration", ""
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			as, ok := tc.webhook.Matches(tc.req, tc.equivalents...)
			if ok != (tc.as != nil) || ok && as != *tc.as {
				t.Errorf("matches %v as %v, want %v", ok, as, tc.as)
			}
		})
	}
}

// overridden are attributes of another resource, as the API server has them for equivalents.
type overridden struct {
	apiserveradmission.Attributes
	resource schema.GroupVersionResource
}

func (o overridden) GetResource() schema.GroupVersionResource { return o.resource }

func TestRulesMatchAsTheyDoForTheAPIServer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	one := func(values ...string) string { return values[random.IntN(len(values))] }
	some := func(values ...string) []string {
		list := make([]string, random.IntN(4))
		for i := range list {
			list[i] = one(values...)
		}
		return list
	}
	groups, versions, operations := []string{"", "apps", "example.com"}, []string{"v1", "v1beta1"}, []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}
	resource := func() schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: one(groups...), Version: one(versions...), Resource: one("pods", "namespaces", "crontabs")}
	}
	matched, equivalent := 0, 0
	for range 50_000 {
		of := resource()
		req := &admissionv1.AdmissionRequest{
			Operation: admissionv1.Operation(one(operations...)), Namespace: one("", "team-a"), Kind: metav1.GroupVersionKind{Group: of.Group, Version: of.Version, Kind: "Any"},
			Resource: metav1.GroupVersionResource(of), SubResource: one("", "status", "scale"),
		}
		list := make([]admissionregistrationv1.RuleWithOperations, random.IntN(4))
		for i := range list {
			for _, operation := range some(append(operations, "*")...) {
				list[i].Operations = append(list[i].Operations, admissionregistrationv1.OperationType(operation))
			}
			list[i].APIGroups, list[i].APIVersions = some(append(groups, "*")...), some(append(versions, "*")...)
			list[i].Resources = some("pods", "namespaces", "crontabs", "*", "*/*", "*/status", "pods/*", "pods/status", "crontabs/scale", "pods/", "/")
			if scope := admissionregistrationv1.ScopeType(one("none", "*", "Cluster", "Namespaced", "other")); scope != "none" {
				list[i].Scope = &scope
			}
		}
		var equivalents []schema.GroupVersionResource
		for range random.IntN(3) {
			equivalents = append(equivalents, resource())
		}

		// As k8s.io/apiserver/pkg/admission/plugin/webhook/generic does.
		attributes := apiserveradmission.NewAttributesRecord(nil, nil, schema.GroupVersionKind(req.Kind), req.Namespace, "a", of, req.SubResource,
			apiserveradmission.Operation(req.Operation), nil, false, nil)
		want, wantAs := -1, schema.GroupVersionResource{}
		for i, r := range list {
			if m := (rules.Matcher{Rule: r, Attr: attributes}); want < 0 && m.Matches() {
				want, wantAs = i, of
			}
		}
		for i := 0; i < len(list) && want < 0; i++ {
			for _, other := range equivalents {
				if m := (rules.Matcher{Rule: list[i], Attr: overridden{attributes, other}}); want < 0 && other != of && m.Matches() {
					want, wantAs = i, other
				}
			}
		}
		gotAs, ok := admission.Webhook{Rules: list}.Matches(req, equivalents...)
		if gotAs != wantAs || ok != (want >= 0) {
			t.Fatalf("%+v, %+v, equivalents %v: as %v (%v), the API server has rule %d as %v", list, req, equivalents, gotAs, ok, want, wantAs)
		}
		if ok {
			matched++
			if gotAs != of {
				equivalent++
			}
		}
	}
	if matched < 1000 || equivalent < 100 {
		t.Errorf("%d requests matched, %d of them as an equivalent: too few were compared", matched, equivalent)
	}
}
