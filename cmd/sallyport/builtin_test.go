// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/test/golden"
)

const top = "../.."

func readTop(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{top}, elements...)...))
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// TestEveryReadyMadeWebhookHasTheShape checks the layout in cmd/internal/webhooks/README.md.
func TestEveryReadyMadeWebhookHasTheShape(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(top, "cmd", "internal", "webhooks"))
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{"persistentvolumelabel", "poddefault"}
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, entry.Name())
		}
	}
	slices.Sort(folders)
	here := serve.Builtins()
	all := slices.Concat(here, serve.HostedByOthers())
	var listed []string
	for _, b := range all {
		listed = append(listed, b.Name)
	}
	slices.Sort(listed)
	if diff := cmp.Diff(folders, listed); diff != "" {
		t.Errorf("folders of webhooks/ and what is listed (-folders +list):\n%s", diff)
	}
	overview := readTop(t, "cmd", "internal", "webhooks", "README.md")
	for i, b := range all {
		t.Run(b.Name, func(t *testing.T) {
			if !strings.Contains(overview, "["+b.Name+"](") || !strings.Contains(overview, "](../../../"+b.Docs+")") {
				t.Error("cmd/internal/webhooks/README.md has no row for it, or another page")
			}
			checkSources(t, b.Name)
			checkCases(t, b.Name)
			page := readTop(t, b.Docs)
			webhooks, err := b.Default()
			if err != nil || len(webhooks) == 0 {
				t.Fatalf("the default settings define %d webhooks: %v", len(webhooks), err)
			}
			for _, webhook := range webhooks {
				if i >= len(here) { // another program hosts it, together with its handler
					webhook.Handler = admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
						return admission.Allowed(), nil
					})
				}
				if err := webhook.Problems(); err != nil {
					t.Error(err)
				}
				if !strings.HasSuffix(webhook.Name, b.Name+".sallyport.io") || !strings.Contains(page, "`"+webhook.Name+"`") && !strings.Contains(page, `"`+webhook.Name+`"`) {
					t.Errorf("%s: the name does not end in the folder's, or %s does not tell it", webhook.Name, b.Docs)
				}
			}
		})
	}
}

// folderOf returns the folder of a ready-made webhook.
func folderOf(name string) string {
	switch name {
	case "poddefault":
		return "cmd/internal/poddefault"
	case "persistentvolumelabel":
		return "internal/hosting/persistentvolumelabel"
	default:
		return "cmd/internal/webhooks/" + name
	}
}

// checkSources checks the files of a folder and their content.
func checkSources(t *testing.T, name string) {
	t.Helper()
	if webhook := readTop(t, folderOf(name), "webhook.go"); !strings.Contains(webhook, "// Package "+name+" ") ||
		!regexp.MustCompile(`(?m)^func New\(`).MatchString(webhook) {
		t.Error("webhook.go has no comment of the package, or no New")
	}
	var sources, tests strings.Builder
	files, err := filepath.Glob(filepath.Join(top, folderOf(name), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		into := &sources
		if strings.HasSuffix(file, "_test.go") {
			into = &tests
		}
		into.WriteString(readTop(t, folderOf(name), filepath.Base(file)))
	}
	for _, want := range []string{`type Settings struct`, `func DefaultSettings\(\) Settings`, `func \(s Settings\) Validate\(\) error`} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(sources.String()) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, want := range []string{"func TestCases(", "func TestSettingsReportEveryProblem(", "func Fuzz", "rapid.Check("} {
		if !strings.Contains(tests.String(), want) {
			t.Errorf("the tests have no %s", want)
		}
	}
}

// checkCases checks that each case has an object and exactly one result.
func checkCases(t *testing.T, name string) {
	t.Helper()
	cases, err := filepath.Glob(filepath.Join(top, folderOf(name), "testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Errorf("there are %d cases", len(cases))
	}
	for _, path := range cases {
		archive := golden.Open(t, path)
		there := func(name string) bool { return archive.File(name) != nil }
		if !there("object.yaml") {
			t.Errorf("%s: object.yaml is needed", path)
		}
		if there("want.yaml") == there("want.txt") {
			t.Errorf("%s: one of want.yaml and want.txt is needed", path)
		}
	}
}

func TestWebhooksListShowsAll(t *testing.T) {
	want := `NAME          DEFAULT  DOES                                                        REQUESTS
poddefault    on       inject the PodDefaults of the namespace into pods     CREATE pods, CREATE poddefaults.kubeflow.org, UPDATE poddefaults.kubeflow.org, CREATE clusterpoddefaults.sallyport.io, UPDATE clusterpoddefaults.sallyport.io, CREATE poddefaultrevisions.sallyport.io, UPDATE poddefaultrevisions.sallyport.io, CREATE clusterpoddefaultrevisions.sallyport.io, UPDATE clusterpoddefaultrevisions.sallyport.io
imagepull     off      always pull images, from allowed registries, by a version   CREATE pods, UPDATE pods/ephemeralcontainers, UPDATE pods
servicetype   off      refuse load balancers, node ports, external names and IPs   CREATE services, UPDATE services
projectlimit  off      give each requester at most so many projects                CREATE namespaces, CREATE projectrequests.project.openshift.io, UPDATE namespaces, UPDATE namespaces/status, UPDATE namespaces/finalize
dataset       off      let pods land where the data of their Fluid datasets is cached  CREATE pods
podtemplate   off      warn of workloads whose pods PodDefaults would refuse  CREATE deployments.apps, UPDATE deployments.apps, CREATE statefulsets.apps, UPDATE statefulsets.apps, CREATE daemonsets.apps, UPDATE daemonsets.apps, CREATE replicasets.apps, UPDATE replicasets.apps, CREATE jobs.batch, UPDATE jobs.batch, CREATE cronjobs.batch, UPDATE cronjobs.batch, CREATE notebooks.kubeflow.org, UPDATE notebooks.kubeflow.org
persistentvolumelabel  -  label volumes with zone and region of their disks (in cloud controller managers only)  CREATE persistentvolumes, UPDATE persistentvolumes
`
	got := sallyport(t, "webhooks").wantOK(t)
	spaces := regexp.MustCompile(` +`)
	if diff := cmp.Diff(spaces.ReplaceAllString(want, " "), spaces.ReplaceAllString(got, " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sallyport(t, "webhooks", "-o", "name").want(t, exitOK, "poddefault\nimagepull\nservicetype\nprojectlimit\ndataset\npodtemplate\npersistentvolumelabel\n", "")
	sallyport(t, "webhooks", "-o", "xml").wantError(t, `--output "xml": choose text, json, yaml or name`)
	sallyport(t, "webhooks", "poddefault").wantError(t, "it lists all of them")
}

func TestSelectionsOfWebhooksThatAreWrong(t *testing.T) {
	for _, command := range [][]string{
		append(quick(t), "--log-level", "error"), {"manifests", "--service", service}, {"review", "-f", "not-there.yaml"},
	} {
		for selection, want := range map[string]string{
			"poddefaults,imagepull": `webhooks: Unsupported value: "poddefaults": supported values: "poddefault", "imagepull"`,
			"-poddefault":           "enables none",
			"persistentvolumelabel": "persistentvolumelabel is hosted by cloud controller managers",
			"":                      "enables none",
		} {
			sallyport(t, append(command, "--webhooks", selection)...).wantError(t, "--webhooks", want)
		}
	}
}

func TestReviewAsksTheWebhooksThatAreSelected(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: team-a}\nspec: {containers: [{name: app, image: app:1, imagePullPolicy: IfNotPresent}]}\n"
	if out := sallyportWith(t, pod, "review", "-f", "-").wantOK(t); strings.Contains(out, "Always") {
		t.Errorf("imagepull takes part without being asked:\n%s", out)
	}
	if out := sallyportWith(t, pod, "review", "-f", "-", "--webhooks", "imagepull").wantOK(t); !strings.Contains(out, "imagePullPolicy: Always") || !strings.Contains(out, "imagepull: alwaysPull") {
		t.Errorf("printed\n%s", out)
	}
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: team-a}\nspec: {type: NodePort}\n"
	if got := sallyportWith(t, service, "review", "-f", "-", "--webhooks", "*"); got.status != exitDenied || !strings.Contains(got.stderr, "spec.type NodePort is not allowed here") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
}

func TestReviewCountsTheNamespacesThatAreGiven(t *testing.T) {
	var text strings.Builder
	for _, name := range strings.Split("abcdefghij", "") {
		text.WriteString("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + ", annotations: {sallyport.io/requester: alice}}\n")
	}
	given := file(t, "namespaces.yaml", text.String())
	args := []string{"review", "-f", "-", "--webhooks", "projectlimit", "--with", given, "--as"}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n"
	if got := sallyportWith(t, namespace, append(args, "alice")...); got.status != exitDenied || !strings.Contains(got.stderr, "you have 10 of at most 10 projects") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
	if out := sallyportWith(t, namespace, append(args, "bob")...).wantOK(t); !strings.Contains(out, "sallyport.io/requester: bob") {
		t.Errorf("printed\n%s", out)
	}
	if out := sallyportWith(t, namespace, append(args, "alice", "--as-group", "system:masters")...).wantOK(t); strings.Contains(out, "requester") {
		t.Errorf("an exempt user is stamped:\n%s", out)
	}
	sallyportWith(t, namespace, "review", "-f", "-", "--as", "").wantError(t, "--as must not be empty")
	nameless := file(t, "nameless.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {}\n")
	sallyportWith(t, namespace, "review", "-f", "-", "--webhooks", "projectlimit", "--with", nameless).wantError(t, "nameless.yaml:", "has no metadata.name")
}
