// SPDX-License-Identifier: Apache-2.0

// Package plan compiles PodDefaults and ClusterPodDefaults: what an object selects, what it adds, in
// which order and with which policy, and which revision of it pods get during a rollout.
//
// In goes an object; out comes a [Plan], which never changes. It knows no pod and no cluster.
package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Plan is a PodDefault or ClusterPodDefault ready for injection, with parsed
// selector and encoded additions. It is immutable. See [Compile] and [CompileCluster].
//
// Additions are computed when a pod first selects the object. Until then the spec is
// held as JSON: of thousands of objects, most are never selected, and the garbage
// collector would scan all their parts again and again.
type Plan struct {
	Head
	packed    []byte // JSON; nil if too large for any pod
	unpacking sync.Once
	*Additions
}

// Compile prepares a PodDefault of which no rollout is in progress. An object that can never
// work is compiled too, so that pods can name it where it would have been applied: see
// [Plan.Problem].
func Compile(pd *kubeflowv1alpha1.PodDefault) *Plan { return Pack(pd, nil, nil).Unpack() }

// CompileCluster prepares a ClusterPodDefault, like [Compile].
func CompileCluster(cpd *sallyportv1alpha1.ClusterPodDefault) *Plan {
	return PackCluster(cpd, nil, nil).Unpack()
}

// With returns the object with the state that its revisions give its rollout.
func (c *Plan) With(revisions revision.Source) *Plan { return c.Restaged(revisions).Unpack() }

// Pack is [Compile] for an object that an [source.Index] unpacks when a pod first selects it.
// Before is the object as known so far, or nil.
func Pack(pd *kubeflowv1alpha1.PodDefault, before *Plan, revisions revision.Source) *Plan {
	const kind = "PodDefault "
	c := &Plan{}
	c.title = kind + pd.Namespace + "/" + pd.Name
	c.namespace, c.name = c.title[len(kind):len(kind)+len(pd.Namespace)], c.title[len(c.title)-len(pd.Name):]
	c.decision, c.allowExclude = c.name, true
	c.pack(&pd.ObjectMeta, &pd.Spec, &pd.Status, nil, nil)
	c.Stage(revisions, before)
	return c
}

// PackCluster is [Pack] for a ClusterPodDefault.
func PackCluster(cpd *sallyportv1alpha1.ClusterPodDefault, before *Plan, revisions revision.Source) *Plan {
	c := &Plan{}
	c.title, c.decision = "ClusterPodDefault "+cpd.Name, meta.ClusterDecision+cpd.Name
	c.name, c.allowExclude = c.decision[len(meta.ClusterDecision):], cpd.Spec.AllowExclude
	c.pack(&cpd.ObjectMeta, &cpd.Spec.PodDefaultSpec, &cpd.Status, cpd.Spec.NamespaceSelector, validate.ClusterSpec(&cpd.Spec, field.NewPath("spec")))
	if selector := cpd.Spec.NamespaceSelector; selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
		// An invalid selector is among the problems.
		if c.namespaces, _ = metav1.LabelSelectorAsSelector(ownSelector(selector)); c.namespaces == nil {
			c.namespaces = labels.Nothing()
		}
	}
	c.Stage(revisions, before)
	return c
}

// pack fills in the fields common to both kinds. Errs are the problems specific to this
// kind.
func (c *Plan) pack(
	md *metav1.ObjectMeta, spec *kubeflowv1alpha1.PodDefaultSpec, status *kubeflowv1alpha1.PodDefaultStatus,
	namespaces *metav1.LabelSelector, errs field.ErrorList,
) {
	uid, version := string(md.UID), versionOf(md.UID, &spec.Selector, namespaces)
	c.packed = meta.EncodedSpec(spec)
	c.Size, c.Credentials = len(c.packed), bringsCredentials(c.packed)
	tooMuch := validate.Limits(spec, c.Size, field.NewPath("spec"))
	name := ""
	if len(tooMuch) == 0 {
		name = RevisionOf(meaning(c.packed, namespaces, c.Cluster() && c.allowExclude))
	}
	// One allocation: the garbage collector would scan each string separately.
	all := md.ResourceVersion + uid + version + name
	c.ResourceVersion, all = all[:len(md.ResourceVersion)], all[len(md.ResourceVersion):]
	c.UID, all = types.UID(all[:len(uid)]), all[len(uid):]
	c.version, c.revision = all[:len(version)], all[len(version):]
	c.generation, c.changed, c.namespaceSelector = md.Generation, changedAt(md), ownSelector(namespaces)
	c.priority, c.Policy, c.Audit = spec.Priority, kubeflowv1alpha1.ConflictPolicy(strings.Clone(string(meta.PolicyOf(spec)))), spec.Mode == kubeflowv1alpha1.ModeAudit
	c.Group, c.connects, c.rolls = strings.Clone(spec.ExclusiveGroup), connectionsOf(spec), spec.Rollout.DeepCopy()
	c.forms, c.status = validate.UISelectable(&spec.Selector), compact(status, c.revision)
	c.Labels = podmeta.Entries(spec.Labels)
	for i, l := range c.Labels {
		c.Labels[i] = podmeta.Entry{Key: strings.Clone(l.Key), Value: strings.Clone(l.Value)}
	}
	if selector, err := metav1.LabelSelectorAsSelector(ownSelector(&spec.Selector)); err == nil {
		c.selector = selector
	}
	if len(tooMuch) > 0 {
		c.problem = problemOf(append(tooMuch, errs...))
		c.packed, c.Additions = nil, c.onlyMark() // too large for any pod, so too large to keep
		return
	}
	c.problem = problemOf(append(validate.Errors(spec), errs...))
}

// Unpack computes the additions once and returns the object. An [source.Index] returns
// unpacked objects.
func (c *Plan) Unpack() *Plan {
	c.unpacking.Do(func() {
		if c.packed == nil {
			return
		}
		c.Additions = c.onlyMark()
		spec := &kubeflowv1alpha1.PodDefaultSpec{}
		if err := json.Unmarshal(c.packed, spec); err != nil { // encoded by this program
			c.Unreadable = fmt.Errorf("%s cannot be read: %w", c, err)
			return
		}
		c.Annotations = podmeta.Entries(spec.Annotations)
		compiler{c, c.Additions}.compileSpec(spec)
		if spec.Substitute && meta.HasPlaceholders(spec) {
			c.Template = spec
		}
		c.StrayMounts = validate.StrayMounts(spec)
	})
	return c
}

// onlyMark returns additions that so far are only the mark.
func (r *Reference) onlyMark() *Additions {
	mark := r.Mark()
	return &Additions{MarkKey: mark, Marks: jsonpatch.Operation{
		Op: jsonpatch.Add, Path: AnnotationsPath + jsonpatch.Pointer(mark), Value: meta.Quote(r.ResourceVersion),
	}}
}

// maxProblem limits the bytes of a reported problem, which may contain the invalid
// value.
const maxProblem = 1 << 10

// problemOf returns the first of the errors; nil if there are none.
func problemOf(errs field.ErrorList) error {
	problems := make([]error, 0, min(len(errs), meta.MaxTold))
	for _, each := range errs[:cap(problems)] {
		var problem error = each
		if text := each.Error(); len(text) > maxProblem {
			problem = errors.New(strings.ToValidUTF8(text[:maxProblem], "") + "...")
		}
		problems = append(problems, problem)
	}
	return errors.Join(problems...)
}

// FilledWith returns the object with a spec whose placeholders are filled in.
func (c *Plan) FilledWith(spec *kubeflowv1alpha1.PodDefaultSpec) *Plan {
	filled := &Plan{Head: c.Head, Additions: &Additions{MarkKey: c.MarkKey, Marks: c.Marks, Annotations: c.Annotations, StrayMounts: c.StrayMounts}}
	compiler{filled, filled.Additions}.compileSpec(spec)
	return filled
}

// Enforced returns the object without mode Audit.
func (c *Plan) Enforced() *Plan {
	out := &Plan{Head: c.Head, Additions: c.Additions}
	out.Audit = false
	return out
}

// Encode returns the JSON of a part of a PodDefault, without the empty structs that
// encoding/json cannot omit.
func Encode(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil { // values decoded from JSON can be encoded
		return []byte("null")
	}
	return slices.Clip(withoutEmpty(out))
}

// Pointers to the maps of metadata.
const (
	AnnotationsPath = "/metadata/annotations"
	LabelsPath      = "/metadata/labels"
)
