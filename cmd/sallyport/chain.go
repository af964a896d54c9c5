// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/commands"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/objects"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/served"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

var chainOperations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}

type chainOptions struct {
	clusterflags.Flags
	question inspect.Question
	files    []string
	with     []string
	static   []string
	all      bool
	text     cli.Text

	list               bool
	old                []string
	call, allowUnknown bool
	dryRun             bool
	fieldManager       string
	release            release.Version
	config             *serve.Config
	configFile         string
}

func newChainCommand() *cobra.Command {
	o := chainOptions{Flags: clusterFlags(), config: serve.Default()}
	cmd := &cobra.Command{
		Use:   "chain RESOURCE [-n NAMESPACE] [-f FILE]",
		Short: "Run the webhooks and policies for a request in the API server's order, or list them",
		Long: "Run the policies and webhooks that the API server evaluates for a request, in its order and with its own\n" +
			"libraries: mutating policies and webhooks, reinvocation, pod security, validating policies and webhooks,\n" +
			"each on the result of the one before. Each step shows what it changes or refuses, and why. Sallyport's\n" +
			"own webhooks are evaluated here; other webhooks are unknown, unless --call calls them. What depends on a\n" +
			"field that the API server sets, such as the priority, is unknown with files. With a cluster, a request\n" +
			"that the steps allow is also sent to the API server as a dry run: quotas, LimitRanges and its validation\n" +
			"may refuse it. See docs/chain.md.\n\n" +
			"Without -f, or with --list, only list them, with failure policy, timeout, and the rules, selectors and\n" +
			"match conditions that include or exclude the request. Without -f, everything that depends on the object\n" +
			"is reported as maybe.\n\n" +
			"RESOURCE has the format that kubectl accepts, such as pods, deployments.apps or pods/eviction. The object\n" +
			"in the file is evaluated as is, without the API server's defaults.",
		Example: "  # run a pod through the policies and webhooks of a cluster\n" +
			"  sallyport chain pods -n team-a -f pod.yaml --as alice\n\n" +
			"  # the same with those of a repository, in a pipeline\n" +
			"  sallyport chain pods -f pod.yaml --with policies/ -o github\n\n" +
			"  # which ones there are for any Deployment, and for one\n" +
			"  sallyport chain deployments.apps -n team-a --operation UPDATE --as alice --show-excluded\n" +
			"  sallyport chain deployments.apps -n team-a -f web.yaml --list -o json",
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
		flags.StringVarP(&o.question.Namespace, "namespace", "n", "", "`namespace` to use; defaults to that of the object in the file, or else default")
		flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with the object, YAML or JSON, or - for stdin; for UPDATE and DELETE it is also the old object")
		cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
		flags.StringVar(&o.question.Name, "object-name", "", "`name` of the object, if no file is given")
		flags.StringVar(&o.question.Operation, "operation", chainOperations[0], "`operation` of the request: "+cli.OneOf(chainOperations))
		cli.CompleteChoices(cmd, "operation", chainOperations)
		flags.StringVar(&o.question.User, "as", "", "`name` of the requesting user; defaults to you, or without a cluster to a user without permissions; in a list, unknown")
		flags.StringArrayVar(&o.question.Groups, "as-group", nil, "`name` of a group of the user; may be repeated")
	})
	cli.AddFlagGroup(cmd, "Webhooks and policies", func() {
		flags.StringArrayVar(&o.with, "with", nil, "`file` or folder with webhook configurations, policies, CustomResourceDefinitions and namespaces to use instead of a cluster; may be repeated")
		cli.CompleteFiles(cmd, "with", manifest.Extensions...)
		flags.StringArrayVar(&o.static, "static-manifests-dir", nil, "`directory` of static admission manifests that the API server reads beside what the cluster or --with has; may be repeated")
		cli.CompleteFolders(cmd, "static-manifests-dir")
	})
	cli.AddFlagGroup(cmd, "Evaluation", func() {
		flags.BoolVar(&o.list, "list", false, "only list the policies and webhooks for the object of --filename")
		flags.StringArrayVar(&o.old, "old", nil, "`file` or folder with the old object for --operation UPDATE, if it differs")
		cli.CompleteFiles(cmd, "old", manifest.Extensions...)
		flags.BoolVar(&o.dryRun, "as-dry-run", false, "evaluate the request as a dry run, such as that of 'kubectl create --dry-run=server'")
		flags.StringVar(&o.fieldManager, "field-manager", "", "`name` of the field manager of the request, such as kubectl-create or kubectl-client-side-apply; without it, policies that read it are unknown")
		commands.AddReleaseFlag(cmd, &o.release, "that evaluates", "defaults to that of the cluster, or with files to the newest; another one than the cluster's shows what an upgrade changes")
		flags.BoolVar(&o.call, "call", false, "call other webhooks that can be reached, as a dry run, if they declare no side effects for it")
		flags.BoolVar(&o.allowUnknown, "allow-unknown", false, "accept what is unknown: exit with 0 or 3 although an input of the result is")
		addConfigFlag(cmd, &o.configFile)
		addServerFlags(cmd, o.config, "webhooks")
	})
	o.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.BoolVar(&o.all, "show-excluded", false, "also print webhooks and policies whose rules, selectors or match conditions exclude the request")
	})
	o.text.AddFlags(cmd, chain.Outputs)
	return cmd
}

func (o *chainOptions) validate(flags *pflag.FlagSet) error {
	errs := []error{cli.Choice("operation", o.question.Operation, chainOperations), o.text.Validate(chain.Outputs)}
	if o.evaluates() {
		if len(o.old) > 0 && o.question.Operation != string(admissionv1.Update) {
			errs = append(errs, errors.New("--old requires --operation UPDATE"))
		}
		if o.fieldManager != "" {
			for _, err := range validation.ValidateFieldManager(o.fieldManager, field.NewPath("--field-manager")) {
				errs = append(errs, err)
			}
		}
	} else {
		if given := cli.Given(flags, func(f *pflag.Flag) bool { return slices.Contains(ofEvaluation, f.Name) }); len(given) > 0 {
			errs = append(errs, fmt.Errorf("%s requires -f with the object, without --list", strings.Join(given, ", ")))
		}
		if slices.Contains(report.Formats, o.text.Format) {
			errs = append(errs, fmt.Errorf("--output %s requires -f with the object, without --list", o.text.Format))
		}
	}
	if len(o.with) > 0 && (o.Kubeconfig != "" || o.Context != "") {
		errs = append(errs, errors.New("--with replaces the cluster: omit --kubeconfig and --context"))
	}
	return errors.Join(append(errs, manifest.StdinOnce(slices.Concat(o.with, o.files, o.old)))...)
}

func (o *chainOptions) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	if err := o.validate(cmd.Flags()); err != nil {
		return err
	}
	var err error
	if o.question.Object, err = object(o.files, cmd.InOrStdin()); err != nil {
		return err
	}
	if o.evaluates() {
		return o.evaluateChain(ctx, cmd, args[0])
	}
	static, err := objects.ReadStatic(o.static)
	if err != nil {
		return err
	}
	var admission *inspect.Admission
	var known *resources.Set
	if len(o.with) > 0 {
		admission, known, err = inspect.AdmissionOfFiles(o.with, cmd.InOrStdin(), static)
	} else {
		admission, known, err = o.cluster(ctx, static)
	}
	if err != nil {
		return err
	}
	argument := ""
	argument, o.question.Subresource, _ = strings.Cut(args[0], "/")
	resource, err := o.find(known, argument)
	if err != nil {
		return err
	}
	links, err := admission.Chain(ctx, resource, o.question)
	if err != nil {
		return err
	}
	if o.text.Format != "text" {
		return cli.PrintAs(cmd.OutOrStdout(), o.text.Format, links)
	}
	return links.PrintText(o.text.Screen(cmd), o.all)
}

// find finds the resource that an argument names, also if only the object of the request shows that there is one.
func (o *chainOptions) find(known *resources.Set, argument string) (*resources.Resource, error) {
	object := o.question.Object
	if object == nil || len(o.with) == 0 { // a cluster has all
		return known.Find(argument)
	}
	return known.FindFor(argument, object.GVK(), object.Namespace != "" || o.question.Namespace != "")
}

// evaluates reports whether the request is run, and not only what there is for it listed.
func (o *chainOptions) evaluates() bool { return len(o.files) > 0 && !o.list }

// ofEvaluation are the flags of an evaluation.
var ofEvaluation = []string{"old", "as-dry-run", "field-manager", commands.ReleaseFlag, "call", "allow-unknown", "config", "webhooks"}

// cluster reads the admission configuration and the resources of a cluster.
func (o *chainOptions) cluster(ctx context.Context, static []*manifest.Object) (*inspect.Admission, *resources.Set, error) {
	c, err := o.Open()
	if err != nil {
		return nil, nil, err
	}
	admission, err := inspect.AdmissionOfCluster(ctx, c, inspect.AdmissionKinds(), static...)
	if err != nil {
		return nil, nil, err
	}
	known, err := resources.OfCluster(c.Client.Discovery())
	return admission, known, err
}

// object reads files with one object; nil without files.
func object(files []string, stdin io.Reader) (*manifest.Object, error) {
	if len(files) == 0 {
		return nil, nil
	}
	objects, err := manifest.Read(files, stdin)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s contains %d objects: chain takes one", strings.Join(files, ", "), len(objects))
	}
	return objects[0], nil
}

// evaluateChain evaluates the chain of a request.
func (o *chainOptions) evaluateChain(ctx context.Context, cmd *cobra.Command, argument string) error {
	config, err := serve.Load(o.configFile, setting.GivenTo(cmd.Flags()), serve.OfDeployment...)
	if err != nil {
		return err
	}
	if o.question.Old, err = object(o.old, cmd.InOrStdin()); err != nil {
		return err
	}
	run := &chain.Run{Call: o.call, FieldManager: o.fieldManager, Release: o.release}
	var from *cluster.Cluster
	if len(o.with) > 0 {
		run.FromFiles = true
		if run.Objects, err = manifest.Read(o.with, cmd.InOrStdin()); err == nil {
			run.Resources, err = resources.OfFiles(run.Objects)
		}
	} else if from, err = o.Open(); err == nil {
		run.Resources, err = resources.OfCluster(from.Client.Discovery())
	}
	if err != nil {
		return err
	}
	static, err := objects.ReadStatic(o.static)
	if err != nil {
		return err
	}
	run.Objects = append(run.Objects, static...)
	argument, o.question.Subresource, _ = strings.Cut(argument, "/")
	resource, err := o.find(run.Resources, argument)
	if err != nil {
		return err
	}
	if run.Request, err = o.question.Review(resource); err != nil {
		return err
	}
	if o.dryRun {
		run.Request.DryRun = new(true)
	}
	if from != nil {
		if err := run.ReadCluster(ctx, from); err != nil {
			return err
		}
		for _, name := range []string{"dataset", "projectlimit"} {
			if config.Has(name) {
				run.Unknown = append(run.Unknown, "inputs of the webhook "+name+": they are not read from a cluster, only from --with")
			}
		}
	}
	reads := &review.Run{Given: run.Objects, Notes: cmd.ErrOrStderr(), Namespace: cmp.Or(run.Request.Namespace, metav1.NamespaceDefault), Validation: fieldcheck.Modes[0]}
	served.Review(reads, config)
	if run.Webhooks, err = reads.Prepared(ctx); err != nil {
		return err
	}
	result, err := run.Do(ctx)
	if err != nil {
		return err
	}
	if err := result.Print(o.text.Screen(cmd), o.text.Format, o.question.Operation, o.question.Object, o.all, o.allowUnknown); err != nil {
		return err
	}
	return result.Verdict(o.allowUnknown)
}
