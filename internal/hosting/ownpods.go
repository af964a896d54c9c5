// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/registration/wedge"
)

// OwnPodsProblems returns the problems with the label of a server's own pods, KEY=VALUE. Empty
// is valid.
func OwnPodsProblems(label string) []string {
	if label == "" {
		return nil
	}
	key, value, ok := strings.Cut(label, "=")
	problems := validation.IsQualifiedName(key)
	if !ok || value == "" {
		return append(problems, "write KEY=VALUE, for example app.kubernetes.io/name=sallyport")
	}
	return append(problems, validation.IsValidLabelValue(value)...)
}

// excludeOwnPods excludes the server's own pods from a webhook for pods and from its backstop,
// because otherwise the server could not restart. It does nothing if the namespace itself is
// excluded.
//
// The label alone must not bypass a webhook, since any user can set it. A match condition can
// also check the namespace; an object selector cannot.
func excludeOwnPods(s *registration.Settings, w *admission.Webhook) {
	key, value, ok := strings.Cut(s.OwnPods, "=")
	if !ok || s.Service == nil || !s.SharedNamespace || !slices.ContainsFunc(w.Rules, isForPods) {
		return
	}
	labels := "(object == null ? oldObject : object).metadata.labels"
	notOwn := admissionregistrationv1.MatchCondition{
		Name: wedge.OwnPodsCondition,
		Expression: fmt.Sprintf("request.namespace != '%s' || !has(%s) || !('%s' in %s) || %s['%s'] != '%s'",
			s.Service.Namespace, labels, key, labels, labels, key, value),
	}
	w.MatchConditions = append(slices.Clone(w.MatchConditions), notOwn)
	if w.Backstop != nil {
		narrower := *w.Backstop
		narrower.MatchConditions = append(slices.Clone(narrower.MatchConditions), notOwn)
		w.Backstop = &narrower
	}
}

func isForPods(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rule.APIGroups, func(group string) bool { return group == "" || group == "*" }) &&
		slices.ContainsFunc(rule.Resources, func(resource string) bool {
			return resource == "pods" || resource == "pods/*" || resource == "*" || resource == "*/*"
		})
}
