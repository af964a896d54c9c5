// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// complete requests completions like the shell scripts do. It returns them without
// descriptions.
func complete(t *testing.T, words ...string) ([]string, cobra.ShellCompDirective) {
	t.Helper()
	got := sallyport(t, append([]string{cobra.ShellCompRequestCmd}, words...)...)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	last := lines[len(lines)-1]
	directive, err := strconv.Atoi(strings.TrimPrefix(last, ":"))
	if got.status != exitOK || err != nil {
		t.Fatalf("%v: status %d, stdout:\n%s", words, got.status, got.stdout)
	}
	offered := []string{}
	for _, line := range lines[:len(lines)-1] {
		value, _, _ := strings.Cut(line, "\t")
		offered = append(offered, value)
	}
	return offered, cobra.ShellCompDirective(directive)
}

func TestFlagsCompleteTheirChoices(t *testing.T) {
	for _, tc := range []struct {
		words []string
		want  []string
	}{
		{[]string{"review", "--operation", ""}, []string{"CREATE", "UPDATE", "DELETE"}},
		{[]string{"review", "--operation", "U"}, []string{"UPDATE"}},
		{[]string{"review", "--operation=D"}, []string{"DELETE"}},
		{[]string{"review", "-f", "pod.yaml", "-o", ""}, []string{"diff", "yaml", "json", "patch", "review", "junit", "sarif", "github"}},
		{[]string{"review", "--output", "p"}, []string{"patch"}},
		{[]string{"review", "--validate", ""}, []string{"strict", "warn", "ignore"}},
		{[]string{"preview", "--validate", "w"}, []string{"warn"}},
		{[]string{"review", "--color", ""}, []string{"auto", "always", "never"}},
		{[]string{"review", "--only", "v"}, []string{"validate.imagepull.sallyport.io"}},
		{[]string{"serve", "--webhooks", ""}, []string{"poddefault", "imagepull", "servicetype", "projectlimit", "dataset", "podtemplate"}},
		{[]string{"manifests", "--webhooks", "poddefault,i"}, []string{"poddefault,imagepull"}},
		{[]string{"webhooks", "-o", ""}, []string{"text", "json", "yaml", "name"}},
		{[]string{"version", "-o", "j"}, []string{"json"}},
		{[]string{"rollout", ""}, []string{"abort", "diff", "history", "promote", "restart", "status", "undo"}},
		{[]string{"rollout", "status", "-o", ""}, []string{"text", "json", "yaml"}},
		{[]string{"review", "--only", "poddefault.sallyport.io", "--only", "po"}, []string{"poddefault.sallyport.io", "podtemplate.sallyport.io"}},
		{[]string{"review", "--only", "x"}, []string{}},
		{[]string{"serve", "--registration", ""}, []string{"API", "Manifest", "None"}},
		{[]string{"serve", "--certificate-source", ""}, []string{"Authority", "Files"}},
		{[]string{"serve", "--authentication", ""}, []string{"None", "ClientCA", "Delegated"}},
		{[]string{"manifests", "--authentication", "D"}, []string{"Delegated"}},
		{[]string{"serve", "--failure-policy", ""}, []string{"Fail", "Ignore"}},
		{[]string{"serve", "--log-level", ""}, []string{"debug", "info", "warn", "error"}},
		{[]string{"serve", "--log-format", "j"}, []string{"json"}},
		{[]string{"serve", "--controllers", ""}, []string{"poddefault-status", "poddefault-index", "poddefault-drift", "poddefault-exemptions", "poddefault-definition", "poddefault-reports"}},
		{[]string{"explain", "-o", ""}, []string{"text", "json", "yaml"}},
		{[]string{"diff", "-o", "p"}, []string{"patch"}},
		{[]string{"manifests", "--part", ""}, []string{"namespace", "crd", "rbac", "user-roles", "flowcontrol", "workload", "configurations"}},
		{[]string{"manifests", "--part", "crd,"}, []string{"crd,namespace", "crd,rbac", "crd,user-roles", "crd,flowcontrol", "crd,workload", "crd,configurations"}},
		{[]string{"manifests", "--part=rbac,c"}, []string{"rbac,crd", "rbac,configurations"}},
		{[]string{"manifests", "--registration", "N"}, []string{"None"}},
		{[]string{"certificates", ""}, []string{"rotate", "status"}},
		{[]string{"certificates", "status", "-o", ""}, []string{"text", "json", "yaml"}},
		{[]string{"lint", "--severity", ""}, []string{"error", "warning", "info"}},
		{[]string{"lint", "-o", ""}, []string{"text", "json", "yaml", "junit", "sarif", "github"}},
		{[]string{"lint", "--rule", "timeout,sum"}, []string{"timeout,sum-timeout"}},
		{[]string{"lint", "--ignore", "wedge-s"}, []string{"wedge-self=", "wedge-system="}},
		{[]string{"lint", "--explain", "crd-s"}, []string{"crd-storage-version", "crd-stored-versions"}},
		{[]string{"chain", "pods", "--operation", ""}, []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}},
		{[]string{"chain", "pods", "-o", ""}, []string{"text", "json", "yaml", "junit", "sarif", "github"}},
		{[]string{"doctor", "-o", ""}, []string{"text", "json", "yaml"}},
		{[]string{"init", "--scope", ""}, []string{"Namespaced", "Cluster"}},
		{[]string{"re"}, []string{"record", "replay", "review"}},
	} {
		got, directive := complete(t, tc.words...)
		if diff := cmp.Diff(tc.want, got); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%v: directive %d (-want +got):\n%s", tc.words, directive, diff)
		}
	}
}

func TestFilesAreOfferedWhereAFileIsWanted(t *testing.T) {
	for _, flag := range []string{"-f", "--filename", "--with", "--old"} {
		if got, directive := complete(t, "review", flag, ""); directive != cobra.ShellCompDirectiveFilterFileExt || !cmp.Equal(got, manifest.Extensions) {
			t.Errorf("%s: %v, directive %d", flag, got, directive)
		}
	}
	wantsFile := map[string]bool{"kubeconfig": true, "tls-cert-file": true, "tls-private-key-file": true, "tls-ca-file": true, "ca-file": true, "client-ca-file": true}
	everyFlag(func(cmd *cobra.Command, flag *pflag.Flag) {
		if flag.NoOptDefVal != "" || flag.Name == "filename" || flag.Name == "with" || flag.Name == "old" || flag.Name == "config" {
			return
		}
		_, directive := complete(t, append(strings.Fields(cmd.CommandPath())[1:], "--"+flag.Name, "")...)
		if offers := directive == cobra.ShellCompDirectiveDefault; offers != wantsFile[flag.Name] {
			t.Errorf("%s --%s: files are offered: %v", cmd.Name(), flag.Name, offers)
		}
	})
	for _, command := range []string{"serve", "review", "init", "manifests", "version"} {
		if _, directive := complete(t, command, ""); directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%s offers files as arguments", command)
		}
	}
}

func TestReviewOffersTheFlagThatItNeeds(t *testing.T) {
	if got, _ := complete(t, "review", ""); !cmp.Equal(got, []string{"--filename", "-f"}) {
		t.Errorf("offered %v", got)
	}
}

func TestScriptsForShellsArePrinted(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := sallyport(t, "completion", shell).wantOK(t); !strings.Contains(script, cobra.ShellCompRequestCmd) {
			t.Errorf("the script for %s does not ask the command", shell)
		}
	}
}
