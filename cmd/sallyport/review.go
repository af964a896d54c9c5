// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/replay/review"
	"github.com/sallyport-io/sallyport/internal/report"
	"github.com/sallyport-io/sallyport/internal/server"
)

type reviewOptions struct {
	files, with, old, webhooks   []string
	operation, namespace, output string
	color, validation            string
	server                       *server.Config
	user                         authenticationv1.UserInfo
	config                       string
}

var reviewOperations = []string{string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Delete)}

func newReviewCommand() *cobra.Command {
	o := reviewOptions{server: server.Default()}
	cmd := &cobra.Command{
		Use:   "review -f FILE [--with FILE|FOLDER ...]",
		Short: "Show what admission would do to objects and their pods, without a cluster",
		Long: "Run the webhooks of serve on objects, and show the result. The pods of workloads are reviewed too, with\n" +
			"the names and labels that controllers give them: Deployments, StatefulSets, DaemonSets, Jobs, CronJobs\n" +
			"and the like, Kubeflow's Notebooks and training jobs, JobSets, and any kind with a pod template. An\n" +
			"AdmissionReview is replayed as recorded.\n\n" +
			"Objects that the webhooks read from a cluster, such as PodDefaults, and CustomResourceDefinitions are\n" +
			"read from the files of --with. Objects are checked first: unknown fields, wrong types, and the schema of\n" +
			"custom resources. The API server's own defaulting, admission plugins and validation, and the selectors\n" +
			"of webhook configurations are not applied.\n\n" +
			"Exit status: 0 allowed, 3 denied (the message is on stderr), 1 anything else, such as objects that could\n" +
			"not be reviewed.",
		Example: "  # what the PodDefaults of a file do to a pod, and which of them does what\n" +
			"  sallyport review -f pod.yaml --with poddefaults.yaml\n\n" +
			"  # what a pipeline is about to apply, with the PodDefaults of a cluster\n" +
			"  kubectl get poddefaults -n team-a -o yaml | sallyport review -n team-a -f manifests/ --with -\n\n" +
			"  # a change of an object\n" +
			"  kubectl get service web -o yaml | sallyport review --operation UPDATE -f service.yaml --old -\n\n" +
			"  # only the resulting pod, for another program\n" +
			"  sallyport review -f pod.yaml --with poddefaults/ -o yaml",
		Args: cli.NoArguments("pass the file with the objects with -f"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			config, err := server.Load(o.config, cmd.Flags(), server.OfDeployment...)
			o.server = config
			return errors.Join(err, o.validate())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	cli.AddFlagGroup(cmd, "Input", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil,
			"`file` or folder with the objects or AdmissionReviews to review, YAML or JSON; - for stdin; may be repeated")
		flags.StringArrayVar(&o.with, "with", nil,
			"`file` or folder with objects that the webhooks read, such as PodDefaults; - for stdin; may be repeated")
		flags.StringVar(&o.operation, "operation", reviewOperations[0],
			"`operation` of the request: "+cli.OneOf(reviewOperations))
		flags.StringArrayVar(&o.old, "old", nil,
			"`file` or folder with the old objects for --operation UPDATE, matched by name, here or in --with; - for stdin; may be repeated")
		flags.StringVar(&o.user.Username, "as", "sallyport-review", "`name` of the requesting user")
		flags.StringArrayVar(&o.user.Groups, "as-group", nil, "`name` of a group of the user; may be repeated")
		flags.StringVarP(&o.namespace, "namespace", "n", "default", "`namespace` of objects without a namespace")
		addValidateFlag(cmd, &o.validation)
	})
	cli.AddFlagGroup(cmd, "Webhooks", func() {
		flags.StringArrayVar(&o.webhooks, "webhook", nil,
			"`name` of a webhook of --webhooks to call if its rules cover the object; may be repeated (default all)")
		addConfigFlag(cmd, &o.config)
		addServerFlags(cmd, o.server, "webhooks")
	})
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.StringVarP(&o.output, "output", "o", review.OutputDiff,
			"`format` of the output: what changed and why (diff), the resulting objects and their pods (yaml, json), the JSON Patch (patch), the AdmissionReview (review), or a report for CI ("+cli.OneOf(report.Formats)+")")
		flags.StringVar(&o.color, "color", cli.ColorChoices[0], "`when` to color the diff: "+cli.OneOf(cli.ColorChoices))
	})
	_ = cmd.MarkFlagRequired("filename") // for completion; validate has the better message
	cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
	cli.CompleteFiles(cmd, "with", manifest.Extensions...)
	cli.CompleteFiles(cmd, "old", manifest.Extensions...)
	cli.CompleteChoices(cmd, "operation", reviewOperations)
	cli.CompleteChoices(cmd, "output", review.Outputs)
	cli.CompleteChoices(cmd, "color", cli.ColorChoices)
	cli.CompleteChoices(cmd, "webhook", builtinNames())
	return cmd
}

func (o *reviewOptions) validate() error {
	errs := []error{
		cli.Choice("operation", o.operation, reviewOperations),
		cli.Choice("output", o.output, review.Outputs),
		cli.Choice("color", o.color, cli.ColorChoices),
		cli.Choice("validate", o.validation, fieldcheck.Modes),
	}
	if o.user.Username == "" {
		errs = append(errs, errors.New("--as must not be empty: every request has a user"))
	}
	if len(o.files) == 0 {
		errs = append(errs, errors.New("-f is required: pass a file with the objects to review, or - for stdin"))
	}
	if o.namespace == "" {
		errs = append(errs, errors.New("--namespace must not be empty: omit it for the namespace default"))
	}
	if len(o.old) > 0 && o.operation != string(admissionv1.Update) {
		errs = append(errs, errors.New("--old requires --operation UPDATE"))
	}
	return errors.Join(append(errs, manifest.StdinOnce(slices.Concat(o.files, o.with, o.old)))...)
}

func (o *reviewOptions) run(cmd *cobra.Command) error {
	printer := &review.Printer{Out: cmd.OutOrStdout(), Notes: cmd.ErrOrStderr(), Output: o.output, Color: cli.UseColor(o.color, cmd.OutOrStdout())}
	run := review.Run{
		Files: o.files, With: o.with, Old: o.old, Stdin: cmd.InOrStdin(), Notes: cmd.ErrOrStderr(), Show: printer.Print,
		Operation: admissionv1.Operation(o.operation), Namespace: o.namespace, User: o.user, Validation: o.validation,
	}
	o.server.Review(&run)
	define := run.Webhooks
	run.Webhooks = func(from review.Sources) ([]admission.Webhook, error) {
		webhooks, err := define(from)
		if err != nil {
			return nil, err
		}
		return o.choose(webhooks)
	}
	denied, err := run.Do(cmd.Context())
	err = errors.Join(err, printer.End(err))
	if err == nil && denied {
		err = exitStatus(exitDenied)
	}
	return err
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

// builtinNames are the names of the ready-made webhooks, for completion.
func builtinNames() []string { return webhookNames(builtinWebhooks()) }

// builtinWebhooks are the ready-made webhooks with their default settings.
func builtinWebhooks() []admission.Webhook {
	var out []admission.Webhook
	for _, b := range server.Builtins() {
		webhooks, err := b.Default()
		if err != nil { // cannot happen with default settings
			return nil
		}
		out = append(out, webhooks...)
	}
	return out
}

func webhookNames(webhooks []admission.Webhook) []string {
	names := make([]string, len(webhooks))
	for i, webhook := range webhooks {
		names[i] = webhook.Name
	}
	return names
}

func addValidateFlag(cmd *cobra.Command, mode *string) {
	cmd.Flags().StringVar(mode, "validate", fieldcheck.Modes[0],
		"`mode` for unknown fields: reject them (strict), warn, or ignore them, as for fields newer than this program")
	cli.CompleteChoices(cmd, "validate", fieldcheck.Modes)
}
