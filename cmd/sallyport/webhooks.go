// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
)

func newWebhooksCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "List the ready-made webhooks",
		Args:  cli.NoArguments("choose a subcommand"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWebhooksListCommand())
	return cmd
}

var listOutputs = []string{"table", "name"}

func newWebhooksListCommand() *cobra.Command {
	output := listOutputs[0]
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the ready-made webhooks",
		Long: "List the webhooks that serve can host: the name for --webhooks, whether they are enabled by default, and\n" +
			"which requests the API server sends to them with their default settings. A webhook with a dash as\n" +
			"default is hosted by another program.",
		Example: "  sallyport webhooks list\n" +
			"  sallyport webhooks list -o name",
		Args: cli.NoArguments("it lists all of them"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Choice("output", output, listOutputs); err != nil {
				return err
			}
			return listBuiltins(cmd.OutOrStdout(), output)
		},
	}
	cli.AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVarP(&output, "output", "o", output, "`format` of the output: "+cli.OneOf(listOutputs))
	})
	cli.CompleteChoices(cmd, "output", listOutputs)
	return cmd
}

func listBuiltins(out io.Writer, output string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if output == "table" {
		_, _ = fmt.Fprintln(table, "NAME\tDEFAULT\tDOES\tREQUESTS") // Flush returns the error
	}
	here := serve.Builtins()
	for i, b := range append(here, serve.HostedByOthers()...) {
		if output == "name" {
			_, _ = fmt.Fprintln(table, b.Name)
			continue
		}
		webhooks, err := b.Default()
		if err != nil {
			return err
		}
		enabled := "off"
		switch {
		case i >= len(here):
			enabled = "-"
		case serve.Default().Has(b.Name):
			enabled = "on"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.Name, enabled, b.Short, strings.Join(requests(webhooks), ", "))
	}
	return table.Flush()
}

// requests lists what the rules of the webhooks cover, such as "CREATE pods", in their
// order.
func requests(webhooks []admission.Webhook) []string {
	var out []string
	for _, webhook := range webhooks {
		for _, rule := range webhook.Rules {
			for _, resource := range rule.Resources {
				for _, operation := range rule.Operations {
					if request := requestName(rule, operation, resource); !slices.Contains(out, request) {
						out = append(out, request)
					}
				}
			}
		}
	}
	return out
}

func requestName(rule admissionregistrationv1.RuleWithOperations, operation admissionregistrationv1.OperationType, resource string) string {
	name := string(operation) + " " + resource
	if group := rule.APIGroups[0]; group != "" {
		name += "." + group
	}
	return name
}
