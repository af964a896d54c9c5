// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A typeChecker checks values of Kubernetes' types, of which it knows nothing else.
type typeChecker struct{ findings }

// A typeRule checks a value of a type beyond its single fields. Value is a pointer to
// it.
type typeRule func(c *typeChecker, at *field.Path, value any)

func rule[T any](check func(c *typeChecker, at *field.Path, value *T)) (reflect.Type, typeRule) {
	return typeOf[T](), func(c *typeChecker, at *field.Path, value any) { check(c, at, value.(*T)) }
}

// typeRules are the rules of each type, wherever it occurs.
var typeRules = func() map[reflect.Type]typeRule {
	rules := map[reflect.Type]typeRule{}
	add := func(t reflect.Type, r typeRule) { rules[t] = r }
	add(rule(checkLabelSelector))
	add(rule(checkEnvVar))
	add(rule(checkDivisor))
	add(rule(checkVolume))
	add(rule(checkEmptyDir))
	add(rule(checkISCSI))
	add(rule(checkFC))
	add(rule(checkFlocker))
	add(rule(checkQuobyte))
	add(rule(checkAzureDisk))
	add(rule(checkCinder))
	add(rule(checkStorageOS))
	add(rule(checkFlex))
	add(rule(checkCSI))
	add(rule(checkProjected))
	add(rule(checkTrustBundle))
	add(rule(checkPodCertificate))
	add(rule(checkDownwardFile))
	add(rule(checkClaimTemplate))
	add(rule(checkClaim))
	add(rule(checkMount))
	add(rule(checkContainer))
	add(rule(checkResources))
	add(rule(checkHTTPGet))
	add(rule(checkTCPSocket))
	add(rule(checkSecurityContext))
	add(rule(checkSeccomp))
	add(rule(checkAppArmor))
	add(rule(checkWindows))
	add(rule(checkToleration))
	add(rule(checkSpread))
	add(rule(checkNodeSelector))
	add(rule(checkNodeTerm))
	add(rule(checkPodTerm))
	add(rule(checkHostAlias))
	return rules
}()

func checkLabelSelector(c *typeChecker, at *field.Path, s *metav1.LabelSelector) {
	for _, err := range metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at) {
		if !strings.HasSuffix(err.Field, ".operator") { // the table checks it
			c.errs = append(c.errs, err)
		}
	}
}
