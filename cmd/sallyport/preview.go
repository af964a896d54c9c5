// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/clusterflags"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

type previewOptions struct {
	defaultsOptions
	remove, names bool
	color, output string
}

func newPreviewCommand() *cobra.Command {
	o := previewOptions{defaultsOptions: defaultsOptions{Flags: clusterFlags()}}
	cmd := &cobra.Command{
		Use:   "preview -f FILE | poddefault/NAME | clusterpoddefault/NAME",
		Short: "Show which workloads a PodDefault would affect, and how",
		Long: "Compare the pods that the workloads of a cluster create now with the pods they would create if the\n" +
			"PodDefaults or ClusterPodDefaults of the files were applied. For a named PodDefault, show its effect by\n" +
			"comparing with a cluster without it. Workloads are Deployments, StatefulSets, DaemonSets, ReplicaSets,\n" +
			"Jobs, CronJobs, and pods without a known owner. Running pods do not change, and nothing is written.\n" +
			"Files are checked first: fields, schema, and what the webhook for authors would reject.\n\n" +
			"The API server is asked about each pod that would change by a dry run, with your rights: quotas,\n" +
			"LimitRanges, classes, ServiceAccounts, policies and its validation may refuse it.",
		Example: "  # before applying it\n" +
			"  sallyport preview -f poddefault.yaml\n\n" +
			"  # what deleting it would undo\n" +
			"  sallyport preview poddefault/http-proxy -n team-a --remove",
		Args:              cli.Arguments(0, 2, "poddefault/NAME, clusterpoddefault/NAME, or -f FILE"),
		ValidArgsFunction: completeDefaults(&o.Flags),
		PreRunE: func(cmd *cobra.Command, args []string) error {
			err := errors.Join(o.prepare(cmd, args), cli.Choice("color", o.color, cli.ColorChoices), cli.Choice("output", o.output, cli.TextOrJSON))
			if o.remove && len(o.files) > 0 {
				err = errors.Join(err, errors.New("--remove requires the name of an object in the cluster"))
			}
			if o.names && o.output != "text" {
				err = errors.Join(err, errors.New("--names requires --output text"))
			}
			return err
		},
		RunE: o.preview,
	}
	o.addFlags(cmd, "PodDefaults and ClusterPodDefaults")
	o.addServerFlag(cmd)
	cli.AddFlagGroup(cmd, "Output", func() {
		cmd.Flags().BoolVar(&o.remove, "remove", false, "show what would change if the named object were deleted")
		cmd.Flags().BoolVar(&o.names, "names", false, "print only the names of the workloads that would change")
		cli.AddColorFlag(cmd, &o.color, "the diff")
	})
	cli.AddOutputFlag(cmd, &o.output, cli.TextOrJSON)
	return cmd
}

// completeDefaults completes poddefault/ and clusterpoddefault/, and then names in the
// cluster.
func completeDefaults(of *clusterflags.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word, _, named := strings.Cut(typed, "/")
		var offered []string
		for _, kind := range injection.Kinds() {
			if !named && strings.HasPrefix(kind.Words[0], typed) {
				offered = append(offered, kind.Words[0]+"/")
			}
			if named && slices.Contains(kind.Words, word) {
				c, err := of.Open()
				if err != nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				for _, name := range of.Complete(cmd, kind.Path(c.Namespace)) {
					offered = append(offered, word+"/"+name)
				}
			}
		}
		if !named {
			return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

func (o *previewOptions) preview(cmd *cobra.Command, args []string) error {
	simulator, err := o.asking(cmd)
	if err != nil {
		return err
	}
	printer := injection.PreviewPrinter{Out: cmd.OutOrStdout(), Color: cli.UseColor(o.color, cmd.OutOrStdout()), Names: o.names}
	result := previewed{Workloads: []previewedWorkload{}}
	show := printer.Print
	if o.output != "text" {
		printer.Out, show = io.Discard, result.add
	}
	p := injection.Preview{Simulator: simulator, Show: show, Everywhere: o.Namespace == ""}
	var effect *injection.Effect
	if len(args) > 0 {
		effect, err = p.Named(cmd.Context(), args, o.remove)
	} else {
		var objects []*manifest.Object
		if objects, err = injection.ReadFiles(cmd.Context(), o.files, cmd.InOrStdin(), o.checker, "preview"); err == nil {
			effect, err = p.Files(cmd.Context(), objects)
		}
	}
	if err != nil {
		return err
	}
	if o.output != "text" {
		if err := cli.PrintAs(cmd.OutOrStdout(), o.output, result.of(effect)); err != nil {
			return err
		}
	}
	return deniedStatus(printer.End(effect))
}

// A previewed is the output of preview for programs: docs/poddefault-operations.md has its fields.
type previewed struct {
	// Refused is set if an object itself would be refused. Nothing else is set then.
	Refused bool `json:"refused,omitempty"`
	// Looked counts workloads, Changed those with other pods, Denied and Spared those whose pods would newly be denied,
	// or be denied no more, and Unknown those of which it is unknown whether the API server accepts their pods.
	Looked  int `json:"looked"`
	Changed int `json:"changed"`
	Denied  int `json:"denied"`
	Spared  int `json:"spared"`
	Unknown int `json:"unknown"`
	// Unseen are kinds in namespaces that you may not list.
	Unseen []string `json:"unseen,omitempty"`
	// Workloads are those whose pods change, or are denied differently.
	Workloads []previewedWorkload `json:"workloads"`
	// Objects are those that are previewed, but those that are deleted.
	Objects []previewedObject `json:"objects"`
}

type previewedWorkload struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Verdict   string `json:"verdict"`
}

type previewedObject struct {
	Object string `json:"object"`
	// Applied counts the workloads to whose pods it would be applied.
	Applied int `json:"applied"`
	// NotApplied has at most ten of those to whose pods it would not, although it selects them, or else of those that it does not
	// select, if it would be applied to none. More counts the others.
	NotApplied []notApplied `json:"notApplied"`
	More       int          `json:"more"`
}

type notApplied struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
}

func (p *previewed) add(c *injection.Change) error {
	p.Workloads = append(p.Workloads, previewedWorkload{c.Workload.Namespace, c.Workload.Kind, c.Workload.Name, c.Verdict()})
	return nil
}

func (p *previewed) of(e *injection.Effect) *previewed {
	p.Refused, p.Looked, p.Changed, p.Denied, p.Spared, p.Unknown, p.Unseen = e.Refused, e.Looked, e.Changed, e.Denied, e.Spared, e.Unknown, e.Unseen
	p.Objects = []previewedObject{}
	for _, o := range e.Objects {
		object := previewedObject{Object: o.Object, Applied: o.Applied, NotApplied: []notApplied{}, More: o.More}
		for _, n := range o.NotApplied {
			object.NotApplied = append(object.NotApplied, notApplied{n.Workload.Namespace, n.Workload.Kind, n.Workload.Name, n.Reason})
		}
		p.Objects = append(p.Objects, object)
	}
	return p
}
