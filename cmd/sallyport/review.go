// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/webhooks/projectlimit"
)

type reviewOptions struct {
	files, with, webhooks        []string
	operation, namespace, output string
	color                        string
	selection                    builtinSelection
	settings                     builtinSettings
	user                         authenticationv1.UserInfo
	config                       string
}

var reviewOperations = []string{string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Delete)}

func newReviewCommand() *cobra.Command {
	o := reviewOptions{settings: defaultBuiltinSettings()}
	cmd := &cobra.Command{
		Use:   "review -f FILE [--with FILE|FOLDER ...]",
		Short: "Say what admission would do to objects, without any cluster",
		Long: "Review sends objects through the same webhooks as serve does, and shows what comes out.\n\n" +
			"What the webhooks read from a cluster, such as PodDefaults, comes from files given by --with.\n" +
			"The API server's own defaults and plugins, and the selectors of a webhook configuration, take\n" +
			"no part.\n\n" +
			"Exit status: 0 allowed, 3 denied (the message is on stderr), 1 anything else.",
		Example: "  # what PodDefaults of a file do to a pod, and which of them does what\n" +
			"  sallyport review -f pod.yaml --with poddefaults.yaml\n\n" +
			"  # with the PodDefaults of a cluster\n" +
			"  kubectl get poddefaults -n team-a -o yaml | sallyport review -n team-a -f pod.yaml --with -\n\n" +
			"  # the resulting pod alone, for another program\n" +
			"  sallyport review -f pod.yaml --with poddefaults/ -o yaml",
		Args: noArguments("name the file with the objects by -f"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(useConfig(cmd, o.config, &o.selection, &o.settings), o.validate())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	addFlagGroup(cmd, "What is reviewed", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil,
			"`file` or folder with the objects to review, YAML or JSON; - for stdin; may be repeated")
		flags.StringArrayVar(&o.with, "with", nil,
			"`file` or folder with objects that the webhooks read, such as PodDefaults; - for stdin; may be repeated")
		flags.StringVar(&o.operation, "operation", reviewOperations[0],
			"`operation` that is asked for: "+cli.OneOf(reviewOperations))
		flags.StringVar(&o.user.Username, "as", "sallyport-review", "`name` of the user who asks")
		flags.StringArrayVar(&o.user.Groups, "as-group", nil, "`name` of a group of that user; may be repeated")
		flags.StringVarP(&o.namespace, "namespace", "n", "default", "`namespace` of all objects that name none")
	})
	addFlagGroup(cmd, "By which webhooks", func() {
		flags.StringArrayVar(&o.webhooks, "webhook", nil,
			"`name` of a webhook to call, if its rules cover the object, of those in --webhooks; may be repeated (default all)")
		addConfigFlag(cmd, &o.config)
		o.selection.addFlag(cmd)
		addPodDefaultFlags(cmd, &o.settings.podDefault.Settings)
	})
	addFlagGroup(cmd, "Output", func() {
		flags.StringVarP(&o.output, "output", "o", outputDiff,
			"`format` of the output: what changed and why (diff), the resulting object (yaml, json), the JSON Patch (patch) or the AdmissionReview (review)")
		flags.StringVar(&o.color, "color", colorChoices[0], "`when` to colour the diff: "+cli.OneOf(colorChoices))
	})
	_ = cmd.MarkFlagRequired("filename") // for completion; validate says it better
	cli.CompleteFiles(cmd, "filename", manifestExtensions...)
	cli.CompleteFiles(cmd, "with", manifestExtensions...)
	cli.CompleteChoices(cmd, "operation", reviewOperations)
	cli.CompleteChoices(cmd, "output", reviewOutputs)
	cli.CompleteChoices(cmd, "color", colorChoices)
	cli.CompleteChoices(cmd, "webhook", builtinNames())
	return cmd
}

func (o *reviewOptions) validate() error {
	errs := []error{
		cli.Choice("operation", o.operation, reviewOperations),
		cli.Choice("output", o.output, reviewOutputs),
		cli.Choice("color", o.color, colorChoices),
	}
	errs = append(errs, o.selection.validate())
	if o.user.Username == "" {
		errs = append(errs, errors.New("--as must not be empty: every request has a user"))
	}
	if len(o.files) == 0 {
		errs = append(errs, errors.New("-f is needed: name a file with the objects to review, or - for stdin"))
	}
	if o.namespace == "" {
		errs = append(errs, errors.New("--namespace must not be empty: leave it out for the namespace default"))
	}
	return errors.Join(append(errs, stdinOnce(slices.Concat(o.files, o.with)))...)
}

func (o *reviewOptions) run(cmd *cobra.Command) error {
	given := newPodDefaultFiles()
	projects := projectlimit.NewIndex()
	datasets := newDatasetFiles()
	webhooks, err := o.selection.define(&o.settings, builtinSources{podDefaults: given.index, authors: anybody{}, neighbours: given.index, projects: projects, datasets: datasets.index})
	if err != nil {
		return err
	}
	if webhooks, err = o.choose(webhooks); err != nil {
		return err
	}
	objects, err := o.read(cmd, given, projects, datasets)
	if err != nil {
		return err
	}
	printer := reviewPrinter{
		out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), output: o.output, color: useColor(o.color, cmd.OutOrStdout()),
	}
	denied := false
	for _, object := range objects {
		out, err := o.review(cmd.Context(), object, webhooks)
		if err != nil {
			return err
		}
		if len(out.called) > 0 {
			given.explain(object, out.namespace, cmd.ErrOrStderr())
		}
		if err := printer.print(out); err != nil {
			return err
		}
		if err := datasets.rank(cmd.Context(), out, o.settings.dataset, cmd.ErrOrStderr()); err != nil {
			return err
		}
		denied = denied || out.denied != nil
	}
	if denied {
		return exitStatus(exitDenied)
	}
	return nil
}

// read reads all files, and reports the mistakes in all of them at once.
func (o *reviewOptions) read(cmd *cobra.Command, given *podDefaultFiles, projects *projectlimit.Index, datasets *datasetFiles) ([]*object, error) {
	with, errWith := readPaths(o.with, cmd.InOrStdin())
	objects, errObjects := readPaths(o.files, cmd.InOrStdin())
	var errProjects, errDatasets error
	if o.selection.has("projectlimit") {
		with, errProjects = loadProjects(with, projects)
	}
	if o.selection.has("dataset") {
		with, errDatasets = datasets.load(with, o.namespace)
	}
	errLoad := given.load(with, o.namespace, cmd.ErrOrStderr())
	err := errors.Join(errWith, errProjects, errDatasets, errLoad, errObjects)
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s: there is nothing to review: the lists are empty", strings.Join(o.files, ", "))
	}
	return objects, err
}

func (o *reviewOptions) review(ctx context.Context, object *object, webhooks []admission.Webhook) (*outcome, error) {
	out, err := decide(ctx, object, admissionv1.Operation(o.operation), o.namespace, o.user, webhooks)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", object.at(), object.title(), err)
	}
	return out, nil
}

func (o *reviewOptions) choose(all []admission.Webhook) ([]admission.Webhook, error) {
	if len(o.webhooks) == 0 {
		return all, nil
	}
	var errs []error
	for _, name := range o.webhooks {
		errs = append(errs, cli.Choice("webhook", name, webhookNames(all)))
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(webhook admission.Webhook) bool {
		return !slices.Contains(o.webhooks, webhook.Name)
	})
	return chosen, errors.Join(errs...)
}

// builtinNames are the webhooks to choose from, for completion.
func builtinNames() []string {
	settings := defaultBuiltinSettings()
	webhooks, err := builtinSelection{"*"}.define(&settings, noSources())
	if err != nil { // run reports it
		return nil
	}
	return webhookNames(webhooks)
}

func webhookNames(webhooks []admission.Webhook) []string {
	names := make([]string, len(webhooks))
	for i, webhook := range webhooks {
		names[i] = webhook.Name
	}
	return names
}
