// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/injection"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/workload"
	"github.com/sallyport-io/sallyport/lint"
)

type missedOptions struct {
	clusterFlags
	all    bool
	output string
}

func newMissedCommand() *cobra.Command {
	o := missedOptions{output: explainOutputs[0]}
	cmd := &cobra.Command{
		Use:   "missed [-n NAMESPACE | -A]",
		Short: "List the pods that passed injection though a PodDefault is for them, as in an outage",
		Long: "Missed lists the pods that exist, that a PodDefault or ClusterPodDefault selects, and that the webhook\n" +
			"has not decided on: they were created while it did not answer and its failure policy was Ignore, or\n" +
			"before it was registered. Create them again to have them injected.\n\n" +
			"Pods are left out that the webhook would not be asked about (selectors and match conditions of its\n" +
			"configuration), that exclude themselves, and that are older than the object that selects them, or than\n" +
			"its last change: how many these are stands on stderr.\n\n" +
			"Exit status: 0 if there are none, 2 if there are some, 1 anything else.",
		Example: "  sallyport missed --all-namespaces\n" +
			"  sallyport missed -n team-a -o json",
		Args:    noArguments("name a namespace by -n"),
		PreRunE: func(*cobra.Command, []string) error { return o.validate() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addFlags(cmd)
	addFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look at all namespaces")
	})
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVarP(&o.output, "output", "o", o.output, "`format` of the output: "+cli.OneOf(explainOutputs))
		cli.CompleteChoices(cmd, "output", explainOutputs)
	})
	return cmd
}

func (o *missedOptions) validate() error {
	errs := []error{cli.Choice("output", o.output, explainOutputs)}
	if o.all && o.namespace != "" {
		errs = append(errs, errors.New("--all-namespaces and --namespace: give one of them"))
	}
	return errors.Join(errs...)
}

// missedPod is a pod that should have been injected.
type missedPod struct {
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	PodDefaults []string `json:"podDefaults"`
}

func (o *missedOptions) run(cmd *cobra.Command) error {
	c, err := o.open()
	if err != nil {
		return err
	}
	path := "/api/v1/pods"
	if !o.all {
		path = workload.Kinds()[0].Path(c.Namespace)
	}
	pods, err := c.List(cmd.Context(), path)
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	asked, err := newAsked(cmd.Context(), c)
	if err != nil {
		return err
	}
	if !asked.registered {
		manifest.Note(cmd.ErrOrStderr(), "note: no webhook %s is registered: pods are listed whatever the selectors of its configuration were", poddefault.Name)
	}
	known := map[string]*injection.Defaults{}
	found, older := []missedPod{}, 0
	for _, pod := range pods {
		if known[pod.Namespace] == nil {
			if known[pod.Namespace], err = injection.Read(cmd.Context(), c, pod.Namespace, cmd.ErrOrStderr()); err != nil {
				return err
			}
		}
		missed, changed := known[pod.Namespace].Missed(pod)
		if len(missed) == 0 && !changed {
			continue
		}
		if in, err := asked.about(cmd.Context(), pod); err != nil {
			return err
		} else if !in {
			continue
		}
		if len(missed) == 0 {
			older++
			continue
		}
		found = append(found, missedPod{pod.Namespace, pod.Name, missed})
	}
	slices.SortFunc(found, func(a, b missedPod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	if older > 0 {
		manifest.Note(cmd.ErrOrStderr(), "note: %s older than what would inject now, and not listed", pluralVerb(older, "pod is", "pods are"))
	}
	if err := o.print(cmd.OutOrStdout(), found); err != nil {
		return err
	}
	if len(found) > 0 {
		return exitStatus(exitFound)
	}
	return nil
}

func (o *missedOptions) print(out io.Writer, found []missedPod) error {
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(found)
	}
	if len(found) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "NAMESPACE\tNAME\tPODDEFAULTS")
	for _, pod := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\n", pod.Namespace, pod.Name, manifest.Printable(strings.Join(pod.PodDefaults, ",")))
	}
	return w.Flush()
}

// asked tells about which pods the API server asks the webhook of PodDefaults.
type asked struct {
	cluster    *cluster.Cluster
	inventory  *lint.Inventory
	minor      int
	labels     map[string]map[string]string // of namespaces
	registered bool
}

func newAsked(ctx context.Context, c *cluster.Cluster) (*asked, error) {
	inventory, err := readCluster(ctx, c.Config, []schema.GroupVersionKind{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")})
	if err != nil {
		return nil, err
	}
	a := &asked{cluster: c, inventory: inventory, labels: map[string]map[string]string{}}
	if a.minor, err = minorOfCluster(c.Config); err != nil {
		return nil, err
	}
	a.registered = len(a.links(ctx, lint.Request{})) > 0
	return a, nil
}

// links are what the chain has of the webhook: usually one.
func (a *asked) links(ctx context.Context, r lint.Request) []lint.Link {
	return slices.DeleteFunc(a.inventory.Chain(ctx, r), func(link lint.Link) bool { return !strings.HasSuffix(link.Name, "/"+poddefault.Name) })
}

func (a *asked) about(ctx context.Context, pod *manifest.Object) (bool, error) {
	if !a.registered {
		return true, nil
	}
	if _, there := a.labels[pod.Namespace]; !there {
		set, err := namespaceLabels(ctx, a.cluster.Config, pod.Namespace)
		if err != nil {
			return false, err
		}
		a.labels[pod.Namespace] = set
	}
	var value map[string]any
	if err := utiljson.Unmarshal(pod.Raw, &value); err != nil {
		return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	links := a.links(ctx, lint.Request{
		Operation: admissionregistrationv1.Create, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Namespace: pod.Namespace, Name: pod.Name, Object: value, NamespaceLabels: maps.Clone(a.labels[pod.Namespace]), KubernetesMinor: a.minor,
	})
	return slices.ContainsFunc(links, func(link lint.Link) bool { return link.Answer != lint.Out }), nil
}
