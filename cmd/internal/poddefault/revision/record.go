// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Object is a revision as the API server has it, of either kind: both have the same fields.
// One without a namespace is a ClusterPodDefaultRevision.
type Object = sallyportv1alpha1.PodDefaultRevision

// Owner is the object that revisions are of: a ClusterPodDefault if it has no namespace.
type Owner struct {
	Namespace string
	UID       types.UID
}

// Record is a revision that was read. It is immutable.
type Record struct {
	is store.Identity

	Owner     Owner
	OwnerName string
	Name      string // of the revision
	Number    int64
	Created   time.Time
	Meaning   []byte // canonical JSON
	Stable    bool
	Rollout   *sallyportv1alpha1.RevisionRollout

	// Problem says why the revision must not be used; nil if it may be. A revision with a
	// problem has no name, number and meaning, and its owner is what it claims.
	Problem error
}

// WithoutMeaning returns the record without its meaning, which is most of its size.
func (r *Record) WithoutMeaning() *Record {
	out := *r
	out.Meaning = nil
	return &out
}

// Identity implements [store.Object].
func (r *Record) Identity() store.Identity { return r.is }

// String names the object in messages.
func (r *Record) String() string {
	if r.is.Namespace == "" {
		return sallyportv1alpha1.ClusterPodDefaultRevisionKind + " " + r.is.Name
	}
	return sallyportv1alpha1.PodDefaultRevisionKind + " " + r.is.Namespace + "/" + r.is.Name
}

// Prove reads a revision and checks it: whose it is, and that its content is what its name
// says. It retains nothing of the object.
func Prove(o *Object) *Record {
	r := &Record{is: store.Identity{
		NamespacedName:  types.NamespacedName{Namespace: strings.Clone(o.Namespace), Name: strings.Clone(o.Name)},
		UID:             types.UID(strings.Clone(string(o.UID))),
		ResourceVersion: strings.Clone(o.ResourceVersion),
	}, Created: o.CreationTimestamp.Time}
	owner, name := metav1.GetControllerOfNoCopy(o), o.Labels[Label]
	if owner != nil {
		r.Owner = Owner{r.is.Namespace, types.UID(strings.Clone(string(owner.UID)))}
		r.OwnerName = strings.Clone(owner.Name)
	}
	if r.Problem = problemOf(o, owner, name); r.Problem != nil {
		return r
	}
	meaning := Canonical(o.Spec.Raw)
	switch got := NameOf(meaning); {
	case meaning == nil:
		r.Problem = errors.New("its spec is not valid JSON")
	case got != name:
		r.Problem = fmt.Errorf("its spec is that of revision %s, and not of %s", got, name)
	default:
		r.Name, r.Number, r.Meaning, r.Stable = got, o.Revision, meaning, o.Labels[StableLabel] == "true"
		r.Rollout = o.Rollout.DeepCopy()
	}
	return r
}

func problemOf(o *Object, owner *metav1.OwnerReference, name string) error {
	kind := kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind).GroupKind()
	if o.Namespace == "" {
		kind = sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind).GroupKind()
	}
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind || owner.UID == "" {
		return fmt.Errorf("no %s owns it", kind.Kind)
	}
	want := objectName(owner.Name, name)
	switch {
	case !IsName(name):
		return fmt.Errorf("the label %s is not the name of a revision", Label)
	case o.Name != want && (!strings.HasPrefix(o.Name, want+"-") || len(o.Name) != len(want)+1+generatedSuffix):
		return fmt.Errorf("it is not named %s", want)
	case o.Revision < 1 || o.Revision > MaxNumber:
		return errors.New("its number is out of range")
	}
	return nil
}

// MaxNumber is the highest number of a revision.
const MaxNumber = 1<<53 - 1

// Compare orders revisions, the latest first. Revisions with the same number, which only
// somebody else writes, are in the order of their creation and names.
func Compare(a, b *Record) int {
	return cmp.Or(cmp.Compare(b.Number, a.Number), b.Created.Compare(a.Created), strings.Compare(a.is.Name, b.is.Name))
}

// Of returns the revisions of an owner that may be used, the latest first, and those that
// claim to be its but must not be used.
func Of(owner Owner, all []*Record) (usable, refused []*Record) {
	for _, r := range all {
		switch {
		case r.Owner != owner:
		case r.Problem != nil:
			refused = append(refused, r)
		default:
			usable = append(usable, r)
		}
	}
	slices.SortFunc(usable, Compare)
	return usable, refused
}

// StableAmong returns the latest stable one of sorted revisions, or nil.
func StableAmong(sorted []*Record) *Record {
	for _, r := range sorted {
		if r.Stable {
			return r
		}
	}
	return nil
}

// New returns the object for a revision.
func New(owner *metav1.OwnerReference, namespace string, meaning []byte, number int64) *Object {
	o := &Object{}
	o.APIVersion, o.Kind = sallyportv1alpha1.GroupVersion.String(), sallyportv1alpha1.PodDefaultRevisionKind
	if namespace == "" {
		o.Kind = sallyportv1alpha1.ClusterPodDefaultRevisionKind
	}
	name := NameOf(meaning)
	o.Namespace, o.Name = namespace, objectName(owner.Name, name)
	o.Labels = map[string]string{"app.kubernetes.io/managed-by": "sallyport", Label: name}
	maps.Copy(o.Labels, SelectorOf(owner.Name))
	o.OwnerReferences = []metav1.OwnerReference{*owner}
	o.Revision, o.Spec = number, runtime.RawExtension{Raw: meaning}
	return o
}
