// SPDX-License-Identifier: Apache-2.0

// Command apireference prints the reference of the project's API types as Markdown, or the
// help of flags that set fields of them as Go, from their doc comments.
//
// Usage: go run ./apireference reference|help TOP > FILE
//
// TOP is the root of the repository.
package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A section is a type that somebody writes, with all types of the same package that it
// has fields of.
type section struct {
	title  string
	intro  string
	folder string
	types  []string
	// required is set where fields must be there: configurations and settings have defaults.
	required bool
	// path is that of the section in a SallyportConfiguration, if it is one.
	path string
}

var sections = []section{
	{"PodDefault", "Group `kubeflow.org`, version `v1alpha1`, namespaced. [poddefault.md](poddefault.md) describes each field in detail, with examples.", "api/kubeflow/v1alpha1", []string{"PodDefault"}, true, ""},
	{"ClusterPodDefault", "Group `sallyport.io`, version `v1alpha1`, cluster-scoped.", "api/sallyport/v1alpha1", []string{"ClusterPodDefault"}, true, ""},
	{"Exemption", "Group `sallyport.io`, version `v1alpha1`. See [poddefault-operations.md](poddefault-operations.md#exemptions).", "api/sallyport/v1alpha1", []string{"Exemption"}, true, ""},
	{"Revisions", "Group `sallyport.io`, version `v1alpha1`: PodDefaultRevisions beside PodDefaults, and ClusterPodDefaultRevisions, cluster-scoped. Sallyport writes them. See [poddefault-operations.md](poddefault-operations.md#change-them-step-by-step).", "api/sallyport/v1alpha1", []string{"PodDefaultRevision", "ClusterPodDefaultRevision"}, true, ""},
	{"SallyportConfiguration", "The file of `serve --config`, `config.sallyport.io/v1alpha1`. [configuration.md](configuration.md) describes how it is read.", "cmd/internal/serve/config/v1alpha1", []string{"SallyportConfiguration"}, false, ""},
	settings("registration", "registration", "Settings"),
	settings("certificate", "serving/certificate", "Settings"),
	settings("leaderElection", "registration", "LeaderElectionSettings"),
	settings("authentication", "serving", "AuthenticationSettings"),
	settings("serving", "serving", "Settings"),
	settings("log", "internal/hosting/logging", "Settings"),
	settings("tracing", "cmd/internal/serve/tracing", "Settings"),
	{"Suite", "A file of `sallyport test`, `test.sallyport.io/v1alpha1`. See [testing.md](testing.md).", "api/test/v1alpha1", []string{"Suite"}, true, ""},
	{"Settings of poddefault", "`webhooks[].settings` of the webhook `poddefault`: the fields of both tables.", "cmd/internal/serve", []string{"PodDefaultSettings"}, false, ""},
	{"More settings of poddefault", "", "cmd/internal/poddefault", []string{"Settings"}, false, ""},
	{"Settings of imagepull", "See [webhooks/imagepull.md](webhooks/imagepull.md).", "cmd/internal/webhooks/imagepull", []string{"Settings"}, false, ""},
	{"Settings of servicetype", "See [webhooks/servicetype.md](webhooks/servicetype.md).", "cmd/internal/webhooks/servicetype", []string{"Settings"}, false, ""},
	{"Settings of projectlimit", "See [webhooks/projectlimit.md](webhooks/projectlimit.md).", "cmd/internal/webhooks/projectlimit", []string{"Settings"}, false, ""},
	{"Settings of dataset", "See [webhooks/dataset.md](webhooks/dataset.md).", "cmd/internal/webhooks/dataset", []string{"Settings"}, false, ""},
	{"Settings of podtemplate", "See [webhooks/podtemplate.md](webhooks/podtemplate.md).", "cmd/internal/webhooks/podtemplate", []string{"Settings"}, false, ""},
}

// settings is a section of a SallyportConfiguration. Applications have the same settings.
func settings(path, folder, name string) section {
	return section{"SallyportConfiguration " + path, "", folder, []string{name}, false, path}
}

// complete adds to the fields of a configuration the flags of serve that set them, and links to sections.
func complete(t *goType, path string) {
	for i := range t.fields {
		f := &t.fields[i]
		for _, s := range sections {
			if path == "" && s.path == f.name && s.path != "" {
				f.typ = "[" + f.name + "](#" + strings.ToLower(strings.ReplaceAll(s.title, " ", "-")) + ")"
			}
		}
		if flag := f.tag.Get("flag"); flag != "" && f.tag.Get("group") != "" {
			f.doc += " Flag --" + flag + "."
		}
	}
}

func main() {
	write := map[string]func(string, io.Writer) error{"reference": run, "help": writeHelp}
	if len(os.Args) != 3 || write[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: apireference reference|help TOP")
		os.Exit(2)
	}
	if err := write[os.Args[1]](os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apireference:", err)
		os.Exit(1)
	}
}

const header = `# API reference

The fields of the objects and files that Sallyport reads and writes, from the doc comments of their Go types. ` + "`make generate`" + `
generates this page. In a cluster, ` + "`kubectl explain poddefault.spec`" + ` prints the same. Types without a link are Kubernetes' own.
`

func run(top string, out io.Writer) error {
	page := header
	for _, s := range sections {
		types, err := parsePackage(filepath.Join(top, filepath.FromSlash(s.folder)))
		if err != nil {
			return err
		}
		page += "\n## " + s.title + "\n"
		if s.intro != "" {
			page += "\n" + s.intro + "\n"
		}
		if root := types["SallyportConfiguration"]; root != nil || s.path != "" {
			complete(cmp.Or(root, types[s.types[0]]), s.path)
		}
		rendered, err := render(types, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.folder, err)
		}
		page += rendered
	}
	_, err := io.WriteString(out, page)
	return err
}
