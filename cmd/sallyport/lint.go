// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/inspect"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/report"
	"github.com/sallyport-io/sallyport/lint"
)

var lintOutputs = slices.Concat(textOrJSON, report.Formats)

var lintSeverities = []string{string(lint.Error), string(lint.Warning), string(lint.Info)}

type lintOptions struct {
	clusterFlags
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
		RunE: interruptible(o.run),
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
	addOutputFlag(cmd, &o.output, lintOutputs)
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
		errs = append(errs, errors.New("--kubeconfig and --context need --cluster"))
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

func (o *lintOptions) run(ctx context.Context, cmd *cobra.Command, _ []string) error {
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
	result := inspect.Result{Threshold: lint.Severity(o.severity)}
	if len(o.files)+len(o.static) > 0 {
		result.Add(inspect.LintFiles(o.files, o.static, cmd.InOrStdin(), options))
	}
	if o.cluster {
		c, err := o.open()
		if err != nil {
			return err
		}
		report, err := inspect.LintCluster(ctx, c, options)
		if err != nil {
			return err
		}
		result.Add(report, nil)
	}
	switch o.output {
	case "text":
		err = result.PrintText(cmd.OutOrStdout())
	case "json":
		err = result.PrintJSON(cmd.OutOrStdout())
	default:
		err = result.Report("sallyport lint").Write(cmd.OutOrStdout(), o.output)
	}
	switch {
	case err != nil:
		return err
	case result.Err != nil:
		return result.Err
	case result.Found():
		return exitStatus(exitFound)
	}
	return nil
}

// builtinPaths are the paths by which the ready-made webhooks are called.
func builtinPaths() map[string][]string {
	out := map[string][]string{}
	for _, w := range builtinWebhooks() {
		out[w.Name] = append(out[w.Name], w.Path)
	}
	return out
}
