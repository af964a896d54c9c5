// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	frontdoor "github.com/sallyport-io/sallyport"
	configv1alpha1 "github.com/sallyport-io/sallyport/api/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/manifest"
)

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, print and describe the file that configures serve",
		Long: "Config is about the file of 'sallyport serve --config', a SallyportConfiguration of\n" +
			configv1alpha1.APIVersion + ". A field that is absent has the default of its flag.",
		Args: noArguments("choose a command"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigCheckCommand(), newConfigPrintCommand(), newConfigSchemaCommand())
	return cmd
}

func newConfigCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Report every mistake in a configuration",
		Long: "Check reads a configuration as serve does, and reports every mistake with its line. Nothing is\n" +
			"reached over the network. Exit status: 0 if there is none, 1 otherwise.",
		Example:           "  sallyport config check sallyport.yaml",
		Args:              oneFile,
		ValidArgsFunction: completeConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := effectiveConfig(args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is good\n", manifest.Printable(args[0]))
			return err
		},
	}
}

func newConfigPrintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "print [FILE]",
		Short: "Print a configuration with all defaults filled in",
		Long: "Print shows the configuration as serve takes it: what the file says, and the default of everything\n" +
			"else. Without a file it shows the defaults alone. What is printed can be read again.",
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
			out, err := yaml.Marshal(config)
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

// effectiveConfig is what serve makes of a file and no flags; of nothing if the path
// is empty.
func effectiveConfig(path string) (*configv1alpha1.SallyportConfiguration, error) {
	cmd, o, app := newServe()
	if app == nil {
		return nil, cmd.RunE(cmd, nil)
	}
	o.settings.Client = &rest.Config{} // how to reach the API server is not asked here
	o.config, o.endpointLater = path, true
	if err := o.prepare(cmd, app); err != nil {
		return nil, err
	}
	out := &configv1alpha1.SallyportConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.APIVersion, Kind: configv1alpha1.Kind}}
	if err := fromFlags(cmd.Flags(), reflect.ValueOf(out).Elem()); err != nil {
		return nil, err
	}
	for _, b := range builtins() {
		entry := configv1alpha1.Webhook{Name: b.name}
		if given := o.builtin.entry(b.name); given != nil {
			entry = *given
		}
		enabled := o.webhooks.has(b.name)
		entry.Enabled = &enabled
		var err error
		if entry.Settings, err = json.Marshal(o.builtin.of(b.name)); err != nil {
			return nil, err
		}
		out.Webhooks = append(out.Webhooks, entry)
	}
	return out, nil
}

// fromFlags sets every field to the value that its flag has. A text that is empty by
// default is left out.
func fromFlags(flags *pflag.FlagSet, into reflect.Value) error {
	for _, field := range reflect.VisibleFields(into.Type()) {
		value := into.FieldByIndex(field.Index)
		name := field.Tag.Get("flag")
		if name == "" {
			if field.Type.Kind() == reflect.Struct && !field.Anonymous {
				if err := fromFlags(flags, value); err != nil {
					return err
				}
			}
			continue
		}
		flag := flags.Lookup(name)
		if flag == nil {
			return fmt.Errorf("the field %s has no flag --%s", field.Name, name)
		}
		if err := fromFlag(flag, value); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

func fromFlag(flag *pflag.Flag, into reflect.Value) error {
	text := flag.Value.String()
	switch v := into.Interface().(type) {
	case []string:
		list, ok := flag.Value.(pflag.SliceValue)
		if !ok {
			return fmt.Errorf("it is no list")
		}
		into.Set(reflect.ValueOf(append([]string{}, list.GetSlice()...)))
		return nil
	case *string:
		if text != "" || flag.DefValue != "" {
			into.Set(reflect.ValueOf(&text))
		}
		return nil
	case *metav1.Duration:
		d, err := time.ParseDuration(text)
		into.Set(reflect.ValueOf(&metav1.Duration{Duration: d}))
		return err
	default:
		if text == frontdoor.PrivatePathsAuto { // what holds if the field is left out
			return nil
		}
		pointer := reflect.New(reflect.TypeOf(v).Elem())
		into.Set(pointer)
		return json.Unmarshal([]byte(text), pointer.Interface())
	}
}
