// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

var lintOutputs = slices.Concat(cli.TextOrJSON, report.Formats)

var lintSeverities = []string{string(lint.Error), string(lint.Warning), string(lint.Info)}

// Linter is what the command lint of a program knows.
type Linter struct {
	// Name is that of the program, Flags have its user agent.
	Name  string
	Flags clusterflags.Flags
	// Webhooks are the program's own, whose paths are known.
	Webhooks []admission.Webhook
	// PodDefault is that of [lint.Options]. It may be nil.
	PodDefault func(*lint.Object) field.ErrorList
}

type lintOptions struct {
	clusterflags.Flags
	of       Linter
	files    []string
	static   []string
	cluster  bool
	rules    []string
	severity string
	release  release.Version
	ignore   []string
	baseline string
	explain  string
	output   string
}

// Lint is the command lint of a program.
func Lint(of Linter) *cobra.Command {
	o := lintOptions{Flags: of.Flags, of: of}
	cmd := &cobra.Command{
		Use:   "lint -f FILE | --cluster | --explain RULE",
		Short: "Find problems in webhook configurations, the Services behind them, and policies",
		Long: "Check webhook configurations, conversion webhooks of CustomResourceDefinitions, the Services,\n" +
			"workloads, certificates and RBAC behind them, and ValidatingAdmissionPolicies and\n" +
			"MutatingAdmissionPolicies, in files, rendered charts or a cluster. Nothing is changed.\n" +
			"Checks that could not run are reported.\n\n" +
			"To ignore findings of an object, add them with a reason to its annotation\n" +
			lint.IgnoreAnnotation + ", one 'RULE: reason' or 'RULE WEBHOOK: reason' per line.",
		Example: "  " + of.Name + " lint -f manifests/\n" +
			"  helm template my-operator ./chart | " + of.Name + " lint -f -\n" +
			"  " + of.Name + " lint --cluster --severity error --output json\n" +
			"  " + of.Name + " lint -f webhook.yaml --ignore 'timeout=the server is far away'\n" +
			"  " + of.Name + " lint -f manifests/ --output json > known.json; " + of.Name + " lint -f manifests/ --baseline known.json\n" +
			"  " + of.Name + " lint --explain wedge-self",
		Args:         cli.NoArguments("pass files with -f"),
		RunE:         cli.Interruptible(o.run),
		SilenceUsage: true,
	}
	cmd.SetUsageFunc(cli.PrintUsage)
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Input", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with objects, YAML or JSON, or - for stdin; may be repeated")
		_ = cmd.MarkFlagFilename("filename", manifest.Extensions...)
		flags.StringArrayVar(&o.static, "static-manifests-dir", nil, "`directory` of static admission manifests; may be repeated")
		cli.CompleteFolders(cmd, "static-manifests-dir")
		flags.BoolVar(&o.cluster, "cluster", false, "check a cluster, in addition to files")
	})
	o.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Rules", func() {
		AddReleaseFlag(cmd, &o.release, "that policies are checked for", "defaults to that of the cluster, or with files to any")
		ids := ruleIDs(false)
		flags.StringSliceVar(&o.rules, "rule", nil, "`rules` to check; defaults to all; see docs/lint.md")
		cli.CompleteChoices(cmd, "rule", ids)
		flags.StringVar(&o.severity, "severity", string(lint.Warning), "minimum `severity` of findings to report: "+cli.OneOf(lintSeverities))
		cli.CompleteChoices(cmd, "severity", lintSeverities)
		flags.StringArrayVar(&o.ignore, "ignore", nil, "findings to ignore, `rule=reason` or rule@Kind/name=reason; may be repeated")
		cli.CompleteChoices(cmd, "ignore", withSuffix(ids, "="))
		flags.StringVar(&o.baseline, "baseline", "", "`file` with findings that are known, as --output json has printed them: only others are reported")
		cli.CompleteFiles(cmd, "baseline", "json")
		flags.StringVar(&o.explain, "explain", "", "print what a `rule` checks, why, and how to fix findings")
		cli.CompleteChoices(cmd, "explain", ruleIDs(true))
	})
	cli.AddOutputFlag(cmd, &o.output, lintOutputs)
	return cmd
}

// ruleIDs are the names of all rules, with or without the rules that need a test.
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
		errs = append(errs, errors.New("nothing to check: set -f FILE, --static-manifests-dir DIRECTORY or --cluster"))
	}
	if !o.cluster && (o.Kubeconfig != "" || o.Context != "") {
		errs = append(errs, errors.New("--kubeconfig and --context require --cluster"))
	}
	for _, id := range o.rules {
		if !slices.Contains(ruleIDs(false), id) {
			errs = append(errs, o.unknownRule("rule", id))
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

func (o *lintOptions) unknownRule(flag, id string) error {
	return fmt.Errorf("--%s: there is no rule %q; see '%s lint --help' and docs/lint.md for all rules", flag, id, o.of.Name)
}

func (o *lintOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
	if o.explain != "" {
		rule, ok := lint.FindRule(o.explain)
		if !ok {
			return o.unknownRule("explain", o.explain)
		}
		_, err := io.WriteString(cmd.OutOrStdout(), rule.Explain())
		return err
	}
	ignores, err := o.validate()
	if err != nil {
		return err
	}
	options := lint.Options{Release: o.release, Rules: o.rules, Ignore: ignores, Paths: paths(o.of.Webhooks), PodDefault: o.of.PodDefault}
	result := inspect.Result{Threshold: lint.Severity(o.severity)}
	if len(o.files)+len(o.static) > 0 {
		result.Add(inspect.LintFiles(o.files, o.static, cmd.InOrStdin(), options))
	}
	if o.cluster {
		c, err := o.Open()
		if err != nil {
			return err
		}
		report, err := inspect.LintCluster(ctx, c, options)
		if err != nil {
			return err
		}
		result.Add(report, nil)
	}
	if o.baseline != "" {
		known, err := inspect.ReadBaseline(o.baseline)
		if err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
		result.Subtract(known)
	}
	switch o.output {
	case "text":
		err = result.PrintText(cmd.OutOrStdout())
	case "json", "yaml":
		err = result.PrintAs(cmd.OutOrStdout(), o.output)
	default:
		err = result.Report(o.of.Name+" lint").Write(cmd.OutOrStdout(), o.output)
	}
	switch {
	case err != nil:
		return err
	case result.Err != nil:
		return result.Err
	case result.Found():
		return cli.ExitFound
	}
	return nil
}

// paths are the URL paths of webhooks by their names.
func paths(webhooks []admission.Webhook) map[string][]string {
	out := map[string][]string{}
	for _, w := range webhooks {
		out[w.Name] = append(out[w.Name], w.Path)
	}
	return out
}
