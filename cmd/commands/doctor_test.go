// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func shop(t *testing.T, options ...sallyport.Option) *sallyport.App {
	t.Helper()
	app, err := sallyport.New("shop", options...)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func withWebhook() sallyport.Option {
	return sallyport.WithWebhooks(admission.Validating("data.shop.example.com", admission.Rules(corev1.SchemeGroupVersion.WithResource("configmaps")),
		admission.Validate(func(context.Context, *corev1.ConfigMap) error { return nil })))
}

func TestRightsAreThoseOfTheInstallation(t *testing.T) {
	app := shop(t, withWebhook(), sallyport.WithPolicyRules(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}))
	for _, tc := range []struct {
		name string
		of   doctor.Installation
		want []string // of roles
		args []string // of the server
	}{
		{"a server behind a Service", doctor.Installation{Registration: registration.Settings{Name: "shop", Service: &registration.Service{Namespace: "store", Name: "shop", Port: 9443}}, ServiceAccount: "shop"},
			[]string{"cluster: nodes", "default/shop-events", "store/shop: shop-authority"}, nil},
		{"a server that neither registers itself nor keeps an authority", doctor.Installation{Registration: registration.Settings{Name: "shop", Service: &registration.Service{Namespace: "store", Name: "shop"}}, ServiceAccount: "shop"},
			[]string{"cluster: nodes"}, []string{"--registration=None", "--certificate-source=Files"}},
		{"names that are not the default", doctor.Installation{Registration: registration.Settings{Name: "hooks", Service: &registration.Service{Namespace: "store", Name: "web"}}, ServiceAccount: "clerk", Certificate: certificate.Settings{AuthoritySecret: "vault/ca"}},
			[]string{"cluster: nodes", "default/hooks-events", "vault/hooks: ca"}, nil},
		{"a server at a URL, with its authority in memory", doctor.Installation{Registration: registration.Settings{Name: "shop", URL: "https://192.0.2.1:9443"}, ServiceAccount: "shop"},
			[]string{"cluster: nodes", "default/shop-events"}, nil},
		{"a server of which nothing is known", doctor.Installation{Registration: registration.Settings{Name: "shop"}, ServiceAccount: "shop"},
			[]string{"cluster: nodes", "default/shop-events"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects, err := rights(app.Command(), &tc.of, tc.args)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				switch role := object.(type) {
				case *rbacv1.ClusterRole:
					if slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "nodes") }) {
						got = append(got, "cluster: nodes")
					}
				case *rbacv1.Role:
					text := role.Namespace + "/" + role.Name
					for _, rule := range role.Rules {
						if slices.Contains(rule.Resources, "secrets") && len(rule.ResourceNames) > 0 {
							text += ": " + rule.ResourceNames[0]
						}
					}
					got = append(got, text)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRightsOfInvalidFlagsAreAnError(t *testing.T) {
	of := doctor.Installation{Registration: registration.Settings{Name: "A b", Service: &registration.Service{Namespace: "store", Name: "shop"}}, ServiceAccount: "shop"}
	if objects, err := rights(shop(t, withWebhook()).Command(), &of, nil); err == nil || !strings.Contains(err.Error(), "--configuration-name") {
		t.Errorf("%d objects, %v", len(objects), err)
	}
	of.Registration.Name = "shop"
	if objects, err := rights(shop(t, withWebhook()).Command(), &of, []string{"--leader-elects"}); err == nil || !strings.Contains(err.Error(), "unknown flag: --leader-elects") {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}

func TestDoctorHasTheNamesOfTheApplication(t *testing.T) {
	app := shop(t, withWebhook())
	cmd := app.Command()
	AddTo(cmd, app)
	found, _, err := cmd.Find([]string{"doctor"})
	if err != nil || found.Name() != "doctor" {
		t.Fatalf("%v, %v", found, err)
	}
	for flag, want := range map[string]string{"configuration-name": "shop", "service-account": "shop"} {
		if got := found.Flags().Lookup(flag).DefValue; got != want {
			t.Errorf("--%s is %q by default, want %q", flag, got, want)
		}
	}
	if usage := found.Flags().Lookup("service").Usage; !strings.Contains(usage, "shop-authority") {
		t.Errorf("--service: %s", usage)
	}
	if !strings.Contains(found.Example, "shop doctor --service shop-system/shop") || strings.Contains(found.Example, "sallyport") {
		t.Errorf("examples:\n%s", found.Example)
	}
}

func TestDoctorIsForApplicationsThatServe(t *testing.T) {
	app := shop(t, sallyport.WithController("stock", func(manager.Manager) error { return nil }))
	cmd := app.Command()
	AddTo(cmd, app)
	if found, _, err := cmd.Find([]string{"doctor"}); err == nil && found.Name() == "doctor" {
		t.Error("controllers alone have a doctor, with nothing registered to examine")
	}
}
