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
	"github.com/sallyport-io/sallyport/internal/inspect"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/resources"
)

var chainOperations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}

type chainOptions struct {
	clusterFlags
	question inspect.Question
	file     string
	with     []string
	all      bool
	output   string
}

func newChainCommand() *cobra.Command {
	o := chainOptions{}
	cmd := &cobra.Command{
		Use:   "chain RESOURCE [-n NAMESPACE] [-f FILE]",
		Short: "Say which webhooks and policies see an object, in the order of the API server",
		Long: "Chain names the policies and webhooks that the API server asks about a request, in the order in\n" +
			"which it comes to them, with failure policy, timeout, and what lets the request in or keeps it out:\n" +
			"rules, selectors and match conditions, which are evaluated as the API server does.\n\n" +
			"RESOURCE is what kubectl takes, such as pods, deployments.apps or pods/eviction. Without -f nothing is\n" +
			"known of the object, and what depends on it is answered by maybe. The object is judged as the file\n" +
			"has it: defaults of the API server are not filled in.",
		Example: "  sallyport chain pods -n team-a -f pod.yaml\n" +
			"  sallyport chain deployments.apps -n team-a --operation UPDATE --as alice --all\n" +
			"  sallyport chain pods -n team-a -f pod.yaml --with manifests/ --output json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes one argument, the resource, such as pods or deployments.apps; got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: interruptible(o.run),
	}
	flags := cmd.Flags()
	addFlagGroup(cmd, "Request", func() {
		flags.StringVarP(&o.question.Namespace, "namespace", "n", "", "`namespace` of the object; empty for the one that the file names, or default")
		flags.StringVarP(&o.file, "filename", "f", "", "`file` with the object, YAML or JSON, or - for stdin; for UPDATE and DELETE it is the old object too")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
		flags.StringVar(&o.question.Name, "name", "", "`name` of the object, if there is no file")
		flags.StringVar(&o.question.Operation, "operation", chainOperations[0], "`operation` that is asked for: "+cli.OneOf(chainOperations))
		cli.CompleteChoices(cmd, "operation", chainOperations)
		flags.StringVar(&o.question.User, "as", "", "`name` of the user who asks; empty if it is not known")
		flags.StringArrayVar(&o.question.Groups, "as-group", nil, "`name` of a group of that user; may be repeated")
	})
	addFlagGroup(cmd, "Webhooks and policies", func() {
		flags.StringArrayVar(&o.with, "with", nil, "`file` or folder with webhook configurations, policies, definitions and namespaces, which are looked at instead of a cluster; may be repeated")
		cli.CompleteFiles(cmd, "with", manifest.Extensions...)
	})
	o.addFlags(cmd)
	addFlagGroup(cmd, "Output", func() {
		flags.BoolVar(&o.all, "all", false, "print also those that no rule or selector lets in")
	})
	addOutputFlag(cmd, &o.output, textOrJSON)
	return cmd
}

func (o *chainOptions) validate() error {
	errs := []error{cli.Choice("operation", o.question.Operation, chainOperations), cli.Choice("output", o.output, textOrJSON)}
	if len(o.with) > 0 && (o.kubeconfig != "" || o.context != "") {
		errs = append(errs, errors.New("--with takes the place of a cluster: leave out --kubeconfig and --context"))
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

// cluster reads the admission and the resources of a cluster.
func (o *chainOptions) cluster(ctx context.Context) (*inspect.Admission, *resources.Set, error) {
	c, err := o.open()
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
		return nil, fmt.Errorf("%s holds %d objects: chain is about one", o.file, len(objects))
	}
	return objects[0], nil
}
