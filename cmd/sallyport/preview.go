// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// newVersion is the resourceVersion of an object that is not in the cluster yet.
const newVersion = "new"

type previewOptions struct {
	defaultsOptions
	remove, names bool
	color         string
}

func newPreviewCommand() *cobra.Command {
	o := previewOptions{defaultsOptions: defaultsOptions{settings: defaultBuiltinSettings()}, color: colorChoices[0]}
	cmd := &cobra.Command{
		Use:   "preview -f FILE | poddefault/NAME | clusterpoddefault/NAME",
		Short: "Show which workloads' pods a PodDefault would change, and how",
		Long: "Preview compares the pods that the workloads of a cluster make now with those that they would make if\n" +
			"the PodDefaults or ClusterPodDefaults of the files were there, or were changed to that. For one that is\n" +
			"named it shows what it does: the comparison is with a cluster without it. Workloads are what makes\n" +
			"pods: Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs and CronJobs by their templates, and\n" +
			"pods that nobody known makes. Pods that run do not change; nothing is written. What is in a file is checked\n" +
			"first: its fields, its schema, and what the webhook for authors would refuse.\n\n" +
			"Exit status: 0 if all pods would be admitted, 3 if some would be denied that are not now, or the object\n" +
			"itself would be, 1 anything else.",
		Example: "  # before it is applied\n" +
			"  sallyport preview -f poddefault.yaml\n\n" +
			"  # what one does, and what its deletion would undo\n" +
			"  sallyport preview poddefault/http-proxy -n team-a --remove",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: o.completeDefaults,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			err := errors.Join(o.prepare(cmd, args), cli.Choice("color", o.color, colorChoices))
			if o.remove && len(o.files) > 0 {
				err = errors.Join(err, errors.New("--remove is for an object of the cluster: name it"))
			}
			return err
		},
		RunE: o.preview,
	}
	o.addFlags(cmd, "PodDefaults and ClusterPodDefaults")
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().BoolVar(&o.remove, "remove", false, "show what would change if the object that is named were deleted")
		cmd.Flags().BoolVar(&o.names, "names", false, "print which workloads would change, and not how")
		cmd.Flags().StringVar(&o.color, "color", o.color, "`when` to colour the diff: "+cli.OneOf(colorChoices))
		cli.CompleteChoices(cmd, "color", colorChoices)
	})
	return cmd
}

// defaultKinds are what can be previewed by name.
var defaultKinds = []struct {
	words []string
	path  func(namespace string) string
}{
	{[]string{"poddefault", "poddefaults"}, func(namespace string) string {
		return "/apis/" + kubeflowv1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/" + kubeflowv1alpha1.PodDefaultResource
	}},
	{[]string{"clusterpoddefault", "clusterpoddefaults"}, func(string) string {
		return "/apis/" + sallyportv1alpha1.GroupVersion.String() + "/" + sallyportv1alpha1.ClusterPodDefaultResource
	}},
}

func (o *previewOptions) completeDefaults(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	word, _, named := strings.Cut(typed, "/")
	var offered []string
	for _, kind := range defaultKinds {
		if !named && strings.HasPrefix(kind.words[0], typed) {
			offered = append(offered, kind.words[0]+"/")
		}
		if named && slices.Contains(kind.words, word) {
			c, err := o.open()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, name := range o.complete(cmd, kind.path(c.namespace)) {
				offered = append(offered, word+"/"+name)
			}
		}
	}
	if !named {
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// given are the objects that are previewed.
func (o *previewOptions) given(cmd *cobra.Command, c *cluster, args []string) ([]*clusterDefault, error) {
	var objects []*object
	var err error
	if len(args) > 0 {
		var found *object
		if found, err = c.defaultNamed(cmd.Context(), args); err == nil {
			objects = []*object{found}
		}
	} else {
		objects, err = o.defaultsOptions.given(cmd, "preview")
	}
	if err != nil {
		return nil, err
	}
	var out []*clusterDefault
	for i, object := range objects {
		if object.Namespace == "" && object.Kind == kubeflowv1alpha1.PodDefaultKind {
			if object, err = inNamespace(object, c.namespace); err != nil {
				return nil, err
			}
		}
		if object.ResourceVersion == "" {
			if object, err = c.asVersion(cmd.Context(), object); err != nil {
				return nil, err
			}
		}
		objects[i] = object
		d, err := readDefault(object)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	if len(args) > 0 {
		return out, nil
	}
	refused := false
	for _, object := range objects {
		result, err := o.try(cmd.Context(), object, &clusterDefaults{namespace: c.namespace})
		if err != nil {
			return nil, err
		}
		if result.denied != nil {
			refused = true
			note(cmd.ErrOrStderr(), "denied: %s: it would be refused when it is written: %s", object.title(), strings.ReplaceAll(result.denied.Message, "\n", "; "))
		}
	}
	if refused {
		return nil, exitStatus(exitDenied)
	}
	return out, nil
}

func (c *cluster) defaultNamed(ctx context.Context, args []string) (*object, error) {
	word, name, err := parseNamed(args)
	if err != nil {
		return nil, err
	}
	for _, kind := range defaultKinds {
		if slices.Contains(kind.words, strings.ToLower(word)) {
			return c.getNamed(ctx, kind.path(c.namespace), kind.words[0], name)
		}
	}
	return nil, fmt.Errorf("type %q: choose poddefault or clusterpoddefault", word)
}

// inNamespace is an object of that namespace.
func inNamespace(o *object, namespace string) (*object, error) {
	return edited(o, func(meta map[string]any) { meta["namespace"] = namespace })
}

// asVersion is an object with the resourceVersion of the one of its name in the cluster:
// that is no difference worth showing.
func (c *cluster) asVersion(ctx context.Context, o *object) (*object, error) {
	version := newVersion
	for _, kind := range defaultKinds {
		if kind.words[0] != strings.ToLower(o.Kind) {
			continue
		}
		there, err := c.get(ctx, kind.path(o.Namespace)+"/"+o.Name)
		switch {
		case err == nil:
			version = there.ResourceVersion
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return nil, err
		}
	}
	return edited(o, func(meta map[string]any) { meta["resourceVersion"] = version })
}

// preview shows what the given objects do, one namespace after the other.
func (o *previewOptions) preview(cmd *cobra.Command, args []string) error {
	c, err := o.open()
	if err != nil {
		return err
	}
	given, err := o.given(cmd, c, args)
	if err != nil {
		return err
	}
	namespaces, err := o.namespaces(cmd, c, given)
	if err != nil {
		return err
	}
	p := previewPrinter{out: cmd.OutOrStdout(), color: useColor(o.color, cmd.OutOrStdout()), names: o.names}
	for _, namespace := range namespaces {
		if err := o.previewNamespace(cmd, c, namespace, given, len(args) > 0, &p); err != nil {
			return err
		}
	}
	return p.summary()
}

// namespaces are those that the given objects can be for. A ClusterPodDefault is looked
// at in the namespace of --namespace, or everywhere.
func (o *previewOptions) namespaces(cmd *cobra.Command, c *cluster, given []*clusterDefault) ([]string, error) {
	set := map[string]bool{}
	for _, d := range given {
		if d.namespaces == nil {
			set[d.Namespace] = true
			continue
		}
		if o.namespace != "" {
			set[o.namespace] = true
			continue
		}
		all, err := c.list(cmd.Context(), "/api/v1/namespaces")
		if apierrors.IsForbidden(err) {
			note(cmd.ErrOrStderr(), "note: you may not list namespaces: %s is looked at in %s alone", d.compiled, c.namespace)
			set[c.namespace] = true
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list namespaces: %w", err)
		}
		for _, namespace := range all {
			if d.namespaces.Matches(labels.Set(namespace.Labels)) {
				set[namespace.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

func (o *previewOptions) previewNamespace(cmd *cobra.Command, c *cluster, namespace string, given []*clusterDefault, named bool, p *previewPrinter) error {
	now, err := c.defaults(cmd.Context(), namespace, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	before, after := now, now
	for _, d := range given {
		if d.namespaces == nil && d.Namespace != namespace {
			continue
		}
		switch {
		case named && o.remove:
			after = after.without(d)
		case named:
			before = before.without(d)
		default:
			after = after.with(d)
		}
	}
	workloads, unseen, err := c.workloads(cmd.Context(), namespace, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	for _, what := range unseen {
		p.unseen = append(p.unseen, what+" of "+namespace)
	}
	for _, workload := range workloads {
		pods, err := podsOf(workload, namespace, c.find(cmd.Context()))
		if err != nil {
			return err
		}
		for _, pod := range pods {
			was, err := o.try(cmd.Context(), pod, before)
			if err != nil {
				return err
			}
			is, err := o.try(cmd.Context(), pod, after)
			if err != nil {
				return err
			}
			if err := p.print(workload, was, is); err != nil {
				return err
			}
		}
	}
	return nil
}

// workloads are what makes pods in a namespace, in the order of kinds and names: those
// that nobody else of them makes. Unseen are the kinds that may not be listed.
func (c *cluster) workloads(ctx context.Context, namespace string, notes io.Writer) (out []*object, unseen []string, err error) {
	var all []*object
	for _, kind := range slices.Concat(workloadKinds[1:], workloadKinds[:1]) { // pods last
		// Those of others are seen by what they make, and nothing makes pods of a PodTemplate.
		if !kind.builtIn() || kind.kind == "PodTemplate" {
			continue
		}
		objects, hidden, err := c.listIfAllowed(ctx, kind.resource, kind.path(namespace), notes)
		if err != nil {
			return nil, nil, err
		}
		if hidden {
			unseen = append(unseen, kind.resource)
		}
		all = append(all, objects...)
	}
	there := map[string]bool{}
	for _, o := range all {
		there[string(o.UID)] = true
	}
	made := map[string]bool{} // by whom one pod is looked at already
	for _, o := range all {
		owner := controllerOf(o)
		if owner != nil && there[string(owner.UID)] || finished(o) {
			continue
		}
		if owner != nil && o.Kind == "Pod" {
			if made[string(owner.UID)] {
				continue
			}
			made[string(owner.UID)] = true
		}
		out = append(out, o)
	}
	return out, unseen, nil
}

// finished tells whether a Job or pod makes no pod any more.
func finished(o *object) bool {
	var body struct {
		Status struct {
			Phase          corev1.PodPhase `json:"phase"`
			CompletionTime *string         `json:"completionTime"`
		} `json:"status"`
	}
	if json.Unmarshal(o.raw, &body) != nil {
		return false
	}
	return body.Status.CompletionTime != nil || body.Status.Phase == corev1.PodSucceeded || body.Status.Phase == corev1.PodFailed
}

// previewPrinter prints workloads whose pods change.
type previewPrinter struct {
	out                             io.Writer
	color, names                    bool
	looked, changed, denied, spared int
	unseen                          []string
}

func (p *previewPrinter) print(workload *object, was, is *outcome) error {
	p.looked++
	title := workload.title()
	var text string
	switch {
	case is.denied != nil && was.denied == nil:
		p.denied++
		text = fmt.Sprintf("%s: would be denied: %s\n", title, printable(is.denied.Message))
	case is.denied != nil: // and was
		if is.denied.Message != was.denied.Message {
			text = fmt.Sprintf("%s: is denied, for another reason then: %s\n", title, printable(is.denied.Message))
		}
	case was.denied != nil:
		p.spared++
		text = title + ": is denied now, and would be admitted\n"
	case string(was.after) != string(is.after):
		p.changed++
		if p.names {
			text = title + ": would change\n"
			break
		}
		shown := *is
		shown.object = workload
		shown.verdict, shown.before, shown.originsBefore = "would change", was.after, was.origins
		var err error
		if text, err = diff(&shown, p.color); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	_, err := io.WriteString(p.out, text)
	return err
}

// summary ends the output, and says how it went.
func (p *previewPrinter) summary() error {
	_, err := fmt.Fprintf(p.out, "%d of %d workloads would change, %d would be denied, %d would be denied no more\n", p.changed, p.looked, p.denied, p.spared)
	switch {
	case err != nil:
		return err
	case p.denied > 0:
		return exitStatus(exitDenied)
	case len(p.unseen) > 0:
		return fmt.Errorf("not all was looked at: you may not list %s; ask somebody who may", strings.Join(p.unseen, ", "))
	}
	return nil
}
