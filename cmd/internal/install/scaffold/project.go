// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes what an author starts from: a project around one kind, with its
// types, webhooks, conversion, tests and manifests. What it writes is in the folder templates.
package scaffold

import (
	"errors"
	"fmt"
	"go/build"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// The scopes of a kind.
const (
	ScopeNamespaced = "Namespaced"
	ScopeCluster    = "Cluster"
)

// Scopes are the choices for [Project.Scope].
var Scopes = []string{ScopeNamespaced, ScopeCluster}

// Project says what to write.
type Project struct {
	// Module is the path of the Go module, for example github.com/me/bookstore.
	Module string
	// Name is that of the application and of its objects in a cluster, a DNS label. Empty for
	// the last element of Module that is no major version.
	Name string
	// Kind is the API's, for example Book.
	Kind string
	// Versions of the kind, as v1alpha1 or v1. The one that Kubernetes prefers is stored, and
	// is the hub of conversion.
	Versions []string
	// Group of the API; empty for NAME.example.com.
	Group string
	// Plural of the kind, which paths of the API have; empty for the one that is guessed.
	Plural string
	// Scope is one of [Scopes].
	Scope string
	// Sallyport is the version of Sallyport to require. Without Replace it is needed.
	Sallyport string
	// Replace is a folder with a checkout of Sallyport to build against; empty for none. It is
	// absolute, or as seen from the project.
	Replace string
}

// unreleased is what a go.mod requires of a module that it replaces.
const unreleased = "v0.0.0-00010101000000-000000000000"

var (
	kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// The form of API conventions, by which versions are ordered.
	versionPattern = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	// names are what the packages of types declare beside the kind.
	names = []string{"AddToScheme", "GroupVersion", "Resource"}
)

// Complete fills in what is not set, and reports all problems by the flags of the command init.
func (p *Project) Complete() error {
	var errs []error
	problem := func(what, value, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s %q: %s", what, value, fmt.Sprintf(format, args...)))
	}
	if err := module.CheckImportPath(p.Module); err != nil {
		problem("module", p.Module, "%v; name a Go module, for example github.com/me/bookstore", err)
	} else if prefix, _, ok := module.SplitPathVersion(p.Module); ok && p.Name == "" {
		p.Name = prefix[strings.LastIndex(prefix, "/")+1:]
	}
	if p.Name == "" {
		p.Name = p.Module[strings.LastIndex(p.Module, "/")+1:]
	}
	if problems := validation.IsDNS1035Label(p.Name + "-conversion"); len(problems) > 0 || p.Name == "" {
		problem("--name", p.Name, "%s, and so has the name of its Services; choose another name", strings.Join(append(problems, "must be a DNS label"), ", "))
	}
	p.completeKind(problem)
	p.completeVersions(problem)
	if p.Group == "" {
		p.Group = p.Name + ".example.com"
	}
	if problems := validation.IsDNS1123Subdomain(p.Group); len(problems) > 0 {
		problem("--group", p.Group, "%s", strings.Join(problems, ", "))
	} else if !strings.Contains(p.Group, ".") {
		problem("--group", p.Group, "must have a dot: take a domain of yours, for example %s.example.com", p.Group)
	} else if domain := "." + p.Group; strings.HasSuffix(domain, ".k8s.io") || strings.HasSuffix(domain, ".kubernetes.io") {
		problem("--group", p.Group, "is reserved for Kubernetes: take a domain of yours")
	}
	if problems := validation.IsDNS1123Subdomain("validate." + p.Plural + "." + p.Group); len(errs) == 0 && len(problems) > 0 {
		problem("--group", p.Group, "with the plural it is too long for names of webhooks: %s", strings.Join(problems, ", "))
	}
	if err := cli.Choice("scope", p.Scope, Scopes); err != nil {
		errs = append(errs, err)
	}
	if err := p.completeDependency(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (p *Project) completeKind(problem func(what, value, format string, args ...any)) {
	switch {
	case p.Kind == "":
		problem("--kind", p.Kind, "is required: the kind of the API, for example Book")
	case !kindPattern.MatchString(p.Kind):
		problem("--kind", p.Kind, "must begin with a capital letter and consist of letters and digits, as the names of Go types do: %s", "Book")
	case strings.HasSuffix(p.Kind, "List"):
		problem("--kind", p.Kind, "is the name of a list; leave the List out")
	case slices.Contains(names, p.Kind):
		problem("--kind", p.Kind, "is taken: every package of types has a %s", p.Kind)
	case len(p.Kind) > validation.DNS1035LabelMaxLength-len("List"):
		problem("--kind", p.Kind, "must have at most %d characters", validation.DNS1035LabelMaxLength-len("List"))
	}
	if p.Plural == "" {
		p.Plural = p.guessedPlural()
	}
	if problems := validation.IsDNS1035Label(p.Plural); len(problems) > 0 && p.Kind != "" {
		problem("--plural", p.Plural, "%s", strings.Join(problems, ", "))
	}
}

func (p *Project) guessedPlural() string {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: p.Kind})
	return plural.Resource
}

func (p *Project) completeVersions(problem func(what, value, format string, args ...any)) {
	if len(p.Versions) == 0 {
		problem("--versions", "", "is needed: name one or more, for example v1alpha1,v1")
	}
	seen := map[string]bool{}
	for _, v := range p.Versions {
		switch {
		case !versionPattern.MatchString(v):
			problem("--versions", v, "must be a version as Kubernetes has them: v1, v1beta1 or v1alpha1")
		case len(v) > validation.DNS1035LabelMaxLength:
			problem("--versions", v, "must have at most %d characters", validation.DNS1035LabelMaxLength)
		case seen[v]:
			problem("--versions", v, "is there twice")
		}
		seen[v] = true
	}
	p.Versions = slices.Clone(p.Versions)
	slices.SortStableFunc(p.Versions, version.CompareKubeAwareVersionStrings)
}

// completeDependency says where Sallyport is from.
func (p *Project) completeDependency() error {
	if p.Replace != "" {
		p.Sallyport = unreleased
		p.Replace = filepath.ToSlash(p.Replace)
		if !build.IsLocalImport(p.Replace) && !filepath.IsAbs(p.Replace) {
			p.Replace = "./" + p.Replace
		}
		return nil
	}
	if !semver.IsValid(p.Sallyport) || semver.Build(p.Sallyport) != "" {
		return fmt.Errorf("this is a build of Sallyport (%s) that no module proxy has: name a checkout by --replace", p.Sallyport)
	}
	return nil
}
