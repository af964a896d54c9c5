// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

func newConfigCommand() *cobra.Command {
	cmd := group("config", "Check, print and describe the configuration file of serve",
		"Work with the file of 'sallyport serve --config', a SallyportConfiguration of\n"+
			configv1alpha1.APIVersion+". Absent fields have their defaults.")
	cmd.AddCommand(newConfigCheckCommand(), newConfigPrintCommand(), newConfigSchemaCommand())
	return cmd
}

func newConfigCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Report every problem in a configuration",
		Long: "Read a configuration as serve does, and report every problem with its line. This needs no network\n" +
			"access.",
		Example:           "  sallyport config check sallyport.yaml",
		Args:              oneFile,
		ValidArgsFunction: completeConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := effectiveConfig(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is valid\n", manifest.Printable(args[0]))
			return err
		},
	}
}

func newConfigPrintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "print [FILE]",
		Short: "Print a configuration with all defaults filled in",
		Long: "Print the effective configuration of serve: the fields of the file, and defaults for all others. Without\n" +
			"a file, print the defaults. The output is a valid configuration file.",
		Example: "  sallyport config print\n" +
			"  sallyport config print sallyport.yaml",
		Args:              atMostOneFile,
		ValidArgsFunction: completeConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			config, err := effectiveConfig(path)
			if err != nil {
				return err
			}
			out, err := yaml.JSONToYAML(config)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(out)
			return err
		},
	}
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one file, but got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

func atMostOneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one file, but got %d", cmd.CommandPath(), len(args))
	}
	return nil
}

func completeConfig(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return manifest.Extensions, cobra.ShellCompDirectiveFilterFileExt
}

// effectiveConfig returns the configuration that serve reads from a file, without flags. An
// empty path means the defaults.
func effectiveConfig(path string) ([]byte, error) {
	config, err := serve.Load(path, nil, "registration.service") // flags may set it
	if err != nil {
		return nil, err
	}
	return config.Complete()
}

func newConfigSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a configuration",
		Long: "Print a JSON Schema (draft 7) of the configuration, for editors and for tools that validate files. The\n" +
			"chart validates its value config with the same schema. 'sallyport config check' also finds problems that\n" +
			"a schema cannot express.",
		Example: "  sallyport config schema > sallyport.schema.json",
		Args:    cli.NoArguments("all configurations have the same schema"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			encoder := json.NewEncoder(cmd.OutOrStdout())
			encoder.SetIndent("", "  ")
			return encoder.Encode(serve.FileSchema())
		},
	}
}
