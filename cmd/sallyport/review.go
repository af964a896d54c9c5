// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/commands"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/served"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
)

func newReviewCommand() *cobra.Command {
	config, file := serve.Default(), ""
	return commands.Review(commands.Reviewer{
		Name: "sallyport",
		Long: "Run the webhooks of serve on objects, and show the result. The pods of workloads are reviewed too, with\n" +
			"the names and labels that controllers give them: Deployments, StatefulSets, DaemonSets, Jobs, CronJobs\n" +
			"and the like, Kubeflow's Notebooks and training jobs, JobSets, and any kind with a pod template. An\n" +
			"AdmissionReview is replayed as recorded.\n\n" +
			"Objects that the webhooks read from a cluster, such as PodDefaults, and CustomResourceDefinitions are\n" +
			"read from the files of --with. Objects are checked first: unknown fields, wrong types, and the schema of\n" +
			"custom resources. The API server's own defaulting, admission plugins and validation, and the selectors\n" +
			"of webhook configurations are not applied. With --server, the API server of a cluster is asked about each\n" +
			"resulting object by a dry run, with your rights. A refusal names the fields and what has set them.",
		Example: "  # apply the PodDefaults of a file to a pod, and show which of them makes each change\n" +
			"  sallyport review -f pod.yaml --with poddefaults.yaml\n\n" +
			"  # review the objects of a pipeline with the PodDefaults of a cluster\n" +
			"  kubectl get poddefaults -n team-a -o yaml | sallyport review -n team-a -f manifests/ --with -\n\n" +
			"  # also show refusals by the API server itself\n" +
			"  sallyport review -n team-a -f manifests/ --with poddefaults/ --server\n\n" +
			"  # a change of an object\n" +
			"  kubectl get service web -o yaml | sallyport review --operation UPDATE -f service.yaml --old -\n\n" +
			"  # only the resulting pod, for another program\n" +
			"  sallyport review -f pod.yaml --with poddefaults/ -o yaml",
		AddFlags: func(cmd *cobra.Command) {
			addConfigFlag(cmd, &file)
			addServerFlags(cmd, config, "webhooks")
		},
		Prepare: func(cmd *cobra.Command) (err error) {
			config, err = serve.Load(file, setting.GivenTo(cmd.Flags()), serve.OfDeployment...)
			return err
		},
		Review: func(run *review.Run) { served.Review(run, config) },
		Names:  builtinNames(),
	})
}

// builtinNames returns the names of the built-in webhooks, for completion.
func builtinNames() []string { return commands.WebhookNames(builtinWebhooks()) }

// builtinWebhooks returns the built-in webhooks with their default settings.
func builtinWebhooks() []admission.Webhook {
	var out []admission.Webhook
	for _, b := range serve.Builtins() {
		webhooks, err := b.Default()
		if err != nil { // cannot happen with default settings
			return nil
		}
		out = append(out, webhooks...)
	}
	return out
}
