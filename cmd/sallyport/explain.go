// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/webhooks/dataset"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
)

var explainOutputs = []string{"text", "json"}

// defaultsOptions are what commands have in common that try the PodDefaults of a
// cluster.
type defaultsOptions struct {
	clusterFlags
	files      []string
	settings   builtinSettings
	config     string
	validation string
	checker    *fieldChecker
}

func (o *defaultsOptions) addFlags(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	addFlagGroup(cmd, "What is looked at", func() {
		flags.StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with "+what+", YAML or JSON; - for stdin; may be repeated")
		cli.CompleteFiles(cmd, "filename", manifestExtensions...)
		addValidateFlag(cmd, &o.validation)
	})
	o.clusterFlags.addFlags(cmd)
	addFlagGroup(cmd, "As the server is set up", func() {
		addConfigFlag(cmd, &o.config)
		addPodDefaultFlags(cmd, &o.settings.podDefault.Settings)
	})
}

func (o *defaultsOptions) prepare(cmd *cobra.Command, args []string) error {
	var selection builtinSelection
	o.checker = newFieldChecker(o.validation, cmd.ErrOrStderr(), &definitions{})
	return errors.Join(errWhat(o.files, args), cli.Choice("validate", o.validation, validateModes), useConfig(cmd, o.config, &selection, &o.settings))
}

// given are the objects of the files, checked; of an AdmissionReview it is the object in it.
func (o *defaultsOptions) given(cmd *cobra.Command, use string) ([]*object, error) {
	objects, err := readPaths(o.files, cmd.InOrStdin())
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s: there is nothing to %s: the lists are empty", strings.Join(o.files, ", "), use)
	}
	errs := []error{err, o.checker.check(cmd.Context(), objects...)}
	for i, object := range objects {
		if !isRecorded(object) {
			continue
		}
		q, err := recorded(object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if objects[i] = q.object; q.req.Operation == admissionv1.Create {
			q.object.UID = "" // the API server gives one before it stores the object
		}
	}
	return objects, errors.Join(errs...)
}

// objects are those of the files, or the one that is named.
func (o *defaultsOptions) objects(cmd *cobra.Command, c *cluster, args []string) ([]*object, error) {
	if len(args) > 0 {
		one, err := c.workload(cmd.Context(), args)
		if err != nil {
			return nil, err
		}
		return []*object{one}, nil
	}
	return o.given(cmd, "look at")
}

// try sends a new object through the webhooks of PodDefaults, where there are these.
func (o *defaultsOptions) try(ctx context.Context, object *object, known *clusterDefaults) (*outcome, error) {
	selection := builtinSelection{"poddefault"}
	webhooks, err := selection.define(&o.settings, builtinSources{podDefaults: known.source(), authors: anybody{}})
	if err != nil {
		return nil, err
	}
	return decide(ctx, asker{operation: admissionv1.Create, namespace: known.namespace, user: reviewer}.ask(object, nil), webhooks)
}

func newExplainCommand() *cobra.Command {
	o, output := defaultsOptions{settings: defaultBuiltinSettings()}, explainOutputs[0]
	cmd := &cobra.Command{
		Use:   "explain TYPE/NAME | -f FILE",
		Short: "Say which PodDefaults of a cluster are for a pod, which nodes its datasets want, and why",
		Long: "Explain shows, for a pod or for what makes pods, which PodDefaults and ClusterPodDefaults of the cluster\n" +
			"match, what each of them adds, which do not match and by which label, and what conflicts. Nothing is\n" +
			"written. Of a pod that runs it tells what was applied when it was created; what each added is found\n" +
			"out by the template of what made it, with the PodDefaults as they are now.\n\n" +
			"For a pod that asks to be placed by its Fluid datasets it shows which nodes they require or prefer, and\n" +
			"what draws the pod to each node; --config says how the server's webhook dataset is set up, if not by\n" +
			"default.\n\n" +
			"Exit status: 0 if the pod would be admitted, 3 if it would be denied, 1 anything else.",
		Example: "  sallyport explain pod/web-0\n\n" +
			"  sallyport explain deployment/web -n team-a\n\n" +
			"  # before it is created\n" +
			"  sallyport explain -f pod.yaml",
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: o.completeWorkloads,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			return errors.Join(o.prepare(cmd, args), cli.Choice("output", output, explainOutputs))
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.explain(cmd, args, output) },
	}
	o.addFlags(cmd, "pods, or what makes pods")
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVarP(&output, "output", "o", output, "`format` of the output: "+cli.OneOf(explainOutputs))
		cli.CompleteChoices(cmd, "output", explainOutputs)
	})
	return cmd
}

func (o *defaultsOptions) explain(cmd *cobra.Command, args []string, output string) error {
	c, err := o.open()
	if err != nil {
		return err
	}
	objects, err := o.objects(cmd, c, args)
	if err != nil {
		return err
	}
	datasets, err := newDatasetExplainer(c, o.settings.dataset, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	x := explainer{defaultsOptions: o, cluster: c, datasets: datasets, notes: cmd.ErrOrStderr(), known: map[string]*clusterDefaults{}}
	denied := false
	var pods []*object
	for _, object := range objects {
		made, err := c.podsOf(cmd.Context(), object)
		if err != nil {
			return err
		}
		pods = append(pods, made...)
	}
	for _, pod := range pods {
		if err := o.checker.checkMade(cmd.Context(), pod); err != nil {
			return err
		}
		e, err := x.explain(cmd.Context(), pod)
		if err != nil {
			return err
		}
		denied = denied || e.Denied != ""
		if output == "json" {
			err = e.printJSON(cmd.OutOrStdout())
		} else {
			err = e.printText(cmd.OutOrStdout())
		}
		if err != nil {
			return err
		}
	}
	if denied {
		return exitStatus(exitDenied)
	}
	return nil
}

// explanation is what explain prints.
type explanation struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	// Basis is what was tried instead of the object itself.
	Basis       string        `json:"basis,omitempty"`
	Note        string        `json:"note,omitempty"`
	Matching    []explained   `json:"matching"`
	NotMatching []notMatching `json:"notMatching"`
	// Carried is what was decided when the pod was admitted by objects that are not for it
	// now.
	Carried  []explained `json:"carried,omitempty"`
	Datasets *placement  `json:"datasets,omitempty"`
	// Denied is the message of the denial.
	Denied   string   `json:"denied,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// explained is an object that is for the pod.
type explained struct {
	Name string `json:"name"`
	// Applied tells whether it was, or would be.
	Applied bool     `json:"applied"`
	Detail  string   `json:"detail,omitempty"`
	Adds    []string `json:"adds,omitempty"`
}

type notMatching struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// explainer explains pods of a cluster.
type explainer struct {
	*defaultsOptions
	cluster  *cluster
	datasets *datasetExplainer
	notes    io.Writer
	known    map[string]*clusterDefaults // by namespace

	noPodDefaults bool // the cluster does not know the kind
}

func (x *explainer) explain(ctx context.Context, given *object) (*explanation, error) {
	namespace := cmp.Or(given.Namespace, x.cluster.namespace)
	known := x.known[namespace]
	if known == nil {
		var err error
		if known, err = x.cluster.defaults(ctx, namespace, x.notes); errors.Is(err, errNoPodDefaults) {
			x.noPodDefaults, known = true, &clusterDefaults{namespace: namespace}
		} else if err != nil {
			return nil, err
		}
		x.known[namespace] = known
	}
	e := &explanation{Object: given.title(), Namespace: namespace}
	var err error
	pod := given
	var stored *object // as it was admitted
	if given.UID != "" {
		stored = given
		if pod, e.Basis, err = asItCame(ctx, x.cluster, given, known); err != nil {
			return nil, err
		}
	}
	out, err := x.try(ctx, pod, known)
	if err != nil {
		return nil, err
	}
	e.Warnings = out.warnings
	if out.denied != nil {
		e.Denied = out.denied.Message
	}
	e.match(known, pod, stored, out)
	if err := x.place(ctx, e, stored, out); err != nil {
		return nil, fmt.Errorf("%s: %s: datasets: %w", given.at(), given.title(), err)
	}
	if x.noPodDefaults && e.Datasets == nil && e.Denied == "" && len(e.Carried) == 0 {
		return nil, errNoPodDefaults // there is nothing to explain
	}
	return e, nil
}

// place adds what the pod's datasets want.
func (x *explainer) place(ctx context.Context, e *explanation, stored *object, out *outcome) error {
	pod := out.after
	if stored != nil {
		pod = stored.raw
	} else if out.denied != nil {
		return nil
	}
	var err error
	e.Datasets, err = x.datasets.explain(ctx, e.Namespace, pod)
	switch {
	case err == nil || !dataset.IsRefusal(err):
		return err
	case stored != nil:
		e.Datasets = &placement{Problem: err.Error()}
	default:
		e.Denied = err.Error()
	}
	return nil
}

// asItCame is what a pod that runs was made from, as far as that is known: the template
// of what made it, with its own labels, or what was applied with kubectl, or else its
// containers with nothing but their images.
func asItCame(ctx context.Context, c *cluster, stored *object, known *clusterDefaults) (pod *object, basis string, err error) {
	owner, err := c.owner(ctx, stored)
	if err != nil {
		return nil, "", err
	}
	if owner != nil {
		var pods []*object
		if pods, err = c.podsOf(ctx, owner); err == nil {
			pod, basis = pods[0], "the template of "+owner.title()
		}
	} else if applied := stored.Annotations[corev1.LastAppliedConfigAnnotation]; applied != "" {
		var found []*object
		if found, err = asObjects(&document{json: true, raw: []byte(applied)}, "", []byte(applied), metav1.TypeMeta{}); err == nil && len(found) == 1 {
			pod, basis = found[0], "what was applied with kubectl"
		}
	}
	if err != nil {
		return nil, "", err
	}
	if pod == nil {
		pod, err = skeleton(stored, known)
		return pod, "its containers alone: what else it came with is not known", err
	}
	own := maps.Clone(pod.Labels)
	if own == nil {
		own = map[string]string{}
	}
	if pod.maker != nil { // some of those are stand-ins
		maps.DeleteFunc(own, func(key, _ string) bool { _, given := pod.maker.labels[key]; return given })
	}
	for key, value := range stored.Labels {
		if _, there := own[key]; !there && !known.adds(stored, key) {
			own[key] = value
		}
	}
	pod, err = withMetadata(pod, stored, own, pod.Annotations)
	return pod, basis, err
}

// adds tells whether one of those that were applied to the pod has brought a label.
func (k *clusterDefaults) adds(stored *object, key string) bool {
	return slices.ContainsFunc(k.all, func(d *clusterDefault) bool {
		_, adds := d.spec.Labels[key]
		_, applied := stored.Annotations[d.mark()]
		return adds && applied
	})
}

// withMetadata is a pod with the name of another one, and these labels and annotations.
func withMetadata(pod, named *object, labels, annotations map[string]string) (*object, error) {
	return edited(pod, func(meta map[string]any) {
		clear(meta)
		meta["name"], meta["namespace"] = named.Name, named.Namespace
		if len(labels) > 0 {
			meta["labels"] = labels
		}
		if len(annotations) > 0 {
			meta["annotations"] = annotations
		}
	})
}

// skeleton is a pod with the names and images of its containers, but for those that
// PodDefaults have brought.
func skeleton(stored *object, known *clusterDefaults) (*object, error) {
	var body struct {
		Spec struct {
			Containers     []corev1.Container `json:"containers"`
			InitContainers []corev1.Container `json:"initContainers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(stored.raw, &body); err != nil {
		return nil, fmt.Errorf("%s: %w", stored.title(), err)
	}
	bare := func(list []corev1.Container) []map[string]any {
		out := []map[string]any{}
		for _, container := range list {
			if !known.brings(stored, container.Name) {
				out = append(out, map[string]any{"name": container.Name, "image": container.Image})
			}
		}
		return out
	}
	spec := map[string]any{"containers": bare(body.Spec.Containers)}
	if init := bare(body.Spec.InitContainers); len(init) > 0 {
		spec["initContainers"] = init
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": spec}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for key, value := range stored.Labels {
		if !known.adds(stored, key) {
			own[key] = value
		}
	}
	annotations := map[string]string{}
	if value, excluded := stored.Annotations[poddefault.ExcludeAnnotation]; excluded {
		annotations[poddefault.ExcludeAnnotation] = value
	}
	return withMetadata(&object{document: stored.document, raw: raw, TypeMeta: stored.TypeMeta}, stored, own, annotations)
}

// brings tells whether one of those that were applied to the pod has brought a
// container.
func (k *clusterDefaults) brings(stored *object, name string) bool {
	return slices.ContainsFunc(k.all, func(d *clusterDefault) bool {
		_, applied := stored.Annotations[d.mark()]
		return applied && slices.ContainsFunc(slices.Concat(d.spec.Sidecars, d.spec.InitContainers), func(c corev1.Container) bool { return c.Name == name })
	})
}

// match sorts out who is for the pod. A label that one adds may select another one.
func (e *explanation) match(known *clusterDefaults, pod, stored *object, out *outcome) {
	set := labels.Set(maps.Clone(pod.Labels))
	if set == nil {
		set = labels.Set{}
	}
	by := map[string]string{} // who adds a label
	reasons := make([]string, len(known.all))
	for again := true; again; {
		again = false
		for i, d := range known.all {
			if reasons[i] = d.notFor(known, set); reasons[i] != "" || d.compiled.Problem() != nil || d.spec.Mode == kubeflowv1alpha1.ModeAudit {
				continue
			}
			for _, key := range slices.Sorted(maps.Keys(d.spec.Labels)) {
				if _, there := set[key]; !there {
					set[key], by[key], again = d.spec.Labels[key], d.compiled.String(), true
				}
			}
		}
	}
	added := addedBy(out)
	whyNot := map[string]string{}
	after := annotationsOf(out.after)
	for i, d := range known.all {
		name := d.compiled.String()
		if reasons[i] != "" {
			if whyNot[name] = reasons[i]; stored == nil || !d.wasDecided(stored) {
				e.NotMatching = append(e.NotMatching, notMatching{name, reasons[i]})
			}
			continue
		}
		x := explained{Name: name, Adds: added[name]}
		if stored != nil {
			x.Applied, x.Detail = d.wasApplied(stored)
		} else if _, x.Applied = after[d.mark()]; !x.Applied {
			x.Detail = d.whyNot(pod, after, e.Denied != "")
		}
		if via := d.selectedBy(pod, by); via != "" {
			x.Detail = strings.TrimPrefix(x.Detail+"; "+via, "; ")
		}
		e.Matching = append(e.Matching, x)
	}
	if stored != nil {
		e.carry(known, stored, whyNot)
	}
	if slices.ContainsFunc(known.all, func(d *clusterDefault) bool {
		return pod.Annotations[poddefault.ExcludeAnnotation] == "true" && d.allowExclude
	}) {
		e.Note = "the pod excludes itself by the annotation " + poddefault.ExcludeAnnotation
	}
}

// notFor says why a pod with these labels is not selected; empty if it is.
func (d *clusterDefault) notFor(known *clusterDefaults, set labels.Set) string {
	if d.namespaces != nil {
		if why := mismatch(d.namespaces, known.labels, "the namespace"); why != "" {
			return "namespaceSelector: " + why
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(&d.spec.Selector)
	if err != nil {
		return "its selector does not parse"
	}
	return mismatch(selector, set, "the pod")
}

// selectedBy names those whose labels select it, if the pod's own do not.
func (d *clusterDefault) selectedBy(pod *object, by map[string]string) string {
	selector, err := metav1.LabelSelectorAsSelector(&d.spec.Selector)
	if err != nil || selector.Matches(labels.Set(pod.Labels)) {
		return ""
	}
	var via []string
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if who := by[r.Key()]; who != "" && !r.Matches(labels.Set(pod.Labels)) {
			via = append(via, fmt.Sprintf("selected by the label %s, which %s adds", r.Key(), who))
		}
	}
	return strings.Join(via, "; ")
}

// wasDecided tells whether a pod that was admitted says anything of it.
func (d *clusterDefault) wasDecided(stored *object) bool {
	_, applied := stored.Annotations[d.mark()]
	return applied || decidedOn(stored.Annotations, d)
}

// wasApplied tells of a pod that was admitted.
func (d *clusterDefault) wasApplied(stored *object) (applied bool, detail string) {
	version, applied := stored.Annotations[d.mark()]
	decided := decidedOn(stored.Annotations, d)
	switch {
	case applied && version == d.ResourceVersion:
		return true, "as it is now"
	case applied:
		return true, "as it was at resourceVersion " + version + "; it has changed since, and is at " + d.ResourceVersion + " now"
	case stored.Annotations[poddefault.ExcludeAnnotation] == "true" && d.allowExclude:
		return false, "the pod excludes itself"
	case decided && d.spec.Mode == kubeflowv1alpha1.ModeAudit:
		return false, "its mode is Audit"
	case decided:
		return false, "it was looked at and not applied: skipped because of a conflict, or it cannot work"
	case d.compiled.Problem() != nil:
		return false, "it can never work: " + strings.ReplaceAll(d.compiled.Problem().Error(), "\n", "; ")
	case stored.CreationTimestamp.Time.Before(d.CreationTimestamp.Time):
		return false, "it was created after the pod"
	}
	return false, "the webhook was not asked, or the object was another one then: see the namespace selector and the failure policy of its configuration"
}

// whyNot tells of a pod that is not there yet.
func (d *clusterDefault) whyNot(pod *object, after map[string]string, denied bool) string {
	switch {
	case pod.Annotations[poddefault.ExcludeAnnotation] == "true" && d.allowExclude:
		return "the pod excludes itself"
	case d.compiled.Problem() != nil:
		return "it can never work: " + strings.ReplaceAll(d.compiled.Problem().Error(), "\n", "; ")
	case denied:
		return "the pod would be denied"
	case d.spec.Mode == kubeflowv1alpha1.ModeAudit:
		return "its mode is Audit"
	case decidedOn(after, d):
		return "it would be skipped"
	}
	return "it would not be applied"
}

// decidedOn tells whether the annotation for that lists the object.
func decidedOn(annotations map[string]string, d *clusterDefault) bool {
	name := d.Name
	if d.namespaces != nil {
		name = "cluster/" + name
	}
	return slices.Contains(strings.Split(annotations[poddefault.DecisionsAnnotation], ","), name)
}

func annotationsOf(pod []byte) map[string]string {
	var body struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(pod, &body) != nil {
		return nil
	}
	return body.Metadata.Annotations
}

// addedBy are the places that each object changes, but for its mark.
func addedBy(out *outcome) map[string][]string {
	added := map[string][]string{}
	for _, origin := range out.origins {
		if strings.HasPrefix(origin.Path, "/metadata/annotations/poddefault.admission.kubeflow.org~1") || strings.HasPrefix(origin.Path, "/metadata/annotations/sallyport.io~1") {
			continue
		}
		if where := place(out.after, origin.Path); !slices.Contains(added[origin.Source], where) {
			added[origin.Source] = append(added[origin.Source], where)
		}
	}
	return added
}

func (e *explanation) printJSON(out io.Writer) error {
	raw, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return err
	}
	text, err := indent(raw)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func (e *explanation) printText(out io.Writer) error {
	var text strings.Builder
	line := func(format string, args ...any) { text.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	line("%s, in the namespace %s", e.Object, e.Namespace)
	if e.Basis != "" {
		line("What each adds is found out by %s.", e.Basis)
	}
	if e.Note != "" {
		line("Note: %s.", e.Note)
	}
	if len(e.Matching)+len(e.NotMatching)+len(e.Carried) == 0 {
		line("There is no PodDefault for it.")
	}
	list := func(title string, all []explained) {
		if len(all) > 0 {
			line("\n%s:", title)
		}
		for _, m := range all {
			state := "applied"
			if !m.Applied {
				state = "not applied"
			}
			if m.Detail != "" {
				state += ", " + m.Detail
			}
			line("  %s: %s", m.Name, state)
			for _, added := range m.Adds {
				line("    + %s", added)
			}
		}
	}
	list("Matching", e.Matching)
	list("Decided when the pod was created, and not for it now", e.Carried)
	if len(e.NotMatching) > 0 {
		line("\nNot matching:")
	}
	for _, m := range e.NotMatching {
		line("  %s: %s", m.Name, m.Reason)
	}
	if e.Datasets != nil {
		e.Datasets.print(line)
	}
	if e.Denied != "" {
		line("\nDenied: %s", e.Denied)
	}
	for _, warning := range e.Warnings {
		line("\nWarning: %s", warning)
	}
	_, err := io.WriteString(out, text.String()+"\n")
	return err
}
