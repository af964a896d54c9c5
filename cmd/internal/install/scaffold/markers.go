// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-tools/pkg/loader"
	markersyntax "sigs.k8s.io/controller-tools/pkg/markers"
	markers "sigs.k8s.io/controller-tools/pkg/webhook"

	"github.com/sallyport-io/sallyport/admission"
)

// A marker is a comment +kubebuilder:webhook in a Go file, or a webhook of a manifest.
type marker struct {
	File    string // with slashes, from the root of the project; empty for a webhook without a marker
	Line    int
	From    string // the webhook configuration in a manifest; empty if the marker is all there is
	Field   string // of the handlers, unique
	Reached string // where the marker says that the server is; empty if it does not
	admission.Webhook
}

//go:embed definitions.go.tmpl
var definitions string

// Definitions are the webhooks of a Go project as its markers +kubebuilder:webhook define them, with
// all arguments of controller-tools: a Go file with a function that takes the handlers. Tests,
// testdata, vendored packages and modules below the project are left out, as controller-gen
// leaves them out. The error lists all problems by file and line; what the API server or
// package admission would refuse is one. The notes say what else may define webhooks.
func Definitions(project string) (files []File, notes []string, err error) {
	found, err := markersOf(project)
	if err != nil {
		return nil, nil, err
	}
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("%s: no Go file has a marker +kubebuilder:webhook: name the folder of a kubebuilder project", project)
	}
	if err := unique(found); err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(filepath.Join(project, "config", "default", "kustomization.yaml")); err == nil {
		notes = []string{"selectors and what else patches in config set are not in markers: kustomize build config/default | sallyport init --from -"}
	}
	code, err := define(found)
	return []File{{Path: definitionsFile, Content: code}}, notes, err
}

const definitionsFile = "internal/definitions/webhooks.go"

// define writes the Go file.
func define(found []marker) ([]byte, error) {
	const name = "definitions.go"
	parsed, err := parseTemplate(name, definitions, map[string]templateFunction{
		"scope": func(args []any) (any, error) { return string(*args[0].(*admissionregistrationv1.ScopeType)), nil },
	})
	if err != nil {
		return nil, err
	}
	text, err := parsed.execute(name, found)
	if err != nil {
		return nil, err
	}
	return format.Source([]byte(text))
}

// markersOf are the markers of a project in the order in which controller-gen has webhooks: by
// package, and in each by name.
func markersOf(project string) ([]marker, error) {
	s, err := openSources(project)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var found []marker
	var problems []error
	err = filepath.WalkDir(project, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != project && leftOut(path, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_"):
			return nil // as the go command does
		}
		name, err := filepath.Rel(project, path)
		if err != nil {
			return err
		}
		text, err := s.read(name)
		if errors.Is(err, errTooMuch) {
			return err
		}
		if err != nil {
			problems = append(problems, err)
			return nil
		}
		of, err := markersIn(filepath.ToSlash(name), text)
		if err != nil {
			problems = append(problems, err)
		}
		if found = append(found, of...); len(found) > maxMarkers {
			return fmt.Errorf("%s: %w", project, errManyMarkers)
		}
		return nil
	})
	if err := errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b marker) int {
		if packages := strings.Compare(filepath.Dir(a.File), filepath.Dir(b.File)); packages != 0 {
			return packages
		}
		return strings.Compare(a.Name, b.Name)
	})
	return found, nil
}

// leftOut tells whether the go command, and so controller-gen, sees no packages of the project in
// a folder.
func leftOut(path, name string) bool {
	if name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// unique names the fields, and reports names and paths that are used twice.
func unique(found []marker) error {
	var problems []error
	fields, names, paths := map[string]int{}, map[string]*marker{}, map[string]*marker{}
	for i := range found {
		m := &found[i]
		for _, other := range slices.Compact([]*marker{cmp.Or(names[m.Name], m), cmp.Or(paths[m.Path], m)}) {
			if other != m {
				problems = append(problems, fmt.Errorf("%s: name %q or path %q is that of %s too: an application serves each once", m.at(), m.Name, m.Path, other.at()))
			}
		}
		names[m.Name], paths[m.Path] = cmp.Or(names[m.Name], m), cmp.Or(paths[m.Path], m)
		m.Field = identifier(m.Path)
		if fields[m.Field]++; fields[m.Field] > 1 {
			m.Field = fmt.Sprintf("%s_%d", m.Field, fields[m.Field])
		}
	}
	return errors.Join(problems...)
}

// at is where the webhook is defined.
func (m *marker) at() string {
	return cmp.Or(m.From, fmt.Sprintf("%s:%d", m.File, m.Line))
}

// identifier makes an exported one of a path.
func identifier(path string) string {
	var out strings.Builder
	up := true
	for _, r := range path {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
			continue
		case out.Len() == 0 && unicode.IsDigit(r):
			out.WriteString("Webhook")
		case up:
			r = unicode.ToUpper(r)
		}
		up = false
		out.WriteRune(r)
	}
	if out.Len() == 0 {
		return "Webhook"
	}
	return out.String()
}

// prefix begins a marker.
const prefix = "+kubebuilder:webhook:"

// markersIn are the markers of a Go file. They are read as controller-gen reads them: each is one
// comment of one line.
func markersIn(name string, text []byte) ([]marker, error) {
	files := token.NewFileSet()
	if strings.ContainsFunc(name, unicode.IsControl) {
		return nil, fmt.Errorf("%q: rename the file: its name has control characters", name)
	}
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []marker
	var problems []error
	for _, group := range file.Comments {
		for _, comment := range group.List {
			line, ok := strings.CutPrefix(comment.Text, "//")
			line = strings.TrimSpace(line)
			if !ok || !strings.HasPrefix(line, prefix) {
				continue
			}
			// Not Position: a line directive would lead to where the marker is not.
			at := files.PositionFor(comment.Pos(), false)
			m := marker{File: name, Line: at.Line}
			if err := m.read(line); err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %w", name, at.Line, err))
				continue
			}
			found = append(found, m)
		}
	}
	return found, errors.Join(problems...)
}

// read makes a definition of the text of a marker.
func (m *marker) read(text string) error {
	value, err := markers.ConfigDefinition.Parse(text)
	if err != nil {
		return readable(err)
	}
	config := value.(markers.Config)
	for _, version := range config.WebhookVersions {
		if version != "v1" {
			return fmt.Errorf("webhookVersions: %q is served no more; leave the argument out", version)
		}
	}
	w := admissionregistrationv1.MutatingWebhook{}
	m.Type = admission.TypeMutating
	if config.Mutating {
		if w, err = config.ToMutatingWebhook(); err != nil {
			return err
		}
	} else {
		validating, err := config.ToValidatingWebhook()
		if err != nil {
			return err
		}
		m.Type = admission.TypeValidating
		w = mutating(validating)
	}
	// Controller-tools leaves out what it does not know.
	if config.SideEffects != "" && w.SideEffects == nil {
		return fmt.Errorf("sideEffects: %q: choose None or NoneOnDryRun", config.SideEffects)
	}
	if config.ReinvocationPolicy != "" && w.ReinvocationPolicy == nil {
		return fmt.Errorf("reinvocationPolicy: %q: choose Never or IfNeeded, and it is for mutating webhooks", config.ReinvocationPolicy)
	}
	if m.Path, m.Reached, err = reached(w.ClientConfig, config.ServiceName != "" || config.ServiceNamespace != "" || config.ServicePort != nil); err != nil {
		return err
	}
	m.take(w)
	return m.Problems()
}

// mutating has the fields of a validating webhook.
func mutating(w admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy,
		MatchPolicy: w.MatchPolicy, NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
		SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
	}
}

// readable is an error of the parser: what it stopped at or, if it did not stop, all arguments that
// are missing.
func readable(err error) error {
	var list loader.ErrList
	if !errors.As(err, &list) || len(list) == 0 {
		return err
	}
	var missing []string
	for _, one := range list {
		text := one.Error()
		var scanned *markersyntax.ScannerError
		if errors.As(one, &scanned) {
			text = scanned.Msg // where it is counts from the first argument
		}
		if !strings.HasPrefix(text, "missing argument") {
			return errors.New(text)
		}
		missing = append(missing, text)
	}
	slices.Sort(missing)
	return errors.New(strings.Join(missing, ", "))
}

// take takes what the API server is told. What is not set has the API server's default, where
// that of package admission is another.
func (m *marker) take(w admissionregistrationv1.MutatingWebhook) {
	m.Name, m.Rules = w.Name, w.Rules
	m.NamespaceSelector, m.ObjectSelector, m.MatchConditions = w.NamespaceSelector, w.ObjectSelector, w.MatchConditions
	m.ReviewVersions = w.AdmissionReviewVersions
	m.TimeoutSeconds = 10
	if w.TimeoutSeconds != nil {
		m.TimeoutSeconds = *w.TimeoutSeconds
	}
	if m.Type == admission.TypeMutating {
		m.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy
		if w.ReinvocationPolicy != nil {
			m.ReinvocationPolicy = *w.ReinvocationPolicy
		}
	}
	if w.MatchPolicy != nil {
		m.MatchPolicy = *w.MatchPolicy
	}
	if w.FailurePolicy != nil {
		m.FailurePolicy = *w.FailurePolicy
	}
	if w.SideEffects != nil {
		m.SideEffects = *w.SideEffects
	}
	m.Handler = admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return nil, errors.New("the project has the handler")
	})
}

// reached is the path of a webhook, and where its server is, if that was said: that is no part
// of a definition, but of how the application is started.
func reached(client admissionregistrationv1.WebhookClientConfig, said bool) (path, where string, err error) {
	if client.URL != nil {
		parsed, err := url.Parse(*client.URL)
		if err != nil {
			return "", "", fmt.Errorf("url: %w", err)
		}
		path = parsed.Path
		parsed.Path, parsed.RawPath = "", ""
		return path, "--url " + parsed.String(), nil
	}
	if client.Service == nil || client.Service.Path == nil {
		return "", "", errors.New("path: it is missing")
	}
	if !said {
		return *client.Service.Path, "", nil
	}
	for argument, name := range map[string]string{"serviceName": client.Service.Name, "serviceNamespace": client.Service.Namespace} {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return "", "", fmt.Errorf("%s: %q: %s", argument, name, strings.Join(problems, ", "))
		}
	}
	where = fmt.Sprintf("--service %s/%s", client.Service.Namespace, client.Service.Name)
	if client.Service.Port != nil {
		where += fmt.Sprintf(":%d", *client.Service.Port)
	}
	return *client.Service.Path, where, nil
}
