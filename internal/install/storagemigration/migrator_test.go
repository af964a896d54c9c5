// SPDX-License-Identifier: Apache-2.0

package storagemigration

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNamesOfDefinitions(t *testing.T) {
	t.Parallel()
	for name, valid := range map[string]bool{
		"crontabs.stable.example.com": true, "a.b": true,
		"": false, "crontabs": false, "crontabs.": false, ".example.com": false, "CronTabs.example.com": false, "crontabs.example.com/v1": false,
	} {
		if err := Validate(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("crontabs.stable.example.com")
	f.Add("..")
	f.Fuzz(func(t *testing.T, name string) {
		if Validate(name) != nil {
			return
		}
		for _, rule := range PolicyRules(name) {
			for _, value := range append(rule.Resources, rule.APIGroups...) {
				if value == "" || strings.Contains(value, "*") {
					t.Errorf("%q gets rights for %q", name, value)
				}
			}
		}
	})
}

func TestDefinitionsWhoseObjectsTheAPIServerConverts(t *testing.T) {
	t.Parallel()
	webhook := func(c apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceConversion {
		return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &c}}
	}
	service := &apiextensionsv1.ServiceReference{Namespace: "a", Name: "b"}
	for name, test := range map[string]struct {
		conversion *apiextensionsv1.CustomResourceConversion
		want       bool
	}{
		"without a stanza":             {nil, false},
		"by apiVersion alone":          {&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}, false},
		"without a client config":      {&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{}}, false},
		"a Service without caBundle":   {webhook(apiextensionsv1.WebhookClientConfig{Service: service}), false},
		"a Service with a caBundle":    {webhook(apiextensionsv1.WebhookClientConfig{Service: service, CABundle: []byte("x")}), true},
		"a URL that system roots sign": {webhook(apiextensionsv1.WebhookClientConfig{URL: new("https://a")}), true},
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Conversion: test.conversion}}
		if got := converts(crd); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Conditions as kube-controller-manager sets them.
func TestMigrationsThatNeedAPerson(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(ago time.Duration, status metav1.ConditionStatus, of string) metav1.Condition {
		return metav1.Condition{Type: of, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}
	}
	for name, test := range map[string]struct {
		age        time.Duration
		conditions []metav1.Condition
		ended      bool
		want       string
	}{
		"a new one":                        {time.Second, nil, false, ""},
		"one that no controller starts":    {3 * time.Minute, nil, false, "enable storage-version-migrator-controller"},
		"a running one":                    {time.Hour, []metav1.Condition{at(time.Minute, metav1.ConditionTrue, "Running")}, false, ""},
		"one that runs for long":           {time.Hour, []metav1.Condition{at(16*time.Minute, metav1.ConditionTrue, "Running")}, false, "its condition Running says"},
		"one whose end is not yet written": {time.Hour, []metav1.Condition{at(time.Minute, metav1.ConditionTrue, "Running"), at(0, metav1.ConditionTrue, "Succeeded")}, false, ""},
		"one that has succeeded":           {time.Hour, []metav1.Condition{at(0, metav1.ConditionFalse, "Running"), at(0, metav1.ConditionTrue, "Succeeded")}, true, ""},
		"one that has failed":              {time.Hour, []metav1.Condition{at(0, metav1.ConditionFalse, "Running"), at(0, metav1.ConditionTrue, "Failed")}, true, ""},
	} {
		one := &migration{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", CreationTimestamp: metav1.NewTime(now.Add(-test.age))}}
		one.Status.Conditions = test.conditions
		if one.ended() != test.ended {
			t.Errorf("%s: ended is %v", name, one.ended())
		}
		if err := one.stuck(now); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLongErrorsFitIntoAnEvent(t *testing.T) {
	t.Parallel()
	if got := shortened(strings.Repeat("ä", 600), 1001); len(got) > 1004 || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("shortened to %d bytes", len(got))
	}
}
