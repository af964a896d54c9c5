// SPDX-License-Identifier: Apache-2.0

// Package suite implements `sallyport test`: it runs test cases from files against the
// webhooks that serve hosts, without a cluster.
//
// A case is in a file of kind Suite ([testv1alpha1.Suite]), or is a folder of files with
// fixed names:
//
//	object.yaml, object/   the objects to review; they make the folder a case
//	with.yaml, with/       the objects that webhooks read
//	old.yaml               the old objects, for UPDATE
//	config.yaml            the configuration
//	case.yaml              kind Case: operation, user and the other fields of a case in a Suite
//	want.yaml              the resulting objects; denied.txt instead: the denial's message
package suite

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	testv1alpha1 "github.com/sallyport-io/sallyport/api/test/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// The files in the folder of a case.
const (
	objectFile = "object"
	withFile   = "with"
	oldFile    = "old"
	configFile = "config.yaml"
	caseFile   = "case.yaml"
	wantFile   = "want.yaml"
	deniedFile = "denied.txt"
)

// The values of the field warnings.
const (
	WarningsAllow = "Allow"
	WarningsFail  = "Fail"
)

// scheme has the kinds of the files.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(testv1alpha1.AddToScheme(scheme))
	return scheme
}()

// A Case is ready to run.
type Case struct {
	testv1alpha1.Case
	// Suite is the file or, for a case in a folder, the parent folder.
	Suite string
	// File and Line locate the case.
	File string
	Line int

	folder bool   // the case is a folder; denied is the path of denied.txt
	denied string // path of denied.txt
	err    error  // why the case cannot run
}

// Title returns the suite and the name.
func (c *Case) Title() string { return c.Suite + "/" + c.Name }

// Load finds the cases below paths: Suite files, folders that are cases, and folders that
// contain either at any depth. There, a Suite file is named suite.yaml or ends in .suite.yaml.
// An unreadable case becomes a case that fails. The error covers only the paths.
func Load(paths []string) ([]*Case, error) {
	var cases []*Case
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			cases = append(cases, readSuite(path)...)
			continue
		}
		found := 0
		err = filepath.WalkDir(path, func(below string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case below != path && strings.HasPrefix(entry.Name(), "."):
				if entry.IsDir() {
					return fs.SkipDir
				}
			case entry.IsDir() && there(below, objectFile) != "":
				cases = append(cases, readFolder(below))
				found++
				return fs.SkipDir
			case !entry.IsDir() && isSuiteFile(entry.Name()):
				more := readSuite(below)
				cases, found = append(cases, more...), found+len(more)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if found == 0 {
			return nil, fmt.Errorf("%s: no test case: a suite is a file suite.yaml or *.suite.yaml of kind Suite, and a folder with object.yaml is a case", path)
		}
	}
	return cases, nil
}

func isSuiteFile(name string) bool {
	return slices.ContainsFunc(manifest.Extensions, func(extension string) bool {
		return name == "suite."+extension || strings.HasSuffix(name, ".suite."+extension)
	})
}

// there returns the path of the file with an extension, or of the folder; empty if there is
// neither.
func there(folder, name string) string {
	for _, extension := range append([]string{""}, manifest.Extensions...) {
		path := filepath.Join(folder, strings.TrimSuffix(name+"."+extension, "."))
		if info, err := os.Stat(path); err == nil && info.IsDir() == (extension == "") {
			return path
		}
	}
	return ""
}

// broken returns a case that reports a read error.
func broken(suite, file string, err error) *Case {
	c := &Case{Suite: suite, File: file, err: err}
	c.Name, c.Line = filepath.Base(file), 1
	if located := (*manifest.Error)(nil); errors.As(err, &located) {
		c.Line = max(located.Line, 1)
	}
	return c
}

// readSuite reads the cases of a file.
func readSuite(path string) []*Case {
	data, err := os.ReadFile(path)
	if err != nil {
		return []*Case{broken(path, path, err)}
	}
	cases, err := parseSuite(path, data)
	if err != nil {
		return []*Case{broken(path, path, err)}
	}
	return cases
}

func parseSuite(path string, data []byte) ([]*Case, error) {
	var suite testv1alpha1.Suite
	document, err := parse(path, data, testv1alpha1.SuiteKind, &suite, &suite.TypeMeta)
	if err != nil {
		return nil, err
	}
	if len(suite.Cases) == 0 {
		return nil, document.ErrorAt("/cases", "cases: a suite needs at least one")
	}
	errs := []error{validateGiven(document, "", &suite.Given)}
	names := map[string]bool{}
	cases := make([]*Case, len(suite.Cases))
	for i := range suite.Cases {
		at := jsontext.Pointer(fmt.Sprintf("/cases/%d", i))
		c := &Case{Case: suite.Cases[i], Suite: path, File: path}
		_, c.Line = document.Position(at)
		errs = append(errs, validateGiven(document, at, &c.Given), validateExpectation(document, at+"/expect", &c.Expect))
		if len(c.Objects) == 0 {
			errs = append(errs, document.ErrorAt(at, fmt.Sprintf("cases[%d].objects: name the files with the objects to review", i)))
		}
		if c.Name == "" {
			errs = append(errs, document.ErrorAt(at, fmt.Sprintf("cases[%d].name: a case needs a name", i)))
		} else if names[c.Name] {
			errs = append(errs, document.ErrorAt(at+"/name", fmt.Sprintf("cases[%d].name: %q is the name of another case too", i, c.Name)))
		}
		names[c.Name] = true
		cases[i] = c
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	scheme.Default(&suite)
	for i, c := range cases {
		c.Case = suite.Cases[i]
		c.resolve(filepath.Dir(path))
	}
	return cases, nil
}

// parse strictly decodes a file with a single document.
func parse(path string, data []byte, kind string, into any, is *metav1.TypeMeta) (*manifest.Document, error) {
	documents, err := manifest.Documents(path, data)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%s: it holds %d documents; want one of kind %s", path, len(documents), kind)
	}
	d := documents[0]
	if err := d.Decode("", d.Raw, is); err != nil {
		return nil, err
	}
	if is.APIVersion != testv1alpha1.GroupVersion.String() || is.Kind != kind {
		return nil, d.ErrorAt("/apiVersion", fmt.Sprintf("want apiVersion: %s and kind: %s", testv1alpha1.GroupVersion, kind))
	}
	return d, d.Decode("", d.Raw, into, json.RejectUnknownMembers(true))
}

var operations = []string{string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Delete)}

func validateGiven(d *manifest.Document, at jsontext.Pointer, g *testv1alpha1.Given) error {
	choice := func(field, value string, choices []string) error {
		if value == "" || slices.Contains(choices, value) {
			return nil
		}
		return d.ErrorAt(at+jsontext.Pointer("/"+field), fmt.Sprintf("%s: %q is not one of %s", manifest.FieldPath(at+jsontext.Pointer("/"+field)), value, cli.OneOf(choices)))
	}
	errs := []error{
		choice("operation", g.Operation, operations),
		choice("validate", g.Validate, fieldcheck.Modes),
		choice("warnings", g.Warnings, []string{WarningsAllow, WarningsFail}),
	}
	if g.User != nil && g.User.Username == "" {
		errs = append(errs, d.ErrorAt(at+"/user", manifest.FieldPath(at+"/user/username")+": every request has a user"))
	}
	return errors.Join(errs...)
}

func validateExpectation(d *manifest.Document, at jsontext.Pointer, expect *testv1alpha1.Expectation) error {
	var errs []error
	complain := func(at jsontext.Pointer, text string) {
		errs = append(errs, d.ErrorAt(at, manifest.FieldPath(at)+": "+text))
	}
	if expect.Allowed == nil || *expect.Allowed {
		if expect.Message != "" {
			complain(at+"/message", "only a denial has a message: say allowed: false too")
		}
	}
	for i := range expect.Objects {
		o, at := &expect.Objects[i], at+jsontext.Pointer(fmt.Sprintf("/objects/%d", i))
		if len(o.Values)+len(o.Absent)+len(o.Origins) == 0 {
			complain(at, "it expects nothing: say values, absent or origins")
		}
		for path := range o.Values {
			if _, err := parsePath(path); err != nil {
				complain(at+"/values", err.Error())
			}
		}
		for _, path := range o.Absent {
			if _, err := parsePath(path); err != nil {
				complain(at+"/absent", err.Error())
			}
		}
	}
	return errors.Join(errs...)
}

// resolve makes paths relative to the working directory.
func (c *Case) resolve(folder string) {
	one := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(folder, path)
	}
	all := func(paths []string) []string {
		out := make([]string, len(paths))
		for i, path := range paths {
			out[i] = one(path)
		}
		return out
	}
	c.Config, c.With, c.Objects, c.Old = one(c.Config), all(c.With), all(c.Objects), all(c.Old)
	c.Expect.Want, c.Expect.Patch = one(c.Expect.Want), one(c.Expect.Patch)
}

// readFolder reads a case from a folder.
func readFolder(folder string) *Case {
	c := &Case{Suite: filepath.Dir(folder), File: folder, folder: true, denied: filepath.Join(folder, deniedFile)}
	path := filepath.Join(folder, caseFile)
	data, err := os.ReadFile(path)
	var file testv1alpha1.CaseFile
	if err == nil {
		var d *manifest.Document
		if d, err = parse(path, data, testv1alpha1.CaseKind, &file, &file.TypeMeta); err == nil {
			err = errors.Join(validateGiven(d, "", &file.Given), validateExpectation(d, "/expect", &file.Expect))
		}
		c.File = path
	}
	scheme.Default(&file)
	c.Case = file.Case
	c.resolve(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return broken(c.Suite, path, err)
	}
	c.Name = cmp.Or(c.Name, filepath.Base(folder))
	add := func(to *[]string, name string) {
		if path := there(folder, name); path != "" {
			*to = append(*to, path)
		}
	}
	add(&c.Objects, objectFile)
	if c.File == folder && len(c.Objects) > 0 {
		c.File = c.Objects[0]
	}
	if info, err := os.Stat(c.File); err == nil && !info.IsDir() {
		c.Line = max(c.Line, 1)
	}
	add(&c.With, withFile)
	add(&c.Old, oldFile)
	if path := filepath.Join(folder, configFile); c.Config == "" && exists(path) {
		c.Config = path
	}
	want := filepath.Join(folder, wantFile)
	switch e := &c.Expect; {
	case exists(c.denied):
		c.expectDenial()
	case exists(want), e.Allowed == nil && len(e.Warnings)+len(e.Objects) == 0 && e.Patch == "":
		e.Want = cmp.Or(e.Want, want)
	}
	return c
}

// expectDenial sets the expected denial from denied.txt.
func (c *Case) expectDenial() {
	message, err := os.ReadFile(c.denied)
	c.err = errors.Join(c.err, err)
	c.Expect.Allowed, c.Expect.Message = new(false), strings.TrimSpace(string(message))
	if exists(c.Expect.Want) {
		c.err = errors.Join(c.err, fmt.Errorf("%s: the case has %s too: a denied object does not come out", c.denied, wantFile))
	}
	c.Expect.Want = ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
