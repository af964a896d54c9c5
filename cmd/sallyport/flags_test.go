// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// meanings are the flags that several commands describe differently. Each description begins with the common
// meaning, after a condition such as "with --registration API:", and may go on with what is special to a command.
var meanings = map[string]string{
	"allow-unknown":        "accept what is unknown: ",
	"as":                   "name of the requesting user",
	"authority-secret":     "the Secret of the authority, namespace/name",
	"bind-address":         "address to serve ",
	"ca-file":              "file with the PEM-encoded CA bundle ",
	"client-ca-file":       "file with the PEM-encoded CA bundle that verifies ",
	"color":                "when to color the ",
	"config":               "file with a SallyportConfiguration",
	"configuration-name":   "name of the webhook configurations",
	"dry-run":              "change nothing: ",
	"filename":             "file or folder with ",
	"force":                "skip a safety check: ",
	"kubeconfig":           "path of the kubeconfig file",
	"kubernetes-version":   "version of Kubernetes ",
	"metrics-port":         "port of the replicas for metrics ",
	"namespace":            "namespace to use",
	"old":                  "file or folder with the old object",
	"operation":            "operation of the request: ",
	"output":               "format of the output: ",
	"replica":              "url where ",
	"revision":             "number or name of the revision, or the first digits of its name; ",
	"secure-port":          "port to serve webhooks on with TLS",
	"server":               "ask the API server about the resulting ",
	"service":              "the Service through which the API server calls ",
	"service-account":      "name of the server's service account",
	"static-manifests-dir": "directory of static admission manifests",
	"timeout":              "maximum duration to wait",
	"tls-cert-file":        "file with the PEM-encoded serving certificate and its chain",
	"tls-private-key-file": "file with the PEM-encoded private key",
	"watch":                "repeat until ",
	"window":               "duration to watch the counters of the API server",
	"with":                 "file or folder with ",
	"yes":                  "do not ask for confirmation",
}

// otherTypes are flags of another type in one command, and why: at most five.
var otherTypes = map[string]string{
	"sallyport serve --static-manifests-dir": "a server writes one directory; the other commands read or remove those of several kube-apiservers",
}

// TestAFlagHasOneTypeAndOneMeaning compares the flags of all commands by name.
func TestAFlagHasOneTypeAndOneMeaning(t *testing.T) {
	type use struct{ command, usage string }
	uses := map[string][]use{}          // by name
	types := map[string][]string{}      // by name
	names := map[string][]string{}      // by shorthand
	shorthands := map[string][]string{} // by name
	excepted := map[string]bool{}
	add := func(m map[string][]string, key, value string) {
		if !slices.Contains(m[key], value) {
			m[key] = append(m[key], value)
		}
	}
	everyFlag(func(cmd *cobra.Command, flag *pflag.Flag) {
		if flag.Name == "help" {
			return
		}
		uses[flag.Name] = append(uses[flag.Name], use{cmd.CommandPath(), flag.Usage})
		where := cmd.CommandPath() + " --" + flag.Name
		if _, is := otherTypes[where]; is {
			excepted[where] = true
		} else {
			add(types, flag.Name, flag.Value.Type())
		}
		add(shorthands, flag.Name, flag.Shorthand)
		if flag.Shorthand != "" {
			add(names, flag.Shorthand, flag.Name)
		}
	})
	if len(uses) < 60 || len(otherTypes) > 5 {
		t.Errorf("%d flags, %d exceptions", len(uses), len(otherTypes))
	}
	for where := range otherTypes {
		if !excepted[where] {
			t.Errorf("%s does not exist: it needs no exception", where)
		}
	}
	for shorthand, of := range names {
		if len(of) > 1 {
			t.Errorf("-%s is short for %q", shorthand, of)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		if len(types[name]) > 1 {
			t.Errorf("--%s has the types %q", name, types[name])
		}
		if len(types[name]) == 1 && types[name][0] == "" {
			t.Errorf("--%s has no type", name)
		}
		if len(shorthands[name]) > 1 {
			t.Errorf("--%s has the shorthands %q", name, shorthands[name])
		}
		differs := slices.ContainsFunc(uses[name], func(u use) bool { return u.usage != uses[name][0].usage })
		common, listed := meanings[name]
		if differs != listed {
			t.Errorf("--%s: described differently is %t, in the table of meanings is %t", name, differs, listed)
		}
		for _, u := range uses[name] {
			if rest := withoutCondition(u.usage); differs && !strings.HasPrefix(rest, common) {
				t.Errorf("%s --%s means %q, and not %q", u.command, name, u.usage, common)
			}
		}
	}
}

// withoutCondition is a usage without "with --flag Value: ".
func withoutCondition(usage string) string {
	if strings.HasPrefix(usage, "with --") {
		_, rest, _ := strings.Cut(usage, ": ")
		return rest
	}
	return usage
}
