// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/registration"
)

// rights are those of the server with these settings, and no more.
func (o *manifestsOptions) rights() frontdoor.Rights {
	rights := frontdoor.Rights{
		Registration: o.registration, Certificate: o.certificates, LeaderElection: o.election, ServiceAccount: o.serviceAccount,
		Rules: distinct(o.webhooks.rights(&o.builtin), o.controllers.rights(o.webhooks)), RulesIn: o.webhooks.rightsIn(&o.builtin),
	}
	if o.webhooks.has("poddefault") && o.registration.Mode == registration.ModeAPI {
		rights.Rules = append(rights.Rules, registration.BackstopPolicyRules(o.registration.Name)...)
	}
	if len(o.controllers.enabled(o.webhooks)) > 0 {
		rights.ComponentsOf = applicationName
	}
	return rights
}

// distinct joins rules, each once: a controller may read what its webhook does.
func distinct(lists ...[]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range slices.Concat(lists...) {
		if !slices.ContainsFunc(out, func(known rbacv1.PolicyRule) bool { return reflect.DeepEqual(known, rule) }) {
			out = append(out, rule)
		}
	}
	return out
}
