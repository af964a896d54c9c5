// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestManifestsHoldWhatTheDefinitionsSay(t *testing.T) {
	bundle := authority(t, "ca")
	scope := admissionregistrationv1.NamespacedScope
	detailed := admission.Webhook{
		Name: "check.crontab.example.com", Type: admission.TypeValidating, Path: "/check",
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"example.com"}, APIVersions: []string{"v1", "v2"}, Resources: []string{"crontabs"}, Scope: &scope,
			},
		}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "skip", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}}, {Key: "tier", Operator: metav1.LabelSelectorOpExists},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "not-paused", Expression: "!has(object.spec.paused)"}},
		MatchPolicy:     admissionregistrationv1.Exact,
		FailurePolicy:   admissionregistrationv1.Ignore,
		TimeoutSeconds:  7,
		SideEffects:     admissionregistrationv1.SideEffectClassNoneOnDryRun,
		ReviewVersions:  []string{"v1"},
		Handler:         webhook(admission.TypeMutating, "a.example.com").Handler,
	}
	plain := webhook(admission.TypeMutating, "default.crontab.example.com")
	plain.FailurePolicy, plain.AllowWedge = "", "a test"
	config := registration.Config{
		Name:        "crontab-webhooks",
		Endpoint:    registration.Endpoint{Service: &registration.Service{Namespace: "system", Name: "webhooks"}},
		Labels:      map[string]string{"app.kubernetes.io/name": "crontab"},
		Annotations: map[string]string{"note": "x"},
	}

	objects, err := registration.Manifests(config, []admission.Webhook{detailed, plain}, bundle)
	if err != nil {
		t.Fatal(err)
	}

	service := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{
			Namespace: "system", Name: "webhooks", Path: &path, Port: new(int32(443)),
		}}
	}
	meta := metav1.ObjectMeta{
		Name:        "crontab-webhooks",
		Labels:      map[string]string{"app.kubernetes.io/name": "crontab", "app.kubernetes.io/managed-by": "sallyport"},
		Annotations: map[string]string{"note": "x"},
	}
	explained := meta // with the reason for readers of the object
	explained.Annotations = map[string]string{"note": "x", registration.LintAnnotation: "wedge-wildcard,wedge-self,wedge-system,wedge-node,lease,crd-admission,loop " + plain.Name + ": a test"}
	want := []any{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: explained,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: plain.Name, ClientConfig: service(plain.Path), Rules: plain.Rules,
				MatchPolicy: new(admissionregistrationv1.Equivalent), FailurePolicy: new(admissionregistrationv1.Fail),
				TimeoutSeconds: new(int32(5)), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
				ReinvocationPolicy:      new(admissionregistrationv1.IfNeededReinvocationPolicy),
				AdmissionReviewVersions: []string{"v1", "v1beta1"},
			}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: meta,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: detailed.Name, ClientConfig: service("/check"), Rules: detailed.Rules,
				NamespaceSelector: detailed.NamespaceSelector, ObjectSelector: detailed.ObjectSelector, MatchConditions: detailed.MatchConditions,
				MatchPolicy: new(admissionregistrationv1.Exact), FailurePolicy: new(admissionregistrationv1.Ignore),
				TimeoutSeconds: new(int32(7)), SideEffects: new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
				AdmissionReviewVersions: []string{"v1"},
			}},
		},
	}
	got := make([]any, len(objects))
	for i, object := range objects {
		got[i] = object
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

func TestBuildLeavesUnsetSelectorsAndBundlesToOthers(t *testing.T) {
	unset, empty := webhook(admission.TypeMutating, "unset.example.com"), webhook(admission.TypeMutating, "empty.example.com")
	empty.ObjectSelector = &metav1.LabelSelector{}
	got, err := registration.Build(outside("a"), []admission.Webhook{unset, empty}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Validating != nil {
		t.Error("there is a validating configuration without webhooks")
	}
	data, err := json.Marshal(got.Mutating.Webhooks)
	if err != nil {
		t.Fatal(err)
	}
	var fields []map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"objectSelector", "namespaceSelector", "matchConditions"} {
		if value, ok := fields[0][field]; ok {
			t.Errorf("%s is owned although it is unset: %v", field, value)
		}
	}
	if diff := cmp.Diff(map[string]any{}, fields[1]["objectSelector"]); diff != "" {
		t.Errorf("the empty selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"url": "https://127.0.0.1:9443/unset.example.com"}, fields[0]["clientConfig"]); diff != "" {
		t.Errorf("client config (-want +got):\n%s", diff)
	}
}

func TestBuildIsDeterministicAndKeepsTheOrderOfDefinitions(t *testing.T) {
	var webhooks []admission.Webhook
	for _, name := range []string{"c.example.com", "a.example.com", "d.example.com", "b.example.com"} {
		webhooks = append(webhooks, webhook(admission.TypeMutating, name))
	}
	config := outside("a")
	config.Labels = map[string]string{"x": "1", "y": "2", "z": "3"}
	var first string
	for range 20 {
		got, err := registration.Build(config, webhooks, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range got.Mutating.Webhooks {
			names = append(names, *w.Name)
		}
		if diff := cmp.Diff([]string{"c.example.com", "a.example.com", "d.example.com", "b.example.com"}, names); diff != "" {
			t.Fatalf("order (-want +got):\n%s", diff)
		}
		data, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = string(data)
		}
		if string(data) != first {
			t.Fatalf("two results of equal input:\n%s\n%s", first, data)
		}
	}
}

func TestBuildReportsEveryProblem(t *testing.T) {
	good := webhook(admission.TypeMutating, "good.example.com")
	bundle := authority(t, "ca")
	key := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")})
	config := func(change func(*registration.Config)) registration.Config {
		c := outside("a")
		change(&c)
		return c
	}
	service := func(s registration.Service) registration.Config {
		return config(func(c *registration.Config) { c.Endpoint = registration.Endpoint{Service: &s} })
	}
	address := func(url string) registration.Config {
		return config(func(c *registration.Config) { c.Endpoint.URL = url })
	}
	for name, tc := range map[string]struct {
		config   registration.Config
		webhooks []admission.Webhook
		bundle   []byte
		want     []string
	}{
		"no endpoint": {config: address(""), want: []string{"a service or a URL is required"}},
		"both endpoints": {
			config: config(func(c *registration.Config) {
				c.Endpoint.Service = &registration.Service{Namespace: "a", Name: "b"}
			}),
			want: []string{"both a service and a URL"},
		},
		"a URL with http":           {config: address("http://127.0.0.1"), want: []string{"must be https"}},
		"a URL with a query":        {config: address("https://127.0.0.1?a=b"), want: []string{"query"}},
		"a URL with an empty query": {config: address("https://127.0.0.1?"), want: []string{"query"}},
		"a URL with a fragment":     {config: address("https://127.0.0.1#a"), want: []string{"fragment"}},
		"a URL without a host":      {config: address("https:///a"), want: []string{"host is missing"}},
		"a URL with a password":     {config: address("https://me:secret@127.0.0.1"), want: []string{"user information"}},
		"a URL that does not parse": {config: address("https://me:secret@127.0.0.1:%zz"), want: []string{"does not parse"}},
		"two mistakes in a URL":     {config: address("http://127.0.0.1?a=b"), want: []string{"https", "query"}},
		"a service without names":   {config: service(registration.Service{}), want: []string{"service namespace", "service name"}},
		"a service with a port out of range": {
			config: service(registration.Service{Namespace: "a", Name: "b", Port: 65536}), want: []string{"outside 1 to 65535"},
		},
		"a name with capitals": {config: config(func(c *registration.Config) { c.Name = "Webhooks" }), want: []string{`name "Webhooks"`}},
		"a static name": {
			config: config(func(c *registration.Config) { c.Name = "a.static.k8s.io" }), want: []string{".static.k8s.io"},
		},
		"another manager in the label": {
			config: config(func(c *registration.Config) { c.Labels = map[string]string{registration.ManagedByLabel: "Helm"} }),
			want:   []string{registration.ManagedByLabel},
		},
		"a webhook name used twice": {config: outside("a"), webhooks: []admission.Webhook{good, good}, want: []string{"duplicate name"}},
		"two bad definitions and a bad name": {
			config:   config(func(c *registration.Config) { c.Name = "" }),
			webhooks: []admission.Webhook{{Name: "x"}, {Name: "y"}},
			want:     []string{`name ""`, `webhook "x"`, `webhook "y"`},
		},
		"a bundle that is not PEM":     {config: outside("a"), bundle: []byte("ca"), want: []string{"no PEM certificate"}},
		"a bundle with a private key":  {config: outside("a"), bundle: append(key, bundle...), want: []string{"EC PRIVATE KEY"}},
		"a bundle with a broken block": {config: outside("a"), bundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), want: []string{"does not parse"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registration.Build(tc.config, tc.webhooks, tc.bundle)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("error gives a secret away: %v", err)
			}
			if _, err := registration.Manifests(tc.config, tc.webhooks, tc.bundle); err == nil {
				t.Error("manifests are printed in spite of it")
			}
		})
	}
}

func TestURLKeepsThePathOfAProxyInFront(t *testing.T) {
	for base, want := range map[string]string{
		"https://127.0.0.1:9443":   "https://127.0.0.1:9443/a.example.com",
		"https://127.0.0.1:9443/":  "https://127.0.0.1:9443/a.example.com",
		"https://[::1]:9443":       "https://[::1]:9443/a.example.com",
		"https://hooks.example/x/": "https://hooks.example/x/a.example.com",
	} {
		config := registration.Config{Name: "a", Endpoint: registration.Endpoint{URL: base}}
		got, err := registration.Build(config, []admission.Webhook{webhook(admission.TypeValidating, "a.example.com")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if url := *got.Validating.Webhooks[0].ClientConfig.URL; url != want {
			t.Errorf("%s: got %s, want %s", base, url, want)
		}
	}
}

func TestNewControllerReportsEveryProblem(t *testing.T) {
	_, err := registration.NewController(registration.Options{Recheck: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"name", "endpoint", "Client", "Webhooks", "CABundle", "recheck"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q: %v", want, err)
		}
	}
}
