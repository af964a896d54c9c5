// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"regexp"
	"strings"
	"testing"
)

func TestEveryProblemOnTheCommandLineIsTold(t *testing.T) {
	_, err := parseSettings([]string{"-runs", "0", "more"}, io.Discard)
	for _, part := range []string{"-testwebhook", "-runs 0", `"more"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	s, err := parseSettings([]string{"-testwebhook", "bin/testwebhook"}, io.Discard)
	if err != nil || s.runs != 1 || !strings.HasPrefix(s.webhook, "/") {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestTheFocusIsOnBothGroupsAndNoOther(t *testing.T) {
	focus := regexp.MustCompile(groups)
	for name, want := range map[string]bool{
		"[sig-api-machinery] AdmissionWebhook [Privileged:ClusterAdmin] should mutate configmap [Conformance]":                            true,
		"[sig-api-machinery] CustomResourceConversionWebhook [Privileged:ClusterAdmin] should be able to convert from CR v1 to CR v2":     true,
		"[sig-api-machinery] CustomResourceDefinition Watch [Privileged:ClusterAdmin] watch on custom resource definition objects":        false,
		"[sig-api-machinery] MutatingAdmissionPolicy [Privileged:ClusterAdmin] should support MutatingAdmissionPolicy API operations":     false,
		"[sig-api-machinery] ValidatingAdmissionPolicy [Privileged:ClusterAdmin] should allow expressions to refer variables and webhook": false,
	} {
		if focus.MatchString(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}

func TestANodeIsReadyWithoutTaint(t *testing.T) {
	for text, want := range map[string]bool{
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`:                                                            true,
		`{"spec":{"taints":[{"key":"node.kubernetes.io/not-ready"}]},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`: false,
		`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`:                                                           false,
		`{}`: false,
		`{`:  false,
	} {
		if err := nodeReady([]byte(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
