// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault/policy"
)

// Who injects PodDefaults, for manifests.
const (
	modeWebhook = "webhook"
	modePolicy  = "policy"
)

var manifestModes = []string{modeWebhook, modePolicy}

// policyFlags are those that --mode policy looks at. Others are about a server.
var policyFlags = []string{"mode", "filename", "config"}

func (o *manifestsOptions) addModeFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.mode, "mode", modeWebhook, "who injects PodDefaults: a server (webhook), or the API server by what is printed (policy)")
	flags.StringArrayVarP(&o.files, "filename", "f", nil,
		"`file` or folder with the PodDefaults for --mode policy, YAML or JSON; - for stdin; may be repeated")
	cli.CompleteChoices(cmd, "mode", manifestModes)
	cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
}

// runPolicyMode prints policies if that is the mode; handled says so.
func (o *manifestsOptions) runPolicyMode(cmd *cobra.Command) (handled bool, err error) {
	if err := cli.Choice("mode", o.mode, manifestModes); err != nil {
		return true, err
	}
	if o.mode == modeWebhook {
		if len(o.files) > 0 {
			return true, errors.New("-f is for --mode policy: a server reads PodDefaults from the cluster")
		}
		return false, nil
	}
	var errs []error
	if len(o.files) == 0 {
		errs = append(errs, errors.New("--mode policy needs -f: name a file with the PodDefaults, or - for stdin"))
	}
	errs = append(errs, manifest.StdinOnce(o.files))
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if cmd.LocalNonPersistentFlags().Lookup(flag.Name) != nil && !slices.Contains(policyFlags, flag.Name) {
			errs = append(errs, fmt.Errorf("--%s is not for --mode policy, which has no server", flag.Name))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return true, err
	}
	objects, err := manifest.Read(o.files, cmd.InOrStdin())
	if err != nil {
		return true, err
	}
	pds, err := readPolicyObjects(objects)
	if err == nil && len(pds) == 0 {
		err = fmt.Errorf("%s: there is no PodDefault: the lists are empty", strings.Join(o.files, ", "))
	}
	exported, errExport := policy.Export(pds, o.server.Settings.PodDefault.Settings)
	if err := errors.Join(err, errExport); err != nil {
		return true, err
	}
	return true, printPolicies(cmd.OutOrStdout(), exported)
}

// readPolicyObjects decodes PodDefaults. The error has every object that is none.
func readPolicyObjects(objects []*manifest.Object) ([]*kubeflowv1alpha1.PodDefault, error) {
	var out []*kubeflowv1alpha1.PodDefault
	var errs []error
	for _, object := range objects {
		switch object.GVK() {
		case kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind):
			pd := &kubeflowv1alpha1.PodDefault{}
			if err := object.DecodeStrict(pd); err != nil {
				errs = append(errs, err)
				continue
			}
			out = append(out, pd)
		case sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind):
			errs = append(errs, object.ErrorAt("",
				object.Title()+": policies are written for PodDefaults alone: make a PodDefault of it in each namespace, or use the webhook"))
		default:
			errs = append(errs, object.ErrorAt("", fmt.Sprintf("%s of %s is no PodDefault", object.Title(), object.APIVersion)))
		}
	}
	return out, errors.Join(errs...)
}

// printPolicies prints the notes as comments above the objects.
func printPolicies(out io.Writer, exported *policy.Exported) error {
	text := "# PodDefaults as policies, written by sallyport manifests --mode policy. What they do otherwise than the webhook:\n"
	for _, line := range exported.Notes {
		if continued, ok := strings.CutPrefix(line, "  "); ok {
			text += "#   " + continued + "\n"
			continue
		}
		text += "# - " + line + "\n"
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	return cli.PrintYAML(out, exported.Objects)
}
