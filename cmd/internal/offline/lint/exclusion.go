// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/internal/kube/selectors"
)

// narrowed reports whether anything besides the rules narrows the webhook.
func (w *webhook) narrowed() bool {
	return len(selectors.Terms(w.NamespaceSelector)) > 0 || len(selectors.Terms(w.ObjectSelector)) > 0 || len(w.MatchConditions) > 0
}

// kindOf returns the kind of the built-in resources that rules here ask about.
func kindOf(resource string) string {
	base, _, _ := strings.Cut(resource, "/")
	switch base {
	case "endpoints":
		return "Endpoints"
	case "networkpolicies", "priorityclasses", "ingresses":
		return map[string]string{"networkpolicies": "NetworkPolicy", "priorityclasses": "PriorityClass", "ingresses": "Ingress"}[base]
	}
	singular := strings.TrimSuffix(base, "s")
	for _, known := range []string{"ConfigMap", "ServiceAccount", "EndpointSlice", "CertificateSigningRequest", "CSIDriver", "CustomResourceDefinition", "APIService",
		"ReplicaSet", "StatefulSet", "DaemonSet", "CronJob", "LimitRange", "ResourceQuota", "PersistentVolumeClaim", "RoleBinding"} {
		if strings.EqualFold(known, singular) {
			return known
		}
	}
	return strings.ToUpper(singular[:1]) + singular[1:]
}

// reaches reports whether the webhook may be called for a resource in a namespace, ""
// for cluster-scoped resources. It applies selectors, and match conditions to an
// otherwise unknown object.
func (c *checker) reaches(w *webhook, group, resource, namespace string) bool {
	if selectors.OptsIn(w.ObjectSelector) || namespace != "" && c.excludesNamespace(w.NamespaceSelector, namespace) {
		return false
	}
	if len(w.MatchConditions) == 0 {
		return true
	}
	// Most conditions do not depend on the namespace and are evaluated once.
	key := reachKey{w, group, resource, ""}
	if slices.ContainsFunc(w.MatchConditions, func(m admissionregistrationv1.MatchCondition) bool {
		return strings.Contains(m.Expression, "namespace")
	}) {
		key.namespace = namespace
	}
	reached, ok := c.reached[key]
	if !ok {
		reached = !c.conditionsExclude(w, matcher.Bare(group, "v1", resource, kindOf(resource), namespace))
		c.reached[key] = reached
	}
	return reached
}

type reachKey struct {
	webhook                    *webhook
	group, resource, namespace string
}

// ownPodsExcluded reports whether the webhook excludes the pods of its own server, as
// far as they are known.
func (c *checker) ownPodsExcluded(w *webhook, service *admissionregistrationv1.ServiceReference) bool {
	if c.excludesNamespace(w.NamespaceSelector, service.Namespace) {
		return true
	}
	var own []*workload
	if s := c.serviceOf(service.Namespace, service.Name); s != nil {
		own = c.behind(s)
	}
	if len(own) == 0 { // conditions on labels or names are trusted
		return len(selectors.Terms(w.ObjectSelector)) > 0 ||
			slices.ContainsFunc(w.MatchConditions, func(m admissionregistrationv1.MatchCondition) bool {
				return strings.Contains(m.Expression, "labels") || strings.Contains(m.Expression, "serviceAccountName") || strings.Contains(m.Expression, service.Namespace)
			})
	}
	return !slices.ContainsFunc(own, func(workload *workload) bool {
		return selectors.Selects(w.ObjectSelector, workload.template.Labels) && !c.conditionsExclude(w, podOf(workload, service.Namespace))
	})
}

// podOf returns the request to create a pod of a workload.
func podOf(w *workload, namespace string) matcher.Request {
	r := matcher.Bare("", "v1", "pods", "Pod", namespace)
	raw, err := json.Marshal(w.template)
	if err != nil { // it was decoded from JSON
		return r
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return r
	}
	object["apiVersion"], object["kind"] = "v1", "Pod"
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	meta["namespace"], meta["generateName"] = namespace, w.Name+"-"
	r.Object, r.Name = object, ""
	return r
}
