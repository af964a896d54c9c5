// SPDX-License-Identifier: Apache-2.0

// Package review shows what admission would do to objects in files, and to the pods that they
// create, without a cluster.
package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/plugins"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/projectlimit"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// A Run reviews objects from files.
type Run struct {
	// Files, With and Old are paths: the objects to review, the objects that webhooks read, and
	// the objects before an update.
	Files, With, Old []string
	Stdin            io.Reader
	// Given are more objects that webhooks read. Those that none reads are left out.
	Given []*manifest.Object
	// Notes receives everything but the output.
	Notes io.Writer
	// Show receives each outcome.
	Show func(*Outcome) error
	// Open receives what could refuse pods and is not in the files. If nil, Notes does.
	Open *plugins.Open

	Operation admissionv1.Operation
	Namespace string // for objects without one
	User      authenticationv1.UserInfo
	// Validation is one of [fieldcheck.Modes].
	Validation string
	// RefuseInvalid makes a PodDefault that can never work an error, unless a cluster has stored it.
	RefuseInvalid bool

	// Webhooks defines the webhooks to call, given what was read from files.
	Webhooks func(Sources) ([]admission.Webhook, error)
	// CountProjects and ReadDatasets are set if a webhook reads namespaces by requester, or
	// datasets.
	CountProjects, ReadDatasets bool
	// Exempts is set if exemptions of namespaces count.
	Exempts bool
	// DataConnections is the selector of the Secrets that a server with this configuration knows; see
	// [poddefault.Settings]. Nil: all Secrets in the files.
	DataConnections *string
	// Release is that of the API server whose PodSecurity is evaluated; zero for the newest.
	Release release.Version
	// Server is asked about what the webhooks allow; nil if none is.
	Server *Server
	// Dataset has the settings of the datasets webhook.
	Dataset dataset.Settings
}

// Sources is what webhooks read. In serve it comes from the cluster.
type Sources struct {
	PodDefaults *source.Index
	Projects    *projectlimit.Index
	Datasets    dataset.Source
}

// reviewing is a run in progress.
type reviewing struct {
	*Run
	webhooks    []admission.Webhook
	podDefaults *podDefaults
	datasets    *datasets
	projects    *projectlimit.Index
	plugins     *plugins.Objects
	open        plugins.Open
	with, was   []*manifest.Object // was holds the objects before an update
	asker       Asker
	checker     *fieldcheck.Checker
	updates     int // objects that exist in the cluster
}

// Do reviews the objects. It continues after an object that it cannot review; the error lists all of
// them.
func (run *Run) Do(ctx context.Context) error {
	r, objects, err := run.prepare(ctx)
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s: there is nothing to review: the lists are empty", strings.Join(run.Files, ", "))
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range objects {
		errs = append(errs, r.review(ctx, object))
	}
	r.tellOpen()
	if r.updates > 0 {
		manifest.Note(r.Notes, "note: %s in the cluster: reviewed as updates", cli.Count(r.updates, "object exists", "objects exist"))
	}
	return errors.Join(errs...)
}

// Prepared returns the webhooks of a run without files, ready for [Decide]. They read the
// objects in With.
func (run *Run) Prepared(ctx context.Context) ([]admission.Webhook, error) {
	r, _, err := run.prepare(ctx)
	if err != nil {
		return nil, err
	}
	return r.webhooks, nil
}

func (run *Run) prepare(ctx context.Context) (*reviewing, []*manifest.Object, error) {
	r := &reviewing{Run: run, podDefaults: newPodDefaults(run.Exempts), datasets: newDatasets(), projects: projectlimit.NewIndex()}
	r.podDefaults.refuse, r.podDefaults.tolerant = run.RefuseInvalid, run.Validation == fieldcheck.Warn || run.Validation == fieldcheck.Ignore
	var err error
	if run.DataConnections != nil {
		if err = r.podDefaults.limitSecrets(*run.DataConnections); err != nil {
			return nil, nil, err
		}
	}
	if r.webhooks, err = run.Webhooks(Sources{PodDefaults: r.podDefaults.index, Projects: r.projects, Datasets: r.datasets}); err != nil {
		return nil, nil, err
	}
	objects, err := r.read(ctx)
	return r, objects, err
}

// read reads all files. The error reports all problems.
func (r *reviewing) read(ctx context.Context) ([]*manifest.Object, error) {
	with, errWith := manifest.Read(r.With, r.Stdin)
	with = append(with, slices.DeleteFunc(slices.Clone(r.Given), func(o *manifest.Object) bool { return !r.reads(o) })...)
	objects, errObjects := manifest.Read(r.Files, r.Stdin)
	was, errOld := manifest.Read(r.Old, r.Stdin)
	known, errDefinitions := fieldcheck.ReadDefinitions(slices.Concat(with, objects))
	r.checker = fieldcheck.New(r.Validation, r.Notes, known)
	set, errKinds := resources.OfFiles(slices.Concat(with, objects))
	if errDefinitions != nil {
		errKinds = nil // it says the same
	}
	err := errors.Join(errWith, errObjects, errOld, errDefinitions, errKinds, r.checkWith(ctx, with), r.checker.Check(ctx, objects...))
	if err != nil {
		return nil, err
	}
	r.asker = Asker{Operation: r.Operation, Namespace: r.Namespace, User: r.User, Resources: set}
	r.with, r.was = with, slices.Concat(was, with)
	var errPlugins, errProjects, errDatasets error
	r.plugins, errPlugins = plugins.Read(slices.Concat(with, objects), r.Namespace)
	rest := slices.DeleteFunc(slices.Clone(with), func(o *manifest.Object) bool { return fieldcheck.IsDefinition(o) || r.wasOf(objects, o) })
	if r.CountProjects {
		rest, errProjects = loadProjects(rest, r.projects)
	}
	if r.ReadDatasets {
		rest, errDatasets = r.datasets.load(rest, r.Namespace)
	}
	return objects, errors.Join(errPlugins, errProjects, errDatasets, r.podDefaults.load(rest, r.Namespace, r.Notes))
}

// checkWith checks the PodDefaults that webhooks read. The API server refuses an invalid one, but what it has
// stored before, the server ignores: then, and unless the validation is strict, its problems are warnings.
func (r *reviewing) checkWith(ctx context.Context, with []*manifest.Object) error {
	err := r.checker.Check(ctx, podDefaultsAmong(with)...)
	if !r.podDefaults.tolerant {
		return err
	}
	for _, problem := range manifest.SplitErrors(err) {
		manifest.Note(r.Notes, "warning: %v", problem)
	}
	return nil
}

// reads reports whether a webhook of the run reads an object.
func (r *reviewing) reads(o *manifest.Object) bool {
	switch o.GVK() {
	case corev1.SchemeGroupVersion.WithKind("Namespace"):
		return true
	case corev1.SchemeGroupVersion.WithKind("Node"):
		return r.ReadDatasets
	}
	return isPodDefault(o) || isRevision(o) || r.ReadDatasets && kinds.All()[kinds.Kind(o.Kind)] == o.APIVersion
}

// wasOf reports whether an object that no webhook reads is in the files only as the previous
// state of another object, or because another object refers to it.
func (r *reviewing) wasOf(objects []*manifest.Object, o *manifest.Object) bool {
	if strings.HasSuffix(o.Kind, "TrainingRuntime") || o.Kind == "WorkspaceKind" {
		return true
	}
	return r.Operation == admissionv1.Update && !isPodDefault(o) && slices.ContainsFunc(objects, func(now *manifest.Object) bool { return r.same(now, o) })
}

// same reports whether two objects have the same kind and name.
func (r *reviewing) same(a, b *manifest.Object) bool {
	return a.GVK().GroupKind() == b.GVK().GroupKind() && a.Name == b.Name && cmp.Or(a.Namespace, r.Namespace) == cmp.Or(b.Namespace, r.Namespace)
}

// find is a [workload.Finder] for the files.
func (r *reviewing) find(apiVersion, kind, namespace, name string) (*manifest.Object, error) {
	for _, o := range r.with {
		if o.APIVersion == apiVersion && o.Kind == kind && o.Name == name && (namespace == "" || cmp.Or(o.Namespace, r.Namespace) == namespace) {
			return o, nil
		}
	}
	return nil, nil
}

// question returns the request that the API server would send for an object from a file.
func (r *reviewing) question(o *manifest.Object) (Question, error) {
	if o.IsAdmissionReview() {
		return Recorded(o)
	}
	var old *manifest.Object
	switch r.asker.Operation {
	case admissionv1.Delete:
		old = o
	case admissionv1.Update:
		i := slices.IndexFunc(r.was, func(was *manifest.Object) bool { return r.same(o, was) })
		if i < 0 {
			return Question{}, o.ErrorAt("", o.Title()+": an UPDATE needs the object as it was, and there is no old object: name the file that has it by --old, or among --with")
		}
		old = r.was[i]
	}
	q := r.asker.Ask(o, old)
	if o.Namespace == "" && r.asker.Resources.OfKind(o.GVK()) == nil && r.inNoNamespace(q.Request) {
		q.Request.Namespace = ""
	}
	return q, nil
}

// inNoNamespace reports whether the rules of a webhook say that a resource that is not known has no
// namespace.
func (r *reviewing) inNoNamespace(req *admissionv1.AdmissionRequest) bool {
	for _, w := range r.webhooks {
		for _, rule := range w.Rules {
			if rule.Scope != nil && *rule.Scope == admissionregistrationv1.ClusterScope && slices.Contains(rule.APIGroups, req.Resource.Group) && slices.Contains(rule.Resources, req.Resource.Resource) {
				return true
			}
		}
	}
	return false
}

// review reviews one object from a file and the pods that it creates. The error lists what
// could not be reviewed.
func (r *reviewing) review(ctx context.Context, o *manifest.Object) error {
	terminal.Waiting(ctx, "reviewing objects")
	q, err := r.question(o)
	if err != nil {
		return err
	}
	q, notKnown, err := r.asUpdate(ctx, o, q)
	if err != nil {
		return err
	}
	out, err := Decide(ctx, q, r.webhooks)
	if err == nil && !o.IsAdmissionReview() {
		err = r.checkPlugins(ctx, q, out)
	}
	if err != nil {
		return err
	}
	out.recorded, out.Unanswered = o.IsAdmissionReview(), notKnown
	if err := r.Server.ask(ctx, out, metav1.OwnerReference{}); err != nil {
		return err
	}
	var pods []*workload.Pod
	var errPods error
	if makesPods(q) && out.Denied == nil {
		made := *q.Object
		made.Raw = out.After
		pods, errPods = workload.PodsOf(&made, r.Namespace, r.find)
	}
	if len(out.Calls) > 0 || len(pods) == 0 && errPods == nil || out.Denied != nil || out.Unanswered != "" {
		if err := r.show(ctx, out); err != nil {
			errPods = errors.Join(errPods, err)
		}
	}
	for _, pod := range pods {
		errPods = errors.Join(errPods, r.reviewPod(ctx, pod, q.Request.Namespace))
	}
	return errPods
}

// makesPods reports whether a request leads to new pods. It does not if the object is a pod, is
// deleted, or changes only in a subresource.
func makesPods(q Question) bool {
	return q.Object.GVK() != workload.PodKind && q.Request.SubResource == "" && (q.Request.Operation == admissionv1.Create || q.Request.Operation == admissionv1.Update)
}

// reviewPod reviews a pod that an object creates.
func (r *reviewing) reviewPod(ctx context.Context, pod *workload.Pod, namespace string) error {
	if err := r.checker.CheckPod(ctx, pod); err != nil {
		return err
	}
	made := pod.Object
	if r.podDefaults.byWorkload {
		var err error
		if made, err = pod.Owned(); err != nil {
			return err
		}
	}
	asker := r.asker
	asker.Operation, asker.Namespace = admissionv1.Create, namespace
	q := asker.Ask(made, nil)
	out, err := Decide(ctx, q, r.webhooks)
	if err == nil {
		err = r.checkPlugins(ctx, q, out)
	}
	if err == nil {
		err = r.Server.ask(ctx, out, pod.Controller)
	}
	if err != nil {
		return err
	}
	return r.show(ctx, out)
}

func (r *reviewing) show(ctx context.Context, out *Outcome) error {
	if len(out.Calls) > 0 && out.Object.GVK() == workload.PodKind {
		out.Elsewhere = r.podDefaults.explain(out.Object, out.Request.Namespace, r.Notes)
	}
	if err := r.Show(out); err != nil {
		return err
	}
	if len(out.Calls) > 0 && out.Object.GVK() == workload.PodKind && out.Denied == nil {
		if err := r.podDefaults.undecided(out); err != nil {
			return err
		}
	}
	r.datasets.tellMissing(out, r.Notes)
	return errors.Join(out.errUnknown(), r.datasets.rank(ctx, out, r.Dataset, r.Notes))
}
