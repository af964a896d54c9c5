// SPDX-License-Identifier: Apache-2.0

package podtest

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
)

// Specs of two revisions.
const (
	StableSpec  = "selector: {}, env: [{name: REVISION, value: stable}]"
	CurrentSpec = "selector: {}, env: [{name: REVISION, value: current}]"
)

// A StagedDefault is a PodDefault whose spec is rolled out over a stable one.
type StagedDefault struct {
	*kubeflowv1alpha1.PodDefault
	Stable []byte
	State  *sallyportv1alpha1.RevisionRollout // as recorded
}

// Compile compiles it with what is recorded.
func (s *StagedDefault) Compile() *plan.Plan { return plan.Compile(s.PodDefault).With(s.source()) }

func (s *StagedDefault) source() *revision.Set {
	set := &revision.Set{}
	if s.Stable != nil {
		set.Add(Recorded("", s.ObjectMeta, s.Stable, s.State))
	}
	return set
}

// Recorded returns what is known of the stable revision of an object.
func Recorded(kind string, of metav1.ObjectMeta, stable []byte, state *sallyportv1alpha1.RevisionRollout) *revision.Record {
	return revision.Prove(StableRevision(kind, of, stable, state))
}

// StableRevision returns the stable revision of an object, as the controller records it.
func StableRevision(kind string, of metav1.ObjectMeta, stable []byte, state *sallyportv1alpha1.RevisionRollout) *revision.Object {
	owner := &metav1.OwnerReference{
		APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kubeflowv1alpha1.PodDefaultKind, Name: of.Name, UID: of.UID, Controller: new(true),
	}
	if kind != "" {
		owner.APIVersion, owner.Kind = sallyportv1alpha1.GroupVersion.String(), kind
	}
	o := revision.New(owner, of.Namespace, stable, 1)
	o.Labels[revision.StableLabel], o.Rollout = "true", state
	return o
}

// StagedFrom returns a PodDefault whose spec is rolled out over the stable one, in the
// given step.
func StagedFrom(t testing.TB, stable, current, rollout string, step int32) *StagedDefault {
	t.Helper()
	pd := PodDefaults(t, []byte("{metadata: {name: staged, uid: u, generation: 2}, spec: {"+current+", rollout: "+rollout+"}}"))[0]
	before := PodDefaults(t, []byte("{spec: {"+stable+"}}"))[0]
	return &StagedDefault{pd, plan.Meaning(&before.Spec), &sallyportv1alpha1.RevisionRollout{Revision: plan.RevisionOf(plan.Meaning(&pd.Spec)), Step: step}}
}

// Staged returns a PodDefault that is rolled out over StableSpec, in the given step.
func Staged(t testing.TB, rollout string, step int32) *StagedDefault {
	t.Helper()
	return StagedFrom(t, StableSpec, CurrentSpec, rollout, step)
}

// OwnedPod returns a pod of a controller.
func OwnedPod(kind, owner, labels string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":%q,"labels":{%s},`+
		`"ownerReferences":[{"apiVersion":"x/v1","kind":"Other","name":"other","uid":"o"},{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":"r","controller":true}],`+
		`"managedFields":[{"manager":"kube-controller-manager","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{}}}}]},`+
		`"spec":{"containers":[{"name":"main","image":"x"}]}}`, owner+"-", labels, kind, owner)
}
