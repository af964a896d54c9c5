// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePluginKnowsItsNames(t *testing.T) {
	for program, want := range map[string][]string{
		"/usr/bin/sallyport":                 {"", "explain"},
		"/usr/bin/kubectl-sallyport":         {"kubectl sallyport", "explain"},
		"kubectl-sallyport.exe":              {"kubectl sallyport", "explain"},
		"/x/kubectl_complete-sallyport":      {"kubectl sallyport", "__complete", "explain"},
		"/x/kubectl_complete-sallyport-else": {"", "explain"},
	} {
		title, args := asPlugin(program, []string{"explain"})
		if got := append([]string{title}, args...); !cmp.Equal(got, want) {
			t.Errorf("%s: %q", program, got)
		}
	}
	var stdout, stderr strings.Builder
	if status := runAs(t.Context(), "kubectl sallyport", []string{"explain", "--help"}, strings.NewReader(""), &stdout, &stderr); status != exitOK ||
		!strings.Contains(stdout.String(), "  kubectl sallyport explain TYPE/NAME") || !strings.Contains(stdout.String(), "  kubectl sallyport explain pod/web-0") ||
		strings.Contains(stdout.String(), "kubectl kubectl") {
		t.Errorf("status %d\n%s%s", status, stdout.String(), stderr.String())
	}
	stdout.Reset()
	if status := runAs(t.Context(), "kubectl sallyport", []string{"rollout", "diff", "--help"}, strings.NewReader(""), &stdout, &stderr); status != exitOK ||
		!strings.Contains(stdout.String(), "\n  kubectl sallyport rollout diff poddefault/proxy") || !strings.Contains(stdout.String(), "'kubectl sallyport diff' shows") {
		t.Errorf("status %d\n%s%s", status, stdout.String(), stderr.String())
	}
}
