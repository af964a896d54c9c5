// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/lint"
)

var (
	lintOutputs    = []string{"text", "json"}
	lintSeverities = []string{string(lint.Error), string(lint.Warning), string(lint.Info)}
)

type lintOptions struct {
	clusterOptions
	files    []string
	static   []string
	cluster  bool
	rules    []string
	severity string
	ignore   []string
	explain  string
	output   string
}

func newLintCommand() *cobra.Command {
	o := lintOptions{}
	cmd := &cobra.Command{
		Use:   "lint -f FILE | --cluster | --explain RULE",
		Short: "Find what is wrong with webhook configurations, and with what stands behind them",
		Long: "Lint looks at webhook configurations, conversion webhooks of CustomResourceDefinitions, and at the\n" +
			"Services, workloads, certificates and rights behind them: in files, in what a chart renders, or in a\n" +
			"cluster, of which it reads and changes nothing. It says what it could not check.\n\n" +
			"The exit status is 0 if nothing was found, 2 if something was, and 1 if something could not be read.\n" +
			"An object names findings that do not count, with the reason, in its annotation\n" +
			lint.IgnoreAnnotation + ": a line 'RULE: reason' or 'RULE WEBHOOK: reason' each.",
		Example: "  sallyport lint -f manifests/\n" +
			"  helm template my-operator ./chart | sallyport lint -f -\n" +
			"  sallyport lint --cluster --severity error --output json\n" +
			"  sallyport lint -f webhook.yaml --ignore 'timeout=the server is far away'\n" +
			"  sallyport lint --explain wedge-self",
		Args: noArguments("name files by -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return o.run(ctx, cmd)
		},
	}
	flags := cmd.Flags()
	addFlagGroup(cmd, "What is looked at", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with objects, YAML or JSON, or - for stdin; may be repeated")
		_ = cmd.MarkFlagFilename("filename", manifest.Extensions...)
		flags.StringArrayVar(&o.static, "static-manifests-dir", nil, "`directory` with static admission manifests; may be repeated")
		cli.CompleteFolders(cmd, "static-manifests-dir")
		flags.BoolVar(&o.cluster, "cluster", false, "look at a cluster, in addition to files")
	})
	o.addFlags(cmd)
	addFlagGroup(cmd, "Rules", func() {
		ids := ruleIDs(false)
		flags.StringSliceVar(&o.rules, "rule", nil, "`rules` to check; empty for all; see docs/lint.md")
		cli.CompleteChoices(cmd, "rule", ids)
		flags.StringVar(&o.severity, "severity", string(lint.Warning), "least `severity` that is shown and counts: "+cli.OneOf(lintSeverities))
		cli.CompleteChoices(cmd, "severity", lintSeverities)
		flags.StringArrayVar(&o.ignore, "ignore", nil, "`rule=reason` or rule@Kind/name=reason: findings that do not count; may be repeated")
		cli.CompleteChoices(cmd, "ignore", withSuffix(ids, "="))
		flags.StringVar(&o.explain, "explain", "", "print what a `rule` checks, why, and what to do")
		cli.CompleteChoices(cmd, "explain", ruleIDs(true))
	})
	addFlagGroup(cmd, "Output", func() {
		flags.StringVarP(&o.output, "output", "o", lintOutputs[0], "`format` of the output: "+cli.OneOf(lintOutputs))
		cli.CompleteChoices(cmd, "output", lintOutputs)
	})
	return cmd
}

// ruleIDs are the names of all rules, with or without those that a test has to prove.
func ruleIDs(all bool) []string {
	var out []string
	for _, rule := range lint.Rules() {
		if all || len(rule.Severities) > 0 {
			out = append(out, rule.ID)
		}
	}
	return out
}

func withSuffix(list []string, suffix string) []string {
	out := make([]string, len(list))
	for i, entry := range list {
		out[i] = entry + suffix
	}
	return out
}

func (o *lintOptions) validate() ([]lint.Ignore, error) {
	errs := []error{cli.Choice("severity", o.severity, lintSeverities), cli.Choice("output", o.output, lintOutputs)}
	if len(o.files) == 0 && len(o.static) == 0 && !o.cluster {
		errs = append(errs, errors.New("name what to look at: -f FILE, --static-manifests-dir DIRECTORY or --cluster"))
	}
	if !o.cluster && (o.kubeconfig != "" || o.context != "") {
		errs = append(errs, errors.New("--kubeconfig and --context are of no use without --cluster"))
	}
	for _, id := range o.rules {
		if !slices.Contains(ruleIDs(false), id) {
			errs = append(errs, unknownRule("rule", id))
		}
	}
	var ignores []lint.Ignore
	for _, text := range o.ignore {
		ignore, err := lint.ParseIgnore(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--ignore %w", err))
		}
		ignores = append(ignores, ignore)
	}
	return ignores, errors.Join(errs...)
}

func unknownRule(flag, id string) error {
	return fmt.Errorf("--%s: there is no rule %q; 'sallyport lint --help' and docs/lint.md tell which there are", flag, id)
}

func (o *lintOptions) run(ctx context.Context, cmd *cobra.Command) error {
	if o.explain != "" {
		rule, ok := lint.FindRule(o.explain)
		if !ok {
			return unknownRule("explain", o.explain)
		}
		_, err := io.WriteString(cmd.OutOrStdout(), rule.Explain())
		return err
	}
	ignores, err := o.validate()
	if err != nil {
		return err
	}
	options := lint.Options{Rules: o.rules, Ignore: ignores, Paths: builtinPaths()}
	result := lintResult{threshold: lint.Severity(o.severity)}
	if len(o.files)+len(o.static) > 0 {
		result.add(lintFiles(o.files, o.static, cmd.InOrStdin(), options))
	}
	if o.cluster {
		report, err := o.lintCluster(ctx, options)
		if err != nil {
			return err
		}
		result.add(report, nil)
	}
	if o.output == "json" {
		err = result.printJSON(cmd.OutOrStdout())
	} else {
		err = result.printText(cmd.OutOrStdout())
	}
	switch {
	case err != nil:
		return err
	case result.err != nil:
		return result.err
	case len(result.report.Findings) > 0:
		return exitStatus(exitFound)
	}
	return nil
}

// lintFiles looks at files. The error has each thing that could not be read; the report
// is about the rest.
func lintFiles(paths, static []string, stdin io.Reader, options lint.Options) (*lint.Report, error) {
	var objects []lint.Object
	var errs []error
	var others []lint.Skipped
	for i, path := range append(slices.Clone(paths), static...) {
		read, err := manifest.ReadPath(path, stdin)
		for _, err := range splitErrors(err) {
			var mistake *manifest.Error
			if errors.As(err, &mistake) && mistake.NotObject {
				others = append(others, lint.Skipped{Rule: "*", Reason: "documents that are no Kubernetes objects", Objects: []string{fmt.Sprintf("%s:%d", mistake.File, mistake.Line)}})
				continue
			}
			errs = append(errs, err)
		}
		for _, object := range read {
			converted := forLint(object)
			converted.Static = i >= len(paths)
			objects = append(objects, converted)
		}
	}
	ofKubernetes, err := resourcesOfFiles(nil)
	if err != nil {
		return nil, err
	}
	options.Resources = ofKubernetes.forLint()
	inventory, err := lint.ReadFiles(objects)
	report := lint.Run(inventory, options)
	report.Skipped = append(report.Skipped, mergeSkipped(others)...)
	if len(objects) == 0 && len(errs) == 0 && err == nil {
		errs = append(errs, errors.New("there is no Kubernetes object to look at"))
	}
	return report, errors.Join(append(errs, err)...)
}

// mergeSkipped puts those with one reason together.
func mergeSkipped(list []lint.Skipped) []lint.Skipped {
	var out []lint.Skipped
	for _, s := range list {
		i := slices.IndexFunc(out, func(have lint.Skipped) bool { return have.Rule == s.Rule && have.Reason == s.Reason })
		if i < 0 {
			out = append(out, s)
		} else {
			out[i].Objects = append(out[i].Objects, s.Objects...)
		}
	}
	return out
}

// splitErrors are the errors that were joined.
func splitErrors(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, splitErrors(e)...)
	}
	return out
}

// forLint is the object as rules look at it.
func forLint(o *manifest.Object) lint.Object {
	return lint.Object{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, Annotations: o.Annotations, Raw: o.Raw,
		At: func(pointer string) (string, int) {
			file, line := o.Position(jsontext.Pointer(pointer))
			return filepath.ToSlash(file), line
		},
	}
}

// builtinPaths are the paths by which the ready-made webhooks are called.
func builtinPaths() map[string][]string {
	out := map[string][]string{}
	for _, w := range builtinWebhooks() {
		out[w.Name] = append(out[w.Name], w.Path)
	}
	return out
}

// lintResult is what was found in files and in a cluster.
type lintResult struct {
	report    lint.Report
	below     int // findings below the threshold
	threshold lint.Severity
	err       error
}

func (r *lintResult) add(report *lint.Report, err error) {
	r.err = errors.Join(r.err, err)
	for _, f := range report.Findings {
		if f.Severity.AtLeast(r.threshold) {
			r.report.Findings = append(r.report.Findings, f)
		} else {
			r.below++
		}
	}
	for _, f := range report.Ignored {
		if f.Severity.AtLeast(r.threshold) {
			r.report.Ignored = append(r.report.Ignored, f)
		}
	}
	r.report.Skipped = append(r.report.Skipped, report.Skipped...)
	if r.report.Checked == nil {
		r.report.Checked = map[string]int{}
	}
	for kind, n := range report.Checked {
		r.report.Checked[kind] += n
	}
}

func (r *lintResult) printJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	printed := struct {
		lint.Report
		BelowThreshold int      `json:"belowThreshold"`
		Errors         []string `json:"errors,omitempty"`
	}{Report: r.report, BelowThreshold: r.below}
	if printed.Findings == nil {
		printed.Findings = []lint.Finding{}
	}
	for _, err := range splitErrors(r.err) {
		printed.Errors = append(printed.Errors, err.Error())
	}
	return encoder.Encode(printed)
}
