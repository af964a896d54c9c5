// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const batchYAML = podDefaultYAML + "  priorityClassName: batch\n"

func TestWhatTheFilesLackIsUnknownUnlessThatIsAllowed(t *testing.T) {
	with := file(t, "with.yaml", batchYAML)
	const what = "Pod matching: whether the PriorityClass batch exists, which PodDefault default/proxy sets: it is not in the files"
	got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with)
	if got.status != exitError || !strings.Contains(got.stderr, "not known: "+what+"\n") || !strings.Contains(got.stderr, "--allow-unknown accepts that") || !strings.Contains(got.stdout, "batch") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "--allow-unknown"); got.status != exitOK || got.stderr != "not known: "+what+"\n" {
		t.Errorf("allowed: status %d\n%s", got.status, got.stderr)
	}
	class := file(t, "class.yaml", "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: batch}, value: 7}")
	sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "--with", class).wantOK(t)
	for format, want := range map[string]string{"junit": "<error", "github": "::error", "sarif": `"level": "error"`} {
		if got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "-o", format); got.status != exitError || !strings.Contains(got.stdout, want) || !strings.Contains(got.stdout, "whether the PriorityClass batch exists") {
			t.Errorf("%s: status %d\n%s", format, got.status, got.stdout)
		}
		if got := sallyportWith(t, matchingYAML, "review", "-f", "-", "--with", with, "-o", format, "--allow-unknown"); got.status != exitOK || strings.Contains(got.stdout, want) {
			t.Errorf("%s, allowed: status %d\n%s", format, got.status, got.stdout)
		}
	}
}

func TestWhatPluginsRefuseIsDenied(t *testing.T) {
	priority := strings.Replace(matchingYAML, "spec:\n", "spec:\n  priority: 5\n", 1)
	got := sallyportWith(t, priority, "review", "-f", "-", "--with", file(t, "with.yaml", podDefaultYAML))
	if got.status != exitDenied || !strings.Contains(got.stderr, "denied: Pod matching: Priority: spec.priority is 5") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

// TestReviewEvaluatesPodSecurityAsTheReleaseDoes has a sysctl that is safe since Kubernetes 1.37.
func TestReviewEvaluatesPodSecurityAsTheReleaseDoes(t *testing.T) {
	pod := strings.Replace(matchingYAML, "spec:\n", "spec:\n  securityContext: {sysctls: [{name: net.ipv4.tcp_notsent_lowat, value: '1'}]}\n", 1)
	with := file(t, "with.yaml", podDefaultYAML+"---\n{apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {pod-security.kubernetes.io/enforce: baseline}}}\n")
	for version, want := range map[string]int{"": exitOK, "1.37.1": exitOK, "1.36": exitDenied, "1.34.4": exitDenied, "1.99": exitError, "1.2": exitError} {
		args := []string{"review", "-f", "-", "--with", with}
		if version != "" {
			args = append(args, "--kubernetes-version", version)
		}
		got := sallyportWith(t, pod, args...)
		if got.status != want || want == exitDenied && !strings.Contains(got.stderr, "sysctls") || version == "1.99" && !strings.Contains(got.stderr, "PodSecurity of Kubernetes 1.99") {
			t.Errorf("%q: status %d\n%s%s", version, got.status, got.stdout, got.stderr)
		}
	}
	if got := sallyportWith(t, pod, "review", "-f", "-", "--server", "--kubernetes-version", "1.36"); got.status != exitError || !strings.Contains(got.stderr, "cannot be used with --server") {
		t.Errorf("%+v", got)
	}
}

func TestWhatCouldRefuseEveryPodIsOneNote(t *testing.T) {
	two := matchingYAML + "---\n" + strings.Replace(matchingYAML, "name: matching", "name: other", 1)
	note := "note: not decided without a cluster: whether the pods suit the Namespace, ResourceQuotas, LimitRanges and ServiceAccount default of team-a; --with takes them\n"
	if got := sallyportRaw(t, two, "review", "-n", "team-a", "-f", "-"); got.status != exitOK || strings.Count(got.stderr, "not decided") != 1 || !strings.Contains(got.stderr, note) {
		t.Errorf("status %d\n%s", got.status, got.stderr)
	}
	all := file(t, "all.yaml", `
{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: team-a}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: r, namespace: team-a}, spec: {limits: []}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: team-a}, spec: {hard: {services: "1"}}}
`)
	if got := sallyportRaw(t, two, "review", "-n", "team-a", "-f", "-", "--with", all); got.status != exitOK || strings.Contains(got.stderr, "note") {
		t.Errorf("all is there: status %d\n%s", got.status, got.stderr)
	}
}
