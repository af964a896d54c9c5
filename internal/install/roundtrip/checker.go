// SPDX-License-Identifier: Apache-2.0

package roundtrip

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// pageSize is how many objects are listed at a time.
const pageSize = 500

// Checker converts objects to each version of their kind and back.
type Checker struct {
	// Own are the converters of the program; nil for the conversion webhooks of definitions.
	Own []conversion.Converter
	// Files have the objects; empty for all objects of a cluster.
	Files []string
	// Config finds the cluster. It is called if one is needed.
	Config func() (*rest.Config, error)

	client *crdclient.Client // once it is needed
}

// LossError says that objects do not survive a conversion; which ones was printed.
type LossError struct{ bad, objects int }

func (e *LossError) Error() string {
	return fmt.Sprintf("%d of %s cannot be converted to each version and back without a loss", e.bad, cli.Count(e.objects, "object", "objects"))
}

// Run checks the objects of the named definitions, or of all, and prints what it found. Its error is a [LossError] if
// something is lost.
func (c *Checker) Run(ctx context.Context, names []string, stdin io.Reader, out, notes io.Writer) error {
	var objects []*manifest.Object
	err := manifest.StdinOnce(c.Files)
	if err == nil {
		objects, err = manifest.Read(c.Files, stdin)
	}
	if err != nil {
		return err
	}
	converters, err := c.converters(ctx, names, objects)
	if err != nil {
		return err
	}
	var report Report
	if len(c.Files) > 0 {
		err = checkObjects(ctx, converters, objects, &report)
	} else {
		err = c.checkCluster(ctx, converters, &report, notes)
	}
	report.Print(out)
	if err != nil { // what was not seen may be worse
		return err
	}
	_, _ = fmt.Fprintf(notes, "checked %s", cli.Count(report.objects, "object", "objects"))
	if report.skipped > 0 {
		_, _ = fmt.Fprintf(notes, ", skipped %d of other kinds", report.skipped)
	}
	_, _ = fmt.Fprintln(notes)
	if report.bad > 0 {
		return &LossError{report.bad, report.objects}
	}
	return nil
}

// converters are those of the named definitions, or all.
func (c *Checker) converters(ctx context.Context, names []string, objects []*manifest.Object) ([]conversion.Converter, error) {
	all := c.Own
	if all == nil {
		var err error
		if all, err = c.ofDefinitions(ctx, names, objects); err != nil {
			return nil, err
		}
	}
	var chosen []conversion.Converter
	var known []string
	for _, converter := range all {
		known = append(known, converter.CRD())
		if len(names) == 0 || slices.Contains(names, converter.CRD()) {
			chosen = append(chosen, converter)
		}
	}
	var errs []error
	for _, name := range names {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("definition %q: there are converters for %s", name, cli.OneOf(known)))
		}
	}
	return chosen, errors.Join(errs...)
}

// ofDefinitions are the converters of definitions with several versions: those among the objects
// or, if there are none, those of the cluster.
func (c *Checker) ofDefinitions(ctx context.Context, names []string, objects []*manifest.Object) ([]conversion.Converter, error) {
	var definitions []apiextensionsv1.CustomResourceDefinition
	for _, object := range objects {
		if object.GVK() != apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition") {
			continue
		}
		definitions = append(definitions, apiextensionsv1.CustomResourceDefinition{})
		if err := object.Decode(&definitions[len(definitions)-1]); err != nil {
			return nil, err
		}
	}
	inFiles := len(definitions) > 0
	if !inFiles {
		client, err := c.open()
		if err != nil {
			return nil, err
		}
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		definitions = list.Items
	}
	var converters []conversion.Converter
	var errs []error
	for i := range definitions {
		crd := &definitions[i]
		if len(crd.Spec.Versions) < 2 || len(names) > 0 && !slices.Contains(names, crd.Name) {
			continue
		}
		var client rest.Interface
		if conversion := crd.Spec.Conversion; !inFiles || conversion != nil && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil && conversion.Webhook.ClientConfig.Service != nil {
			opened, err := c.open()
			if err != nil {
				return nil, err
			}
			client = opened.GetClient()
		}
		converter, err := ofDefinition(crd, client)
		converters, errs = append(converters, converter), append(errs, err)
	}
	if len(converters) == 0 && len(names) == 0 {
		errs = append(errs, errors.New("no definition has several versions: there is nothing to convert"))
	}
	return converters, errors.Join(errs...)
}

// open finds the cluster, once.
func (c *Checker) open() (*crdclient.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{}
	c.client, err = crdclient.NewForConfig(config)
	return c.client, err
}

func checkObjects(ctx context.Context, converters []conversion.Converter, objects []*manifest.Object, report *Report) error {
	for _, object := range objects {
		if err := report.Check(ctx, converters, object.Raw, object.At()); err != nil {
			return err
		}
	}
	if report.objects == 0 {
		var kinds []string
		for _, converter := range converters {
			kinds = append(kinds, converter.Kind().String())
		}
		return fmt.Errorf("found no object to check among %d: there are converters for %s", len(objects), cli.OneOf(kinds))
	}
	return nil
}

func (c *Checker) checkCluster(ctx context.Context, converters []conversion.Converter, report *Report, notes io.Writer) error {
	client, err := c.open()
	if err != nil {
		return err
	}
	for _, converter := range converters {
		if err := checkAll(ctx, client, converter, report, notes); err != nil {
			return fmt.Errorf("%s: %w", converter.CRD(), err)
		}
	}
	return nil
}

// checkAll checks the objects of one definition, page by page.
func checkAll(ctx context.Context, client *crdclient.Client, converter conversion.Converter, report *Report, notes io.Writer) error {
	crd, err := client.Get(ctx, converter.CRD(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	version, err := listed(crd)
	if err != nil {
		return err
	}
	for next, seen := "", 0; ; {
		result := client.GetClient().Get().AbsPath("/apis", crd.Spec.Group, version, crd.Spec.Names.Plural).
			Param("limit", strconv.Itoa(pageSize)).Param("continue", next).Do(ctx)
		raw, err := result.Raw()
		if err = cmp.Or(result.Error(), err); err != nil { // the former has the API server's words
			return fmt.Errorf("listing %s in version %s: %w", crd.Spec.Names.Plural, version, err)
		}
		var page struct {
			Metadata metav1.ListMeta
			Items    []json.RawMessage
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := report.Check(ctx, []conversion.Converter{converter}, item, ""); err != nil {
				return err
			}
		}
		seen += len(page.Items)
		if next = page.Metadata.Continue; next == "" {
			return nil
		}
		_, _ = fmt.Fprintf(notes, "checked %d %s\n", seen, crd.Spec.Names.Plural)
	}
}

// listed is the version in which objects are read: that in which new ones are stored, if it is
// served.
func listed(crd *apiextensionsv1.CustomResourceDefinition) (string, error) {
	version := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && (version == "" || v.Storage) {
			version = v.Name
		}
	}
	if version == "" {
		return "", errors.New("the definition serves no version")
	}
	return version, nil
}
