// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/expressions"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/objects"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// Requests are evaluated with the libraries of the newest release. What is known to differ in the release of the run is
// evaluated as that release does, or unknown.

// readRelease sets the release of a run to that of the cluster. One that is set is another one on purpose: then, the
// cluster's API server is not asked.
func (r *Run) readRelease(c *cluster.Cluster) {
	of, err := release.OfServer(c.Client.Discovery())
	switch {
	case r.Release.Known() && of != r.Release:
		r.otherRelease = true
	case err != nil:
		r.Unknown = append(r.Unknown, "the release of the cluster: "+err.Error())
	default:
		r.Release = of
	}
}

// checkRelease returns an error if the release does not serve a policy, and records what it does differently and cannot be
// evaluated here.
func (r *Run) checkRelease(o *objects.Objects, result *Result) error {
	gate, beta := r.Release.Lacks(release.MutatingPolicies)
	for _, o := range r.Objects {
		gvk := o.GVK()
		switch {
		case gvk.Group != admissionregistrationv1.GroupName || gvk.Version == admissionregistrationv1.SchemeGroupVersion.Version:
		case !beta || !objects.IsBeta(o):
			result.Unknown = append(result.Unknown, fmt.Sprintf("%s %s: objects of %s are not evaluated: write it as v1", gvk.Kind, o.Name, gvk.GroupVersion()))
		case r.FromFiles: // a cluster serves what is in it
			result.note(fmt.Sprintf("Kubernetes %s serves mutating policies of v1beta1 only with --feature-gates=MutatingAdmissionPolicy=true and --runtime-config=%s=true", r.Release, gvk.GroupVersion()))
		}
	}
	for _, p := range r.Objects {
		if !beta || p.GVK() != admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy") {
			continue
		}
		return p.ErrorAt("", fmt.Sprintf("%s: Kubernetes %s does not serve %s, which came with 1.%d", p.Title(), r.Release, gate.What, gate.Since))
	}
	if gate, lacks := r.Release.Lacks(release.StaticPolicies); lacks && o.HasStaticPolicies() {
		result.Unknown = append(result.Unknown, fmt.Sprintf("whether Kubernetes %s reads %s, which it does by default since 1.%d", r.Release, gate.What, gate.Since))
	}
	if r.Release.Newer() {
		result.Unknown = append(result.Unknown, fmt.Sprintf("what Kubernetes %s does: 1.%d is the newest release that is known here", r.Release, release.Newest))
	}
	return nil
}

// compilation compiles for the release. Policies of a cluster have been accepted by its API server.
func (r *Run) compilation(variables []admissionregistrationv1.Variable, params bool) (*expressions.Compilation, error) {
	mode := environment.NewExpressions
	if !r.FromFiles {
		mode = environment.StoredExpressions
	}
	return expressions.New(variables, params, mode, r.Release)
}

// meetsDefect reports whether a patch meets a defect that the libraries do not have, and records its outcome. An
// [errors.StatusError] is the answer of the API server to the request, whatever the failure policy is.
func (p *watchedPatcher) meetsDefect(step *Step) (bool, error) {
	e, d := p.evaluation, release.Find(release.ObjectList)
	has := d.In(e.Release)
	meets := min(has, p.objectList)
	message := fmt.Sprintf("in Kubernetes %s, %s (%s)", d.Releases(), d.What, d.Link)
	switch {
	case meets == release.Absent:
		return false, nil
	case !e.Release.Known():
		e.result.note(step.Name + ": " + message + ": --kubernetes-version names the release")
		return false, nil
	case meets == release.Possible:
		step.Outcome, step.Messages = Unknown, []string{message}
		return true, nil
	}
	step.Outcome, step.Messages = Failed, []string{message}
	err := apierrors.NewInternalError(fmt.Errorf("%s: %s", step.Name, message))
	if !e.trial {
		e.crashed = err
	}
	return true, err
}

// onlyHere reports whether a failure is one of the libraries that the release of the run does not have.
func onlyHere(of release.Version, err error) (message string, yes bool) {
	d := release.Find(release.CopiedValue)
	if err == nil || !of.Known() || d.In(of) != release.Absent || !strings.Contains(err.Error(), "to '*structpb.Value'") {
		return "", false
	}
	return fmt.Sprintf("in Kubernetes %s, whose libraries evaluate it here, %s; not in %s", d.Releases(), d.What, of), true
}
