// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

const service = "sallyport-system/webhooks"

// TestManifestsAreTheGoldenOnes fails if the server gets more permissions, or if the API server
// calls it for more requests. Run with -update only if that is intended.
func TestManifestsAreTheGoldenOnes(t *testing.T) {
	for name, args := range map[string][]string{
		"rbac":                               {"--part", "rbac", "--service", service},
		"rbac-with-other-names":              {"--part", "rbac", "--service", service, "--configuration-name", "hooks", "--service-account", "robot", "--authority-secret", "safe/authority"},
		"rbac-with-certificate-from-files":   {"--part", "rbac", "--service", service, "--certificate-source", "Files"},
		"rbac-without-registration":          {"--part", "rbac", "--service", service, "--registration", "None"},
		"rbac-with-owner":                    {"--part", "rbac", "--service", service, "--owner", "clusterrole/sallyport"},
		"rbac-outside-of-the-cluster":        {"--part", "rbac", "--url", "https://127.0.0.1:9443"},
		"rbac-outside-with-authority-secret": {"--part", "rbac", "--url", "https://127.0.0.1:9443", "--authority-secret", "safe/authority"},
		"rbac-with-delegated-authentication": {"--part", "rbac", "--service", service, "--authentication", "Delegated"},
		"rbac-with-metrics-for-some":         {"--part", "rbac", "--service", service, "--metrics-authentication", "Delegated"},
		"rbac-with-recent-reviews": {
			"--part", "rbac", "--service", service, "--metrics-authentication", "Delegated",
			"--config", configured(t, "recording: {recentReviews: 100, samplingRatePerMillion: 1000000}\n"),
		},
		"rbac-outside-with-delegated":        {"--part", "rbac", "--url", "https://127.0.0.1:9443", "--authentication", "Delegated"},
		"rbac-with-network-policy":           {"--part", "rbac", "--service", service, "--network-policy", "--api-server-cidrs", "10.0.0.1/32,fd00::1/128"},
		"rbac-with-every-webhook":            {"--part", "rbac", "--service", service, "--webhooks", "*", "--authentication", "Delegated"},
		"rbac-with-webhooks-that-only-look":  {"--part", "rbac", "--service", service, "--webhooks", "*,-poddefault,-podtemplate,-projectlimit,-dataset"},
		"rbac-with-datasets-and-no-sidecars": {"--part", "rbac", "--service", service, "--config", "testdata/dataset.yaml"},
		"configurations-with-the-older-mode": {"--part", "configurations", "--service", service, "--config", "testdata/dataset.yaml"},
		"user-roles":                         {"--part", "user-roles", "--service", service},
		"flowcontrol":                        {"--part", "flowcontrol", "--service", service},
		"configurations-with-a-backstop":     {"--part", "configurations", "--service", service, "--config", configured(t, "webhooks: [{name: poddefault, settings: {guard: Backstop}}]\n"), "--namespace-selector", "team"},
		"configurations-of-every-webhook":    {"--part", "configurations", "--service", service, "--webhooks", "*"},
		"configurations":                     {"--part", "configurations", "--service", service},
		"configurations-with-other-settings": {
			"--part", "configurations", "--service", service + ":8443", "--configuration-name", "hooks", "--failure-policy", "Ignore",
			"--config", configured(t, "registration: {timeoutSeconds: 30, reviewVersions: [v1], excludedNamespaces: [b, a, kube-system], sharedNamespace: true, ownPods: app=hooks}\n"),
			"--namespace-selector", "app.kubernetes.io/part-of=kubeflow-profile,tier notin (x,y)",
		},
		"namespace": {"--part", "namespace", "--service", service},
		"workload":  {"--part", "workload", "--service", service, "--image", "registry.example.com/sallyport:v1"},
		"workload-with-other-settings": {
			"--part", "workload", "--service", service + ":8443", "--image", "registry.example.com/sallyport:v1", "--replicas", "3", "--secure-port", "10250",
			"--priority-class", "", "--certificate-source", "Files", "--tls-secret", "leaf", "--configuration-name", "hooks", "--service-account", "robot",
			"--webhooks", "*,-projectlimit", "--failure-policy", "Ignore", "--config", "testdata/workload.yaml",
		},
		"configurations-outside-of-the-cluster": {"--part", "configurations", "--url", "https://127.0.0.1:9443/behind/", "--config", configured(t, "registration: {excludedNamespaces: [], allowWedge: a test}\n")},
	} {
		t.Run(strings.ReplaceAll(name, "-", " "), func(t *testing.T) {
			equal(t, filepath.Join("manifests", name+".yaml"), sallyport(t, append([]string{"manifests"}, args...)...).wantOK(t))
		})
	}
	t.Run("policies", func(t *testing.T) {
		equal(t, filepath.Join("manifests", "policies.yaml"), sallyport(t, "export", "-f", "testdata/poddefaults.yaml").wantOK(t))
	})
}

func TestRightsAreNeverForEverything(t *testing.T) {
	files, err := filepath.Glob("testdata/manifests/rbac*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	for _, name := range files {
		objects, err := manifest.Read([]string{name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if !strings.HasSuffix(object.Kind, "Role") {
				continue
			}
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal(object.Raw, &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames, rule.NonResourceURLs)
				if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "*") }) {
					t.Errorf("%s: %s: a wildcard in %+v", object.At(), object.Title(), rule)
				}
				if slices.Contains(rule.Resources, "secrets") && object.Kind == "ClusterRole" {
					t.Errorf("%s: Secrets of all namespaces: %+v", object.At(), rule)
				}
			}
		}
	}
}

func TestPartsAreThoseThatWereAskedFor(t *testing.T) {
	kinds := func(args ...string) []string {
		t.Helper()
		printed := sallyport(t, append([]string{"manifests"}, args...)...).wantOK(t)
		objects, _, err := manifest.Parse("stdout", []byte(printed))
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, object := range objects {
			kinds = append(kinds, object.Kind)
		}
		return kinds
	}
	rights := []string{"ClusterRole", "ClusterRoleBinding", "ServiceAccount", "Role", "RoleBinding", "Role", "RoleBinding"}
	configurations := []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	definitions := append(slices.Repeat([]string{"CustomResourceDefinition"}, 5), "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	for _, tc := range []struct {
		args, want []string
	}{
		{[]string{"--service", service}, slices.Concat(definitions, rights, []string{"ClusterRole", "ClusterRole", "PriorityLevelConfiguration", "FlowSchema"}, configurations)},
		{[]string{"--service", service, "--part", "configurations", "--part", "crd"}, slices.Concat(definitions, configurations)},
		{[]string{"--service", service, "--part", "rbac,configurations"}, slices.Concat(rights, configurations)},
		{[]string{"--part", "crd"}, definitions}, // needs no settings of the server
	} {
		if diff := cmp.Diff(tc.want, kinds(tc.args...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.args, diff)
		}
	}
}

func TestTheCRDsAreTheGeneratedOnesWithoutTheirStatus(t *testing.T) {
	printed := sallyport(t, "manifests", "--part", "crd").wantOK(t)
	if strings.Contains(printed, "\nstatus:") {
		t.Error("one has a status")
	}
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(printed, "\n---\n")
	if want := len(all) + 2; len(documents) != want { // who may exempt: a policy and its binding
		t.Fatalf("%d documents, want %d", len(documents), want)
	}
	for i, want := range all {
		var got apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(documents[i]), &got); err != nil {
			t.Fatal(err)
		}
		want.Status, got.Status = apiextensionsv1.CustomResourceDefinitionStatus{}, apiextensionsv1.CustomResourceDefinitionStatus{}
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestCAFileBecomesTheCABundle(t *testing.T) {
	authority, err := certificate.NewAuthority(certificate.AuthorityOptions{DNSNames: []string{"webhooks.sallyport-system.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	ca := string(authority.CABundle())
	args := []string{"manifests", "--part", "configurations", "--service", service, "--ca-file"}
	printed := sallyport(t, append(args, file(t, "ca.crt", ca))...).wantOK(t)
	var got admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(printed), &got); err != nil {
		t.Fatal(err)
	}
	if bundle := string(got.Webhooks[0].ClientConfig.CABundle); bundle != ca {
		t.Errorf("caBundle\n%s\nwant\n%s", bundle, ca)
	}

	for name, tc := range map[string]struct{ path, want string }{
		"a file that is not there":     {filepath.Join(t.TempDir(), "no.crt"), "--ca-file: open"},
		"an empty file":                {file(t, "empty.crt", ""), "is empty; omit the flag"},
		"a file without a certificate": {file(t, "text.crt", "hello"), "PEM"},
		"a file with a key":            {file(t, "key.crt", ca+"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "PRIVATE KEY"},
		"a folder instead of a file":   {os.TempDir(), "--ca-file: read"},
	} {
		t.Run(name, func(t *testing.T) {
			sallyport(t, append(args, tc.path)...).wantError(t, tc.want)
		})
	}
}

func TestProblemsInFlagsOfManifestsAreAllNamed(t *testing.T) {
	sallyport(t, "manifests").wantError(t, "--service or --url is required")
	sallyport(t, "manifests", "--part", "").wantError(t, "--part is empty: choose namespace, crd, rbac, user-roles, flowcontrol, workload or configurations")
	sallyport(t, "manifests", "--part", "crds,rbac", "--service", "webhooks", "--failure-policy", "ignore",
		"--service-account", "R2D2", "--authority-secret", "x").wantError(t,
		`--part "crds": choose namespace, crd, rbac, user-roles, flowcontrol, workload or configurations`, "--service: registration.service.namespace: Required value",
		`--failure-policy: registration.failurePolicy: Unsupported value: "ignore": supported values: "Fail", "Ignore"`, `--service-account "R2D2"`, `--authority-secret: certificate.authoritySecret: Invalid value: "x": write NAMESPACE/NAME`)
}

func TestProblemsInFlagsOfAWorkloadAreAllNamed(t *testing.T) {
	sallyport(t, "manifests", "--part", "namespace,workload", "--url", "https://127.0.0.1:9443", "--replicas", "0", "--secure-port", "8080",
		"--priority-class", "A", "--certificate-source", "Files", "--authentication", "ClientCA", "--registration", "Manifest").wantError(t,
		"--part workload needs --image", "--part workload needs --service", "--replicas 0", "--secure-port 8080 is that of metrics",
		`--priority-class "A"`, "--certificate-source Files needs --tls-secret", "--client-ca-file", "config/static", "--part namespace needs --service")
	sallyport(t, "manifests", "--part", "workload", "--service", service, "--image", "x", "--tls-secret", "leaf", "--secure-port", "70000").wantError(t,
		"--tls-secret needs --certificate-source Files", "--secure-port 70000")
	sallyport(t, "manifests", "--part", "workload", "--service", service, "--image", "x", "--config", filepath.Join(t.TempDir(), "no.yaml")).wantError(t, "no.yaml")
}

// serve accepts the arguments of the printed pod.
func TestServeTakesTheArgumentsOfTheWorkload(t *testing.T) {
	for _, name := range []string{"workload", "workload-with-other-settings"} {
		objects, err := manifest.Read([]string{filepath.Join("testdata/manifests", name+".yaml")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, object := range objects {
			if object.Kind != "Deployment" {
				continue
			}
			var deployment appsv1.Deployment
			if err := yaml.UnmarshalStrict(object.Raw, &deployment); err != nil {
				t.Fatal(err)
			}
			seen = true
			cmd := newServeCommand()
			container := deployment.Spec.Template.Spec.Containers[0]
			if err := cmd.ParseFlags(container.Args[1:]); err != nil {
				t.Fatal(err)
			}
			config, err := serve.Load("", setting.GivenTo(cmd.Flags())) // the file does not exist here
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if port := container.Ports[0].ContainerPort; port != config.Serving.SecurePort {
				t.Errorf("%s: the container has port %d, and the server %d", name, port, config.Serving.SecurePort)
			}
		}
		if !seen {
			t.Errorf("%s has no Deployment", name)
		}
	}
}
