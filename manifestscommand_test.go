// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli/application"
	"github.com/sallyport-io/sallyport/test/golden"
)

// hatCRD serves the versions and stores the last one.
func hatCRD(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "hats.hats.example.com", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: hat.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "hats", Kind: hat.Kind},
		},
	}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == len(versions)-1,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		})
	}
	return crd
}

// hatter has everything that can be printed.
func hatter(t *testing.T) *App {
	t.Helper()
	app, err := New("hatter",
		WithScheme(hats("v1", "v2")),
		WithConverters(conversion.HubAndSpokes[*hubHat](hats("v1", "v2"))),
		WithWebhooks(admission.Mutating("default.hats.example.com", admission.Rules(hat.WithVersion("v2").GroupVersion().WithResource("hats")),
			admission.Mutate(func(context.Context, *spokeHat) error { return nil }, admission.ForKind(hat.WithVersion("v2"))))),
		WithController("hats", func(manager.Manager) error { return nil }),
		WithCRDs(hatCRD("v2", "v1"), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "caps.hats.example.com"}}),
		WithPolicyRules(rbacv1.PolicyRule{APIGroups: []string{hat.Group}, Resources: []string{"hats"}, Verbs: []string{"list", "watch"}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func manifests(t *testing.T, app *App, args ...string) (string, error) {
	t.Helper()
	command := app.Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(io.Discard)
	command.SetArgs(append([]string{"manifests"}, args...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// someAuthority is a PEM-encoded certificate.
func someAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestManifestsOfAnApplication(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.crt")
	bundle := someAuthority(t)
	if err := os.WriteFile(ca, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"registered-by-itself": {"--service", "shop/hatter"},
		"registered-by-others": {"--service", "shop/hatter:9443", "--conversion-service", "shop/hatter-conversion", "--registration", "None",
			"--certificate-source", "Files", "--ca-file", ca},
		"outside":           {"--url", "https://192.0.2.1:9443", "--part", "rbac"},
		"one-replica":       {"--service", "shop/hatter", "--leader-elect=false", "--service-account", "milliner", "--part", "rbac"},
		"lease-elsewhere":   {"--service", "shop/hatter", "--leader-election-namespace", "leases", "--part", "rbac"},
		"definitions-alone": {"--service", "shop/hatter", "--part", "crd"},
		"everything": {"--service", "shop/hatter", "--part", "namespace,crd,rbac,service,workload", "--image", "registry.example.com/hatter:v1",
			"--log-format", "json", "--excluded-namespaces", "kube-system,kube-node-lease"},
		"everything-registered-by-others": {"--service", "shop/hatter:9443", "--part", "namespace,crd,rbac,service,workload,configurations",
			"--image", "registry.example.com/hatter:v1", "--registration", "None", "--certificate-source", "Files", "--tls-secret", "hatter-tls",
			"--own-pods", "app=hatter", "--shared-namespace", "--metrics-bind-address", "127.0.0.1:8080", "--webhook-timeout", "5",
			"--drain-timeout", "20s", "--replicas", "3", "--memory-limit", "1Gi", "--annotation", "cert-manager.io/inject-ca-from=shop/hatter", "--label", "team=millinery", "--priority-class", "system-cluster-critical"},
		"webhooks-alone": {"--service", "shop/hatter", "--part", "rbac,service,workload", "--image", "registry.example.com/hatter:v1", "--controllers", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := manifests(t, hatter(t), args...)
			if err != nil {
				t.Fatal(err)
			}
			got = strings.ReplaceAll(got, base64.StdEncoding.EncodeToString(bundle), "that of --ca-file")
			path := filepath.Join("testdata", "manifests", name+".yaml")
			if golden.Update() {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The containers get arguments that the same program's command accepts.
func TestTheServerTakesTheArgumentsOfTheWorkload(t *testing.T) {
	got, err := manifests(t, hatter(t), "--service", "shop/hatter:9443", "--part", "workload", "--image", "registry.example.com/hatter:v1", "--registration", "None",
		"--certificate-source", "Files", "--tls-secret", "hatter-tls", "--own-pods", "app=hatter", "--excluded-namespaces", "a,b", "--private-paths=Never",
		"--tls-min-version", "VersionTLS13", "--log-level", "debug", "-v", "3", "--controllers", "*", "--drain-timeout", "20s", "--http2")
	if err != nil {
		t.Fatal(err)
	}
	deployment, _, _ := strings.Cut(got, "---")
	var object appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(deployment), &object); err != nil {
		t.Fatal(err)
	}
	args := object.Spec.Template.Spec.Containers[0].Args
	command := hatter(t).Command()
	if err := command.ParseFlags(args); err != nil {
		t.Fatalf("%v: %q", err, args)
	}
	for flag, want := range map[string]string{
		"service": "shop/hatter:9443", "conversion-service": "shop/hatter-conversion:9443", "excluded-namespaces": "[a,b]", "tls-cert-file": "/etc/hatter/tls/tls.crt",
		"tls-private-key-file": "/etc/hatter/tls/tls.key", "tls-min-version": "VersionTLS13", "verbosity": "3", "controllers": "[*]", "http2": "true", "registration": "None",
	} {
		if got := command.Flag(flag).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", flag, got, want)
		}
	}
}

func TestManifestsReportsEveryProblemInItsFlags(t *testing.T) {
	for name, tc := range map[string]struct{ args, want []string }{
		"no endpoint":         {nil, []string{"--service: registration.service: Required value: set it or url"}},
		"an argument":         {[]string{"rbac", "--service", "a/b"}, []string{`takes no arguments, but got "rbac"`}},
		"a part of something": {[]string{"--service", "a/b", "--part", "rbac,roles"}, []string{"--part", `"roles"`}},
		"no part":             {[]string{"--service", "a/b", "--part", ""}, []string{"--part is empty: choose namespace, crd, rbac, service, workload or configurations"}},
		"no certificate":      {[]string{"--service", "a/b", "--ca-file", filepath.Join(t.TempDir(), "none")}, []string{"--ca-file"}},
		"annotations":         {[]string{"--service", "a/b", "--annotation", "a b=c", "--label", "d=e f"}, []string{`--annotation: Invalid value: "a b"`, `--label: Invalid value: "e f"`}},
		"no Service":          {[]string{"--url", "https://192.0.2.1", "--part", "namespace,service"}, []string{"--part namespace needs --service", "--part service needs --service"}},
		"a workload without": {[]string{"--url", "https://192.0.2.1", "--part", "workload", "--replicas", "0", "--secure-port", "0", "--tls-secret", "tls", "--priority-class", "A b", "--memory-limit", "1Mi"},
			[]string{"needs --image", "needs --service", "--replicas 0", "--secure-port", "--tls-secret needs --certificate-source Files", `--priority-class "A b"`, "--memory-limit 1Mi"}},
		"what the server refuses": {[]string{"--service", "a/b", "--part", "workload", "--image", "i", "--controllers", "caps", "--log-level", "loud", "--read-timeout", "0s",
			"--authentication", "ClientCA", "--client-ca-file", "ca.crt", "--leader-elect-retry-period", "1h"},
			[]string{`--controllers: controllers: Unsupported value: "caps"`, `--log-level: log.level: Unsupported value: "loud"`, "--read-timeout: serving.readTimeout: ", "the file of --client-ca-file", "--leader-elect-renew-deadline: leaderElection.renewDeadline: "}},
		"a certificate from nowhere": {[]string{"--service", "a/b", "--part", "workload", "--image", "i", "--certificate-source", "Files"}, []string{"--certificate-source Files needs --tls-secret"}},
		"many": {[]string{"--service", "a", "--service-account", "A", "--conversion-service", "b", "--leader-election-namespace", "c.d"},
			[]string{"--service:", "--service-account \"A\"", "--conversion-service:", `--leader-election-namespace: leaderElection.namespace: Invalid value: "c.d"`}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := manifests(t, hatter(t), tc.args...)
			if err == nil || out != "" {
				t.Fatalf("got %v and\n%s", err, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
		})
	}
}

func TestManifestsHasTheFlagsAndPartsOfWhatIsRegistered(t *testing.T) {
	webhook := WithWebhooks(hatter(t).Webhooks()...)
	for name, tc := range map[string]struct {
		options     []Option
		part        string
		conversion  bool
		controllers bool
	}{
		"webhooks alone":  {[]Option{webhook}, "[rbac,configurations]", false, false},
		"converters":      {[]Option{WithConverters(conversion.APIVersionOnly(hat, "v1", "v2"))}, "[rbac,configurations]", true, false},
		"with definition": {[]Option{webhook, WithCRDs(hatCRD("v1"))}, "[crd,rbac,configurations]", false, false},
		"and controllers": {[]Option{webhook, WithController("c", func(manager.Manager) error { return nil })}, "[rbac,configurations]", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			app, err := New("hatter", tc.options...)
			if err != nil {
				t.Fatal(err)
			}
			flags := map[string]*pflag.Flag{}
			application.Manifests(app.installation()).Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = f })
			if got := flags["part"].DefValue; got != tc.part {
				t.Errorf("parts %s, want %s", got, tc.part)
			}
			if (flags["conversion-service"] != nil) != tc.conversion || (flags["leader-election-namespace"] != nil) != tc.controllers {
				t.Errorf("--conversion-service %v, --leader-election-namespace %v", flags["conversion-service"], flags["leader-election-namespace"])
			}
		})
	}
	app, err := New("controllers", WithController("c", func(manager.Manager) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if command, _, err := app.Command().Find([]string{"manifests"}); err == nil && command.Name() == "manifests" {
		t.Error("controllers alone have manifests, with nothing in them")
	}
}

func TestDefinitionsMustHaveConvertersForAllServedVersions(t *testing.T) {
	converters := WithConverters(conversion.HubAndSpokes[*hubHat](hats("v1", "v2")))
	notServed := hatCRD("v1", "v2", "v3")
	notServed.Spec.Versions[2].Served = false
	for name, tc := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want string
	}{
		"all are known":                {hatCRD("v1", "v2"), ""},
		"fewer are served":             {hatCRD("v2"), ""},
		"an unknown one is not served": {notServed, ""},
		"an unknown one is served":     {hatCRD("v1", "v2", "v3"), "CustomResourceDefinition hats.hats.example.com: "},
		"the definition is nil":        {nil, "CustomResourceDefinition 1 is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New("hatter", converters, WithCRDs(tc.crd))
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
