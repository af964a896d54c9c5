// SPDX-License-Identifier: Apache-2.0

// Package commands has the commands that look at objects, configurations and clusters, for sallyport
// and for any application: what they import, above all Kubernetes' CEL, is not for a server that
// does not have them.
package commands

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/report"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Reviewer is what the command review of a program runs.
type Reviewer struct {
	// Name is that of the program.
	Name string
	// Long and Example are those of the help; empty for an application's.
	Long, Example string
	// AddFlags adds flags about the webhooks, and Prepare reads them. Both may be nil.
	AddFlags func(*cobra.Command)
	Prepare  func(*cobra.Command) error
	// Review sets the webhooks of a run.
	Review func(*review.Run)
	// Names are those of the webhooks to choose from, for completion.
	Names []string
}

// describe is the help of an application.
func (r *Reviewer) describe() {
	r.Long = "Run the webhooks of " + r.Name + " on objects, and show the result. The pods of workloads are reviewed too, with\n" +
		"the names and labels that controllers give them. An AdmissionReview is replayed as recorded.\n\n" +
		"Objects are checked first: unknown fields, wrong types, and the schema of custom resources, whose\n" +
		"CustomResourceDefinitions are read from the files of --with. The API server's own defaulting, admission\n" +
		"plugins and validation, and the selectors of webhook configurations are not applied. Handlers that read\n" +
		"from a cluster fail.\n\n" +
		"The command fails if an object is denied, or could not be reviewed."
	r.Example = "  " + r.Name + " review -f object.yaml --with definition.yaml\n\n" +
		"  # a change of an object\n" +
		"  kubectl get -f object.yaml -o yaml | " + r.Name + " review --operation UPDATE -f object.yaml --old -"
}

type reviewOptions struct {
	files, with, old, webhooks   []string
	operation, namespace, output string
	color, validation            string
	allowUnknown                 bool
	user                         authenticationv1.UserInfo
	server                       bool
	release                      release.Version
	cluster                      clusterflags.Flags
	of                           Reviewer
}

var reviewOperations = []string{string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Delete)}

// Review is the command review of a program.
func Review(of Reviewer) *cobra.Command {
	if of.Long == "" {
		of.describe()
	}
	o := reviewOptions{of: of, cluster: clusterflags.Flags{UserAgent: of.Name + "/" + cli.BuildVersion()}}
	cmd := &cobra.Command{
		Use:     "review -f FILE [--with FILE|FOLDER ...]",
		Short:   "Show what admission would do to objects and their pods, without a cluster",
		Long:    of.Long,
		Example: of.Example,
		Args:    cli.NoArguments("pass the file with the objects with -f"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if of.Prepare != nil {
				err = of.Prepare(cmd)
			}
			return errors.Join(err, o.validate(), o.validateServer(cmd.Flags()))
		},
		RunE:         func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
		SilenceUsage: true,
	}
	cmd.SetUsageFunc(cli.PrintUsage)
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
		flags.StringVar(&o.user.Username, "as", of.Name+"-review", "`name` of the requesting user")
		flags.StringArrayVar(&o.user.Groups, "as-group", nil, "`name` of a group of the user; may be repeated")
		flags.StringVarP(&o.namespace, "namespace", "n", "default", "`namespace` to use for objects without one")
		AddValidateFlag(cmd, &o.validation)
		AddReleaseFlag(cmd, &o.release, "whose PodSecurity is evaluated", "defaults to the newest; with --server the API server decides")
		flags.BoolVar(&o.allowUnknown, "allow-unknown", false, "accept what is unknown: exit with 0 or 3 although an input of the result is, such as a PriorityClass that is not in the files")
	})
	cli.AddFlagGroup(cmd, "Webhooks", func() {
		flags.StringArrayVar(&o.webhooks, "only", nil,
			"`name` of a webhook to call if its rules cover the object; may be repeated (default all)")
		if of.AddFlags != nil {
			of.AddFlags(cmd)
		}
	})
	cli.AddFlagGroup(cmd, "Cluster", func() {
		flags.BoolVar(&o.server, "server", false, "ask the API server about the resulting objects and pods too, by dry runs with your rights, or with --as by impersonation; objects that exist are reviewed as updates")
	})
	o.cluster.AddFlags(cmd)
	cli.AddFlagGroup(cmd, "Output", func() {
		flags.StringVarP(&o.output, "output", "o", review.OutputDiff,
			"`format` of the output: what changed and why (diff), the resulting objects and their pods (yaml, json), the JSON Patch (patch), the AdmissionReview (review), or a report for CI ("+cli.OneOf(report.Formats)+")")
		cli.AddColorFlag(cmd, &o.color, "the diff")
	})
	_ = cmd.MarkFlagRequired("filename") // for completion; validate has the better message
	cli.CompleteFiles(cmd, "filename", manifest.Extensions...)
	cli.CompleteFiles(cmd, "with", manifest.Extensions...)
	cli.CompleteFiles(cmd, "old", manifest.Extensions...)
	cli.CompleteChoices(cmd, "operation", reviewOperations)
	cli.CompleteChoices(cmd, "output", review.Outputs)
	cli.CompleteChoices(cmd, "only", of.Names)
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
	printer := &review.Printer{Out: cmd.OutOrStdout(), Notes: cmd.ErrOrStderr(), Output: o.output, Color: cli.UseColor(o.color, cmd.OutOrStdout()), AllowUnknown: o.allowUnknown}
	run := review.Run{
		Files: o.files, With: o.with, Old: o.old, Stdin: cmd.InOrStdin(), Notes: cmd.ErrOrStderr(), Show: printer.Print,
		Operation: admissionv1.Operation(o.operation), Namespace: o.namespace, User: o.user, Validation: o.validation,
		Release: o.release,
	}
	o.of.Review(&run)
	if o.server {
		var err error
		if run.Server, err = o.openServer(cmd.Flags().Changed("as")); err != nil {
			return err
		}
	}
	define := run.Webhooks
	run.Webhooks = func(from review.Sources) ([]admission.Webhook, error) {
		webhooks, err := define(from)
		if err != nil {
			return nil, err
		}
		return o.choose(webhooks)
	}
	err := run.Do(cmd.Context())
	if err = errors.Join(err, printer.End(err)); err != nil {
		return err
	}
	return printer.Verdict()
}

func (o *reviewOptions) choose(all []admission.Webhook) ([]admission.Webhook, error) {
	if len(o.webhooks) == 0 {
		return all, nil
	}
	var errs []error
	for _, name := range o.webhooks {
		errs = append(errs, cli.Choice("only", name, WebhookNames(all)))
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(webhook admission.Webhook) bool {
		return !slices.Contains(o.webhooks, webhook.Name)
	})
	return chosen, errors.Join(errs...)
}

// WebhookNames are those of webhooks.
func WebhookNames(webhooks []admission.Webhook) []string {
	names := make([]string, len(webhooks))
	for i, webhook := range webhooks {
		names[i] = webhook.Name
	}
	return names
}

// AddValidateFlag adds the flag for one of [fieldcheck.Modes].
func AddValidateFlag(cmd *cobra.Command, mode *string) {
	cmd.Flags().StringVar(mode, "validate", fieldcheck.Modes[0],
		"`mode` for unknown fields: reject them (strict), warn, or ignore them, as for fields newer than this program")
	cli.CompleteChoices(cmd, "validate", fieldcheck.Modes)
}
