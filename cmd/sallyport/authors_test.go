// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/status"
)

// TestNothingButTheirFlagOpensTheWebhookForAuthors: selectors and settings for pods must not
// weaken the webhook that decides who may write PodDefaults.
func TestNothingButTheirFlagOpensTheWebhookForAuthors(t *testing.T) {
	config := file(t, "sallyport.yaml", configHead+`webhooks:
- name: poddefault
  failurePolicy: Ignore
  objectSelector: {matchLabels: {a: b}}
  namespaceSelector: {matchLabels: {c: d}}
  matchConditions: [{name: x, expression: object.spec.hostNetwork == true}]
`)
	printed := sallyport(t, "manifests", "--part", "configurations", "--service", service, "--config", config, "--failure-policy", "Ignore").wantOK(t)
	asking, judging, _ := strings.Cut(printed, "kind: ValidatingWebhookConfiguration")
	if n := strings.Count(asking, "expression: object.spec.hostNetwork == true"); n != strings.Count(asking, "clientConfig:") {
		t.Errorf("the conditions of the entry are in %d of the webhooks that change pods:\n%s", n, asking)
	}
	if !strings.Contains(judging, "failurePolicy: Fail") || strings.Contains(judging, "hostNetwork") || strings.Contains(judging, "a: b") || strings.Contains(judging, "c: d") ||
		!strings.Contains(judging, "name: "+author.Name) {
		t.Errorf("printed%s", judging)
	}
	for _, mode := range []string{"warn", "off"} {
		printed := sallyport(t, "manifests", "--part", "configurations", "--service", service, "--config", configured(t, "webhooks: [{name: poddefault, settings: {authorizeAuthors: '"+mode+"'}}]\n")).wantOK(t)
		if _, judging, _ := strings.Cut(printed, "kind: ValidatingWebhookConfiguration"); !strings.Contains(judging, "failurePolicy: Ignore") {
			t.Errorf("%s: printed%s", mode, judging)
		}
	}
	sallyport(t, "config", "check", file(t, "bad.yaml", configHead+"webhooks: [{name: poddefault, settings: {authorizeAuthors: maybe}}]\n")).wantError(t, `webhooks[0].settings.authorizeAuthors: Unsupported value: "maybe": supported values: "enforce", "warn", "off"`)
}

func TestRightsFollowFromWhatRuns(t *testing.T) {
	resources := func(args ...string) string {
		t.Helper()
		printed := sallyport(t, append([]string{"manifests", "--part", "rbac", "--service", service}, args...)...).wantOK(t)
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(strings.Split(printed, "---\n")[0]), &role); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, rule := range role.Rules {
			all = append(all, strings.Join(rule.Verbs, "+")+" "+strings.Join(rule.Resources, "+"))
		}
		return strings.Join(all, "\n")
	}
	if got := resources(); !strings.Contains(got, "create subjectaccessreviews") || !strings.Contains(got, "patch poddefaults/status") {
		t.Errorf("by default:\n%s", got)
	}
	if got := resources("--config", configured(t, "webhooks: [{name: poddefault, settings: {authorizeAuthors: 'off'}}]\n")); strings.Contains(got, "subjectaccessreviews") {
		t.Errorf("with nobody asked:\n%s", got)
	}
	for _, args := range [][]string{{"--controllers=-" + status.Name}, {"--controllers="}, {"--webhooks", "imagepull"}} {
		if got := resources(args...); strings.Contains(got, "status") || strings.Contains(got, "events") {
			t.Errorf("with %v:\n%s", args, got)
		}
	}
	sallyport(t, "manifests", "--part", "rbac", "--service", service, "--controllers", "poddefault").wantError(t, `--controllers: controllers: Unsupported value: "poddefault": supported values: "poddefault-status"`)
}

func TestReviewJudgesPodDefaults(t *testing.T) {
	got := sallyportWith(t, "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: x, namespace: team-a}\nspec: {selector: {}, env: [{name: A}, {name: A, value: b}]}\n", "review", "-f", "-")
	if got.status != exitDenied || !strings.Contains(got.stderr, "spec.env[1].name: Duplicate value") {
		t.Errorf("status %d, stderr:\n%s", got.status, got.stderr)
	}
}
