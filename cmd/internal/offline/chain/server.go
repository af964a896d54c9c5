// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	apiserveradmission "k8s.io/apiserver/pkg/admission"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/immutable"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/limitranger"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
)

// What the API server does to objects before policies see them, and its own checks, beside its defaults.

// LimitRanger is the phase of kube-apiserver's plugin LimitRanger, which checks a pod before PodSecurity does.
const LimitRanger lint.Phase = "limit ranges"

// admitPod completes a pod that is created, as the plugin LimitRanger does.
func (e *evaluation) admitPod(object runtime.Object) error {
	pod, ok := object.(*corev1.Pod)
	if !ok || e.Request.Operation != "CREATE" || e.Request.SubResource != "" {
		return nil
	}
	all, err := e.limitRanges()
	if err == nil {
		resources, annotation := limitranger.Set(pod, all)
		e.limitsUnknown, e.annotationUnknown = e.limitsUnknown || resources, e.annotationUnknown || annotation
	}
	return err
}

// limitRanges returns the LimitRanges of the request's namespace, with the API server's defaults.
func (e *evaluation) limitRanges() ([]*corev1.LimitRange, error) {
	var out []*corev1.LimitRange
	for _, o := range e.Objects {
		if o.GVK() != corev1.SchemeGroupVersion.WithKind("LimitRange") || cmp.Or(o.Namespace, corev1.NamespaceDefault) != e.Request.Namespace {
			continue
		}
		limits := &corev1.LimitRange{}
		if err := o.Decode(limits); err != nil {
			return nil, err
		}
		limitranger.Default(limits)
		out = append(out, limits)
	}
	slices.SortFunc(out, func(a, b *corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// checkLimits is kube-apiserver's plugin LimitRanger after all mutations.
func (e *evaluation) checkLimits(_ context.Context, a apiserveradmission.Attributes) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetOperation() != apiserveradmission.Create || a.GetSubresource() != "" {
		return nil
	}
	all, err := e.limitRanges()
	if err != nil || len(all) == 0 {
		return err
	}
	violations, invalid := limitranger.Check(pod, all), limitranger.Validate(pod)
	step := e.add(Step{Phase: LimitRanger, Name: "LimitRanger", Outcome: Allowed, Messages: violations})
	for _, problem := range invalid {
		step.Messages = append(step.Messages, problem.Error())
	}
	switch {
	case e.limitsUnknown: // another order may give what they refuse
		step.Outcome, step.Messages = Unknown, []string{"it depends on the order in which the API server applies the LimitRanges"}
		return nil
	case len(step.Messages) == 0:
		return nil
	}
	if step.Outcome = Denied; len(violations) == 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), invalid)
	}
	var problems []error
	for _, message := range violations {
		problems = append(problems, errors.New(message))
	}
	return apiserveradmission.NewForbidden(a, utilerrors.NewAggregate(problems))
}

// checkUpdate notes that an update changes a field that the API server's validation restricts.
func (e *evaluation) checkUpdate(_ context.Context, a apiserveradmission.Attributes) error {
	if a.GetOperation() != apiserveradmission.Update || a.GetSubresource() != "" {
		return nil
	}
	var objects [2]map[string]any
	for i, object := range []runtime.Object{a.GetOldObject(), a.GetObject()} {
		at, err := content(object)
		if err != nil {
			return err
		}
		objects[i], _ = at.(map[string]any)
	}
	if path := immutable.Changed(a.GetKind().GroupKind(), objects[0], objects[1]); path != "" {
		e.result.Unknown = append(e.result.Unknown, "it changes "+path+", which the API server restricts: whether it accepts the change")
	}
	return nil
}

// Of a Scale, validating policies see what the API server makes of the object that is scaled:
// k8s.io/kubernetes/pkg/registry/apps/deployment/storage.
var ofScale = []string{"metadata.labels", "metadata.annotations", "metadata.finalizers", "metadata.ownerReferences", "metadata.generateName"}
