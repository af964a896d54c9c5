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

var listOutputs = append(slices.Clone(cli.TextOrJSON), "name")

// readyMade is what the command prints of a webhook.
type readyMade struct {
	// Name is the one for --webhooks.
	Name string `json:"name"`
	// Default is on or off, or - for a webhook that another program hosts.
	Default  string   `json:"default"`
	Does     string   `json:"does"`
	Requests []string `json:"requests"`
}

func newWebhooksCommand() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "webhooks",
		Short: "List the ready-made webhooks",
		Long: "List the webhooks that serve can host: the name for --webhooks, whether they are enabled by default, and\n" +
			"which requests the API server sends to them with their default settings. A webhook with a dash as\n" +
			"default is hosted by another program.",
		Example: "  sallyport webhooks\n" +
			"  sallyport webhooks -o name",
		Args: cli.NoArguments("it lists all of them"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Choice("output", output, listOutputs); err != nil {
				return err
			}
			all, err := readyMades()
			if err != nil {
				return err
			}
			return printReadyMades(cmd.OutOrStdout(), output, all)
		},
	}
	cli.AddOutputFlag(cmd, &output, listOutputs)
	return cmd
}

func readyMades() ([]readyMade, error) {
	var out []readyMade
	here := serve.Builtins()
	for i, b := range append(here, serve.HostedByOthers()...) {
		webhooks, err := b.Default()
		if err != nil {
			return nil, err
		}
		enabled := "off"
		switch {
		case i >= len(here):
			enabled = "-"
		case serve.Default().Has(b.Name):
			enabled = "on"
		}
		out = append(out, readyMade{b.Name, enabled, b.Short, requests(webhooks)})
	}
	return out, nil
}

func printReadyMades(out io.Writer, output string, all []readyMade) error {
	if output != "text" && output != "name" {
		return cli.PrintAs(out, output, all)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if output == "text" {
		_, _ = fmt.Fprintln(table, "NAME\tDEFAULT\tDOES\tREQUESTS") // Flush returns the error
	}
	for _, w := range all {
		if output == "name" {
			_, _ = fmt.Fprintln(table, w.Name)
			continue
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", w.Name, w.Default, w.Does, strings.Join(w.Requests, ", "))
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
