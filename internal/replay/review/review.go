// SPDX-License-Identifier: Apache-2.0

// Package review says what admission would do to objects of files, and to the pods that
// they make, without a cluster.
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
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/resources"
	"github.com/sallyport-io/sallyport/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/internal/webhooks/projectlimit"
	"github.com/sallyport-io/sallyport/internal/workload"
)

// A Run reviews objects of files.
type Run struct {
	// Files, With and Old are paths: of the objects, of what webhooks read, and of the
	// objects as they were.
	Files, With, Old []string
	Stdin            io.Reader
	// Notes gets what is said beside the output.
	Notes io.Writer
	// Show gets each outcome.
	Show func(*Outcome) error

	Operation admissionv1.Operation
	Namespace string // of objects that name none
	User      authenticationv1.UserInfo
	// Validation is one of [fieldcheck.Modes].
	Validation string

	// Webhooks defines those that are asked, over what was read from files.
	Webhooks func(Sources) ([]admission.Webhook, error)
	// CountProjects and ReadDatasets are set if a webhook reads those.
	CountProjects, ReadDatasets bool
	// Dataset are the settings of the webhook for datasets.
	Dataset dataset.Settings
}

// Sources are what webhooks read from, where serve has a cluster.
type Sources struct {
	PodDefaults *poddefault.Index
	Projects    *projectlimit.Index
	Datasets    dataset.Source
}

// reviewing is a run under way.
type reviewing struct {
	*Run
	webhooks    []admission.Webhook
	podDefaults *podDefaults
	datasets    *datasets
	projects    *projectlimit.Index
	with, was   []*manifest.Object // was are the objects as they were
	asker       Asker
	checker     *fieldcheck.Checker
	denied      bool
}

// Do reviews the objects, and tells whether one was denied. An object that could not be
// reviewed does not keep others from it: the error has all of those.
func (run *Run) Do(ctx context.Context) (denied bool, err error) {
	r, objects, err := run.prepare(ctx)
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s: there is nothing to review: the lists are empty", strings.Join(run.Files, ", "))
	}
	if err != nil {
		return false, err
	}
	var errs []error
	for _, object := range objects {
		errs = append(errs, r.review(ctx, object))
	}
	return r.denied, errors.Join(errs...)
}

// Prepared returns the webhooks of a run without files, ready to be asked with [Decide]: they read
// what With holds.
func (run *Run) Prepared(ctx context.Context) ([]admission.Webhook, error) {
	r, _, err := run.prepare(ctx)
	if err != nil {
		return nil, err
	}
	return r.webhooks, nil
}

func (run *Run) prepare(ctx context.Context) (*reviewing, []*manifest.Object, error) {
	r := &reviewing{Run: run, podDefaults: newPodDefaults(), datasets: newDatasets(), projects: projectlimit.NewIndex()}
	var err error
	if r.webhooks, err = run.Webhooks(Sources{PodDefaults: r.podDefaults.index, Projects: r.projects, Datasets: r.datasets}); err != nil {
		return nil, nil, err
	}
	objects, err := r.read(ctx)
	return r, objects, err
}

// read reads all files, and reports all that is wrong with them at once.
func (r *reviewing) read(ctx context.Context) ([]*manifest.Object, error) {
	with, errWith := manifest.Read(r.With, r.Stdin)
	objects, errObjects := manifest.Read(r.Files, r.Stdin)
	was, errOld := manifest.Read(r.Old, r.Stdin)
	known, errDefinitions := fieldcheck.ReadDefinitions(slices.Concat(with, objects))
	r.checker = fieldcheck.New(r.Validation, r.Notes, known)
	set, errKinds := resources.OfFiles(slices.Concat(with, objects))
	if errDefinitions != nil {
		errKinds = nil // it says the same
	}
	err := errors.Join(errWith, errObjects, errOld, errDefinitions, errKinds, r.checker.Check(ctx, slices.Concat(podDefaultsAmong(with), objects)...))
	if err != nil {
		return nil, err
	}
	r.asker = Asker{Operation: r.Operation, Namespace: r.Namespace, User: r.User, Resources: set}
	r.with, r.was = with, slices.Concat(was, with)
	var errProjects, errDatasets error
	rest := slices.DeleteFunc(slices.Clone(with), func(o *manifest.Object) bool { return fieldcheck.IsDefinition(o) || r.wasOf(objects, o) })
	if r.CountProjects {
		rest, errProjects = loadProjects(rest, r.projects)
	}
	if r.ReadDatasets {
		rest, errDatasets = r.datasets.load(rest, r.Namespace)
	}
	return objects, errors.Join(errProjects, errDatasets, r.podDefaults.load(rest, r.Namespace, r.Notes))
}

// wasOf tells whether an object that webhooks do not read is there as what another one was,
// or what it refers to.
func (r *reviewing) wasOf(objects []*manifest.Object, o *manifest.Object) bool {
	if strings.HasSuffix(o.Kind, "TrainingRuntime") {
		return true
	}
	return r.Operation == admissionv1.Update && !isPodDefault(o) && slices.ContainsFunc(objects, func(now *manifest.Object) bool { return r.same(now, o) })
}

// same tells whether two objects are of one kind and name.
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

// question is what the API server would ask about an object of a file.
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
	return r.asker.Ask(o, old), nil
}

// review reviews one object of a file, and the pods that it makes. The error is about what
// could not be looked at.
func (r *reviewing) review(ctx context.Context, o *manifest.Object) error {
	q, err := r.question(o)
	if err != nil {
		return err
	}
	out, err := Decide(ctx, q, r.webhooks)
	if err != nil {
		return err
	}
	var pods []*workload.Pod
	var errPods error
	if makesPods(q) && out.Denied == nil {
		made := *q.Object
		made.Raw = out.After
		pods, errPods = workload.PodsOf(&made, r.Namespace, r.find)
	}
	if len(out.Calls) > 0 || len(pods) == 0 && errPods == nil {
		if err := r.show(ctx, out); err != nil {
			return err
		}
	}
	for _, pod := range pods {
		errPods = errors.Join(errPods, r.reviewPod(ctx, pod, q.Request.Namespace))
	}
	return errPods
}

// makesPods tells whether pods are made after a request: not by what is one itself, is
// deleted, or changes by a part of it alone.
func makesPods(q Question) bool {
	return q.Object.GVK() != workload.PodKind && q.Request.SubResource == "" && (q.Request.Operation == admissionv1.Create || q.Request.Operation == admissionv1.Update)
}

// reviewPod reviews a pod that an object makes.
func (r *reviewing) reviewPod(ctx context.Context, pod *workload.Pod, namespace string) error {
	if err := r.checker.CheckPod(ctx, pod); err != nil {
		return err
	}
	asker := r.asker
	asker.Operation, asker.Namespace = admissionv1.Create, namespace
	out, err := Decide(ctx, asker.Ask(pod.Object, nil), r.webhooks)
	if err != nil {
		return err
	}
	return r.show(ctx, out)
}

func (r *reviewing) show(ctx context.Context, out *Outcome) error {
	r.denied = r.denied || out.Denied != nil
	if len(out.Calls) > 0 && out.Object.GVK() == workload.PodKind {
		r.podDefaults.explain(out.Object, out.Request.Namespace, r.Notes)
	}
	if err := r.Show(out); err != nil {
		return err
	}
	r.datasets.tellMissing(out, r.Notes)
	return r.datasets.rank(ctx, out, r.Dataset, r.Notes)
}
