// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/inspect"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/resources"
)

var chainOperations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}

type chainOptions struct {
	cluster.Flags
	question inspect.Question
	file     string
	with     []string
	all      bool
	output   string
}

func newChainCommand() *cobra.Command {
	o := chainOptions{Flags: clusterFlags()}
	cmd := &cobra.Command{
		Use:   "chain RESOURCE [-n NAMESPACE] [-f FILE]",
		Short: "List the webhooks and policies that a request passes, in the API server's order",
		Long: "List the policies and webhooks that the API server evaluates for a request, in order, with failure\n" +
			"policy, timeout, and the rules, selectors and match conditions that include or exclude the request. They\n" +
			"are evaluated as the API server does.\n\n" +
			"RESOURCE has the format that kubectl accepts, such as pods, deployments.apps or pods/eviction. Without\n" +
			"-f, everything that depends on the object is reported as maybe. The object is evaluated as it is in the\n" +
			"file, without the API server's defaults.",
		Example: "  sallyport chain pods -n team-a -f pod.yaml\n" +
			"  sallyport chain deployments.apps -n team-a --operation UPDATE --as alice --all\n" +
			"  sallyport chain pods -n team-a -f pod.yaml --with manifests/ --output json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes one argument, a resource such as pods or deployments.apps; got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: cli.Interruptible(o.run),
	}
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Request", func() {
		flags.StringVarP(&o.question.Namespace, "namespace", "n", "", "`namespace` of the object; defaults to the namespace in the file, or else default")
		flags.StringVarP(&o.file, "filename", "f", "", "`file` with the object, YAML or JSON, or - for stdin; for UPDATE and DELETE it is also the old object")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
		flags.StringVar(&o.question.Name, "name", "", "`name` of the object, if no file is given")
		flags.StringVar(&o.question.Operation, "operation", chainOperations[0], "`operation` of the request: "+cli.OneOf(chainOperations))
		cli.CompleteChoices(cmd, "operation", chainOperations)
		flags.StringVar(&o.question.User, "as", "", "`name` of the requesting user; empty if unknown")
		flags.StringArrayVar(&o.question.Groups, "as-group", nil, "`name` of a group of the user; may be repeated")
	})
	cli.AddFlagGroup(cmd, "Webhooks and policies", func() {
		flags.StringArrayVar(&o.with, "with", nil, "`file` or folder with webhook configurations, policies, CustomResourceDefinitions and namespaces to use instead of a cluster; may be repeated")
		cli.CompleteFiles(cmd, "with", manifest.Extensions...)
	})
	o.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.BoolVar(&o.all, "all", false, "also print webhooks and policies whose rules or selectors exclude the request")
	})
	cli.AddOutputFlag(cmd, &o.output, cli.TextOrJSON)
	return cmd
}

func (o *chainOptions) validate() error {
	errs := []error{cli.Choice("operation", o.question.Operation, chainOperations), cli.Choice("output", o.output, cli.TextOrJSON)}
	if len(o.with) > 0 && (o.Kubeconfig != "" || o.Context != "") {
		errs = append(errs, errors.New("--with replaces the cluster: omit --kubeconfig and --context"))
	}
	return errors.Join(append(errs, manifest.StdinOnce(append(slices.Clone(o.with), o.file)))...)
}

func (o *chainOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	if err := o.validate(); err != nil {
		return err
	}
	var err error
	if o.question.Object, err = o.object(cmd.InOrStdin()); err != nil {
		return err
	}
	var admission *inspect.Admission
	var known *resources.Set
	if len(o.with) > 0 {
		admission, known, err = inspect.AdmissionOfFiles(o.with, cmd.InOrStdin())
	} else {
		admission, known, err = o.cluster(ctx)
	}
	if err != nil {
		return err
	}
	argument := ""
	argument, o.question.Subresource, _ = strings.Cut(args[0], "/")
	resource, err := known.Find(argument)
	if err != nil {
		return err
	}
	chain, err := admission.Chain(ctx, resource, o.question)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return cli.PrintJSON(cmd.OutOrStdout(), chain)
	}
	return chain.PrintText(cmd.OutOrStdout(), o.all)
}

// cluster reads the admission configuration and the resources of a cluster.
func (o *chainOptions) cluster(ctx context.Context) (*inspect.Admission, *resources.Set, error) {
	c, err := o.Open()
	if err != nil {
		return nil, nil, err
	}
	admission, err := inspect.AdmissionOfCluster(ctx, c, inspect.AdmissionKinds())
	if err != nil {
		return nil, nil, err
	}
	known, err := resources.OfCluster(c.Client.Discovery())
	return admission, known, err
}

// object reads the file of --filename; nil without that flag.
func (o *chainOptions) object(stdin io.Reader) (*manifest.Object, error) {
	if o.file == "" {
		return nil, nil
	}
	objects, err := manifest.ReadPath(o.file, stdin)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s contains %d objects: chain takes one", o.file, len(objects))
	}
	return objects[0], nil
}
