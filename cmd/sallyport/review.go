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
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/webhooks/projectlimit"
)

type reviewOptions struct {
	files, with, old, webhooks   []string
	operation, namespace, output string
	color, validation            string
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
		Short: "Say what admission would do to objects and to the pods they make, without any cluster",
		Long: "Review sends objects through the same webhooks as serve does, and shows what comes out. Of what makes\n" +
			"pods it reviews the pods as well, with the names and labels that the controllers give them: Deployments,\n" +
			"StatefulSets, DaemonSets, Jobs, CronJobs and the like, Kubeflow's Notebooks and training jobs, JobSets,\n" +
			"and any kind with a pod template in it. An AdmissionReview is replayed as it was recorded.\n\n" +
			"What the webhooks read from a cluster, such as PodDefaults, comes from files given by --with; so do\n" +
			"CustomResourceDefinitions. Objects are checked first: fields that are not known, wrong types, and, of\n" +
			"custom resources, the schema. The API server's own defaults and plugins, its validation of its own kinds,\n" +
			"and the selectors of a webhook configuration, take no part.\n\n" +
			"Exit status: 0 allowed, 3 denied (the message is on stderr), 1 anything else, such as objects that could\n" +
			"not be looked at.",
		Example: "  # what PodDefaults of a file do to a pod, and which of them does what\n" +
			"  sallyport review -f pod.yaml --with poddefaults.yaml\n\n" +
			"  # what a pipeline is about to apply, with the PodDefaults of a cluster\n" +
			"  kubectl get poddefaults -n team-a -o yaml | sallyport review -n team-a -f manifests/ --with -\n\n" +
			"  # a change of an object\n" +
			"  kubectl get service web -o yaml | sallyport review --operation UPDATE -f service.yaml --old -\n\n" +
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
			"`file` or folder with the objects or AdmissionReviews to review, YAML or JSON; - for stdin; may be repeated")
		flags.StringArrayVar(&o.with, "with", nil,
			"`file` or folder with objects that the webhooks read, such as PodDefaults; - for stdin; may be repeated")
		flags.StringVar(&o.operation, "operation", reviewOperations[0],
			"`operation` that is asked for: "+cli.OneOf(reviewOperations))
		flags.StringArrayVar(&o.old, "old", nil,
			"`file` or folder with the objects as they were, for --operation UPDATE; found by name, here or in --with; - for stdin; may be repeated")
		flags.StringVar(&o.user.Username, "as", "sallyport-review", "`name` of the user who asks")
		flags.StringArrayVar(&o.user.Groups, "as-group", nil, "`name` of a group of that user; may be repeated")
		flags.StringVarP(&o.namespace, "namespace", "n", "default", "`namespace` of all objects that name none")
		addValidateFlag(cmd, &o.validation)
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
			"`format` of the output: what changed and why (diff), the resulting objects, pods that are made among them (yaml, json), the JSON Patch (patch) or the AdmissionReview (review)")
		flags.StringVar(&o.color, "color", colorChoices[0], "`when` to colour the diff: "+cli.OneOf(colorChoices))
	})
	_ = cmd.MarkFlagRequired("filename") // for completion; validate says it better
	cli.CompleteFiles(cmd, "filename", manifestExtensions...)
	cli.CompleteFiles(cmd, "with", manifestExtensions...)
	cli.CompleteFiles(cmd, "old", manifestExtensions...)
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
		cli.Choice("validate", o.validation, validateModes),
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
	if len(o.old) > 0 && o.operation != string(admissionv1.Update) {
		errs = append(errs, errors.New("--old is for --operation UPDATE"))
	}
	return errors.Join(append(errs, stdinOnce(slices.Concat(o.files, o.with, o.old)))...)
}

func (o *reviewOptions) run(cmd *cobra.Command) error {
	r := reviewing{
		reviewOptions: o, notes: cmd.ErrOrStderr(), podDefaults: newPodDefaultFiles(), datasets: newDatasetFiles(),
		printer: reviewPrinter{
			out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), output: o.output, color: useColor(o.color, cmd.OutOrStdout()),
		},
	}
	projects := projectlimit.NewIndex()
	webhooks, err := o.selection.define(&o.settings, builtinSources{
		podDefaults: r.podDefaults.index, authors: anybody{}, neighbours: r.podDefaults.index, projects: projects, datasets: r.datasets,
	})
	if err != nil {
		return err
	}
	if r.webhooks, err = o.choose(webhooks); err != nil {
		return err
	}
	objects, err := r.read(cmd, projects)
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range objects {
		// What could not be looked at does not keep others from it, and is told at the end.
		errs = append(errs, r.review(cmd.Context(), object))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if r.denied {
		return exitStatus(exitDenied)
	}
	return nil
}

// reviewing is one run of review.
type reviewing struct {
	*reviewOptions
	notes       io.Writer
	webhooks    []admission.Webhook
	podDefaults *podDefaultFiles
	datasets    *datasetFiles
	with, was   []*object // was are the objects as they were
	asker       asker
	checker     *fieldChecker
	printer     reviewPrinter
	denied      bool
}

// read reads all files, and reports all that is wrong with them at once.
func (r *reviewing) read(cmd *cobra.Command, projects *projectlimit.Index) ([]*object, error) {
	with, errWith := readPaths(r.reviewOptions.with, cmd.InOrStdin())
	objects, errObjects := readPaths(r.files, cmd.InOrStdin())
	was, errOld := readPaths(r.old, cmd.InOrStdin())
	known, errDefinitions := readDefinitions(slices.Concat(with, objects))
	r.checker = newFieldChecker(r.validation, r.notes, known)
	kinds, errKinds := resourcesOfFiles(slices.Concat(with, objects))
	if errDefinitions != nil {
		errKinds = nil // it says the same
	}
	err := errors.Join(errWith, errObjects, errOld, errDefinitions, errKinds, r.checker.check(cmd.Context(), slices.Concat(podDefaultsAmong(with), objects)...))
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s: there is nothing to review: the lists are empty", strings.Join(r.files, ", "))
	}
	if err != nil {
		return nil, err
	}
	r.asker = asker{operation: admissionv1.Operation(r.operation), namespace: r.namespace, user: r.user, kinds: kinds}
	r.with, r.was = with, slices.Concat(was, with)
	var errProjects, errDatasets error
	rest := slices.DeleteFunc(slices.Clone(with), func(o *object) bool { return isDefinition(o) || r.wasOf(objects, o) })
	if r.selection.has("projectlimit") {
		rest, errProjects = loadProjects(rest, projects)
	}
	if r.selection.has("dataset") {
		rest, errDatasets = r.datasets.load(rest, r.namespace)
	}
	return objects, errors.Join(errProjects, errDatasets, r.podDefaults.load(rest, r.namespace, r.notes))
}

// wasOf tells whether an object of --with is there as what another one was, or what it
// refers to.
func (r *reviewing) wasOf(objects []*object, o *object) bool {
	if strings.HasSuffix(o.Kind, "TrainingRuntime") {
		return true
	}
	return r.operation == string(admissionv1.Update) && !isPodDefault(o) && slices.ContainsFunc(objects, func(now *object) bool { return r.same(now, o) })
}

// same tells whether two objects are of one kind and name.
func (r *reviewing) same(a, b *object) bool {
	return a.gvk().GroupKind() == b.gvk().GroupKind() && a.Name == b.Name && cmp.Or(a.Namespace, r.namespace) == cmp.Or(b.Namespace, r.namespace)
}

// find implements [finder] for the files.
func (r *reviewing) find(apiVersion, kind, namespace, name string) (*object, error) {
	for _, o := range r.with {
		if o.APIVersion == apiVersion && o.Kind == kind && o.Name == name && (namespace == "" || cmp.Or(o.Namespace, r.namespace) == namespace) {
			return o, nil
		}
	}
	return nil, nil
}

// question is what the API server would ask about an object of a file.
func (r *reviewing) question(o *object) (question, error) {
	if isRecorded(o) {
		return recorded(o)
	}
	var old *object
	switch r.asker.operation {
	case admissionv1.Delete:
		old = o
	case admissionv1.Update:
		i := slices.IndexFunc(r.was, func(was *object) bool { return r.same(o, was) })
		if i < 0 {
			return question{}, o.document.errorAt(o.pointer, o.title()+": an UPDATE needs the object as it was, and there is no old object: name the file that has it by --old, or among --with")
		}
		old = r.was[i]
	}
	return r.asker.ask(o, old), nil
}

// review reviews one object of a file, and the pods that it makes. The error is about what
// could not be looked at.
func (r *reviewing) review(ctx context.Context, o *object) error {
	q, err := r.question(o)
	if err != nil {
		return err
	}
	out, err := decide(ctx, q, r.webhooks)
	if err != nil {
		return err
	}
	var pods []*object
	var errPods error
	if makesPods(q) && out.denied == nil {
		made := *q.object
		made.raw = out.after
		pods, errPods = podsOf(&made, r.namespace, r.find)
	}
	if len(out.called) > 0 || len(pods) == 0 && errPods == nil {
		if err := r.show(ctx, out); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		errPods = errors.Join(errPods, r.reviewMade(ctx, pod, q.req.Namespace))
	}
	return errPods
}

// makesPods tells whether pods are made after a request: not by what is one itself, is
// deleted, or changes by a part of it alone.
func makesPods(q question) bool {
	return q.object.gvk() != gvkPod && q.req.SubResource == "" && (q.req.Operation == admissionv1.Create || q.req.Operation == admissionv1.Update)
}

// reviewMade reviews a pod that an object makes.
func (r *reviewing) reviewMade(ctx context.Context, pod *object, namespace string) error {
	if err := r.checker.checkMade(ctx, pod); err != nil {
		return err
	}
	asker := r.asker
	asker.operation, asker.namespace = admissionv1.Create, namespace
	out, err := decide(ctx, asker.ask(pod, nil), r.webhooks)
	if err != nil {
		return err
	}
	return r.show(ctx, out)
}

func (r *reviewing) show(ctx context.Context, out *outcome) error {
	r.denied = r.denied || out.denied != nil
	if len(out.called) > 0 && out.object.gvk() == gvkPod {
		r.podDefaults.explain(out.object, out.req.Namespace, r.notes)
	}
	if err := r.printer.print(out); err != nil {
		return err
	}
	r.datasets.tellMissing(out, r.notes)
	return r.datasets.rank(ctx, out, r.settings.dataset, r.notes)
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
