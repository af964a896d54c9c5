// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/validate"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// Compiled is a PodDefault or ClusterPodDefault ready for injection, with parsed
// selector and encoded additions. It is immutable. See [Compile] and [CompileCluster].
//
// Additions are computed when a pod first selects the object. Until then the spec is
// held as JSON: of thousands of objects, most are never selected, and the garbage
// collector would scan all their parts again and again.
type Compiled struct {
	identity
	packed    []byte // JSON; nil if too large for any pod
	unpacking sync.Once
	*additions
}

// An identity names an object and the pods it selects.
type identity struct {
	namespace, name, resourceVersion string // empty namespace: cluster-scoped
	uid                              types.UID
	generation                       int64
	changed                          int64  // see ChangedAt, in seconds
	title                            string // for messages; unique
	decision                         string // the object's name in [meta.DecisionsAnnotation]
	version                          string // see Version
	revision                         string // see Revision

	selector     labels.Selector // nil if invalid
	namespaces   labels.Selector // for a ClusterPodDefault; nil selects all
	problem      error           // why the object can never work; nil if it can
	connects     *connections    // nil if it selects no Secrets
	allowExclude bool
	credentials  bool // see bringsCredentials
	audit        bool
	priority     int32
	policy       kubeflowv1alpha1.ConflictPolicy // empty: Kubeflow
	group        string                          // of alternatives; empty for none
	labels       []entry                         // added by the object
	size         int                             // JSON size of the spec
	forms        string                          // see UISelectable
	status       kubeflowv1alpha1.PodDefaultStatus
	rolls        *kubeflowv1alpha1.Rollout // spec.rollout; nil if there is none
	record       *revision.Record          // of the stable revision, from which rollout follows; may be nil
	rollout      *rollout                  // nil if none is in progress
	// namespaceSelector is the namespaces' as written.
	namespaceSelector *metav1.LabelSelector
}

// additions are what an object adds to pods.
type additions struct {
	unreadable error               // a fault: additions unknown
	mark       string              // annotation for an applied object
	marks      jsonpatch.Operation // adds it to a pod that has annotations

	env, envFrom, volumeMounts        []item
	twins                             []string // of the volumeMounts' paths, see [twinOf]
	volumes, tolerations, pullSecrets []item
	initContainers, containers        []item
	annotations                       []entry
	strayMounts                       []string // volumes used here but not part of the object

	// Fields that most pods are not read for.
	target                     *kubeflowv1alpha1.ContainerSelector
	positions                  []kubeflowv1alpha1.ContainerPosition
	podLists, containerLists   []fieldList
	podValues, containerValues []fieldValue
	nodeTerms                  []jsontext.Value
	resources                  []quantity
	overwrites                 bool                             // a field overwrites without a policy
	clashes                    bool                             // see foresee.go
	template                   *kubeflowv1alpha1.PodDefaultSpec // to fill in for each pod
}

// An item is one element of a list of the pod.
type item struct {
	key    string // merge key, see listKind
	value  jsontext.Value
	origin *Compiled // nil for the pod's own
}

// An entry is one label or annotation.
type entry struct{ key, value string }

// Compile prepares a PodDefault of which no rollout is in progress. An object that can never
// work is compiled too, so that pods can name it where it would have been applied: see
// [Compiled.Problem].
func Compile(pd *kubeflowv1alpha1.PodDefault) *Compiled { return pack(pd, nil, nil).unpack() }

// CompileCluster prepares a ClusterPodDefault, like [Compile].
func CompileCluster(cpd *sallyportv1alpha1.ClusterPodDefault) *Compiled {
	return packCluster(cpd, nil, nil).unpack()
}

// With returns the object with the state that its revisions give its rollout.
func (c *Compiled) With(revisions revision.Source) *Compiled { return c.restaged(revisions).unpack() }

// pack is [Compile] for an object that an [Index] unpacks when a pod first selects it.
// Before is the object as known so far, or nil.
func pack(pd *kubeflowv1alpha1.PodDefault, before *Compiled, revisions revision.Source) *Compiled {
	const kind = "PodDefault "
	c := &Compiled{}
	c.title = kind + pd.Namespace + "/" + pd.Name
	c.namespace, c.name = c.title[len(kind):len(kind)+len(pd.Namespace)], c.title[len(c.title)-len(pd.Name):]
	c.decision, c.allowExclude = c.name, true
	c.pack(&pd.ObjectMeta, &pd.Spec, &pd.Status, nil, nil)
	c.stage(revisions, before)
	return c
}

// packCluster is [pack] for a ClusterPodDefault.
func packCluster(cpd *sallyportv1alpha1.ClusterPodDefault, before *Compiled, revisions revision.Source) *Compiled {
	c := &Compiled{}
	c.title, c.decision = "ClusterPodDefault "+cpd.Name, meta.ClusterDecision+cpd.Name
	c.name, c.allowExclude = c.decision[len(meta.ClusterDecision):], cpd.Spec.AllowExclude
	c.pack(&cpd.ObjectMeta, &cpd.Spec.PodDefaultSpec, &cpd.Status, cpd.Spec.NamespaceSelector, validate.ClusterSpec(&cpd.Spec, field.NewPath("spec")))
	if selector := cpd.Spec.NamespaceSelector; selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
		// An invalid selector is among the problems.
		if c.namespaces, _ = metav1.LabelSelectorAsSelector(selector); c.namespaces == nil {
			c.namespaces = labels.Nothing()
		}
	}
	c.stage(revisions, before)
	return c
}

// pack fills in the fields common to both kinds. Errs are the problems specific to this
// kind.
func (c *Compiled) pack(
	md *metav1.ObjectMeta, spec *kubeflowv1alpha1.PodDefaultSpec, status *kubeflowv1alpha1.PodDefaultStatus,
	namespaces *metav1.LabelSelector, errs field.ErrorList,
) {
	uid, version := string(md.UID), versionOf(md.UID, &spec.Selector, namespaces)
	c.packed = meta.EncodedSpec(spec)
	c.size, c.credentials = len(c.packed), bringsCredentials(c.packed)
	tooMuch := validate.Limits(spec, c.size, field.NewPath("spec"))
	name := ""
	if len(tooMuch) == 0 {
		name = RevisionOf(meaning(c.packed, namespaces, c.Cluster() && c.allowExclude))
	}
	// One allocation: the garbage collector would scan each string separately.
	all := md.ResourceVersion + uid + version + name
	c.resourceVersion, all = all[:len(md.ResourceVersion)], all[len(md.ResourceVersion):]
	c.uid, all = types.UID(all[:len(uid)]), all[len(uid):]
	c.version, c.revision = all[:len(version)], all[len(version):]
	c.generation, c.changed, c.namespaceSelector = md.Generation, changedAt(md), namespaces
	c.priority, c.policy, c.audit = spec.Priority, meta.PolicyOf(spec), spec.Mode == kubeflowv1alpha1.ModeAudit
	c.group, c.connects, c.rolls = spec.ExclusiveGroup, connectionsOf(spec), spec.Rollout.DeepCopy()
	c.forms, c.status = validate.UISelectable(&spec.Selector), compact(status)
	c.labels = entries(spec.Labels)
	if selector, err := metav1.LabelSelectorAsSelector(&spec.Selector); err == nil {
		c.selector = selector
	}
	if len(tooMuch) > 0 {
		c.problem = problemOf(append(tooMuch, errs...))
		c.packed, c.additions = nil, c.onlyMark() // too large for any pod, so too large to keep
		return
	}
	c.problem = problemOf(append(validate.Errors(spec), errs...))
}

// unpack computes the additions once and returns the object. An [Index] returns
// unpacked objects.
func (c *Compiled) unpack() *Compiled {
	c.unpacking.Do(func() {
		if c.packed == nil {
			return
		}
		c.additions = c.onlyMark()
		spec := &kubeflowv1alpha1.PodDefaultSpec{}
		if err := json.Unmarshal(c.packed, spec); err != nil { // encoded by this program
			c.unreadable = fmt.Errorf("%s cannot be read: %w", c, err)
			return
		}
		c.annotations = entries(spec.Annotations)
		c.compileSpec(spec)
		if spec.Substitute && meta.HasPlaceholders(spec) {
			c.template = spec
		}
		c.strayMounts = validate.StrayMounts(spec)
	})
	return c
}

func (c *Compiled) markOf() string {
	if c.Cluster() {
		return meta.ClusterMark(c.name)
	}
	return meta.Mark(c.name)
}

// onlyMark returns additions that so far are only the mark.
func (c *Compiled) onlyMark() *additions {
	mark := c.markOf()
	return &additions{mark: mark, marks: jsonpatch.Operation{
		Op: jsonpatch.Add, Path: annotationsPath + jsonpatch.Pointer(mark), Value: quote(c.resourceVersion),
	}}
}

// longestProblem limits the bytes of a reported problem, which may contain the invalid
// value.
const longestProblem = 1 << 10

// problemOf returns the first of the errors; nil if there are none.
func problemOf(errs field.ErrorList) error {
	problems := make([]error, 0, min(len(errs), maxTold))
	for _, each := range errs[:cap(problems)] {
		var problem error = each
		if text := each.Error(); len(text) > longestProblem {
			problem = errors.New(strings.ToValidUTF8(text[:longestProblem], "") + "...")
		}
		problems = append(problems, problem)
	}
	return errors.Join(problems...)
}

// compileSpec encodes the additions.
func (c *Compiled) compileSpec(spec *kubeflowv1alpha1.PodDefaultSpec) {
	c.env = compileList(c, envKind, spec.Env)
	c.envFrom = compileList(c, envFromKind, spec.EnvFrom)
	c.volumeMounts = compileList(c, mountKind, spec.VolumeMounts)
	c.twins = make([]string, len(c.volumeMounts))
	for i, mount := range c.volumeMounts {
		c.twins[i] = twinOf(mount.key)
	}
	c.volumes = compileList(c, volumeKind, spec.Volumes)
	c.tolerations = compileList(c, tolerationKind, spec.Tolerations)
	c.pullSecrets = compileList(c, pullSecretKind, spec.ImagePullSecrets)
	c.initContainers = compileList(c, containerKind, spec.InitContainers)
	c.containers = compileList(c, containerKind, spec.Sidecars)
	c.positions = spec.Positions
	c.compileFields(spec)
	c.clashes = c.mayClash()
}

// filledWith returns the object with a spec whose placeholders are filled in.
func (c *Compiled) filledWith(spec *kubeflowv1alpha1.PodDefaultSpec) *Compiled {
	filled := &Compiled{identity: c.identity, additions: &additions{mark: c.mark, marks: c.marks, annotations: c.annotations, strayMounts: c.strayMounts}}
	filled.compileSpec(spec)
	return filled
}

// enforced returns the object without mode Audit.
func (c *Compiled) enforced() *Compiled {
	out := &Compiled{identity: c.identity, additions: c.additions}
	out.audit = false
	return out
}

// Problem returns why the object can never work, or nil.
func (c *Compiled) Problem() error { return c.problem }

// Name returns the object's name.
func (c *Compiled) Name() string { return c.name }

// Namespace returns the object's namespace, or "" for a ClusterPodDefault.
func (c *Compiled) Namespace() string { return c.namespace }

// Cluster reports whether the object is a ClusterPodDefault.
func (c *Compiled) Cluster() bool { return c.namespace == "" }

// String names the object in messages: "PodDefault team-a/proxy".
func (c *Compiled) String() string { return c.title }

// compileList encodes the elements. The first element with a key wins. [validate.Spec] reports
// where that is wrong.
func compileList[T any](c *Compiled, kind *listKind, values []T) []item {
	if len(values) == 0 {
		return nil
	}
	items := make([]item, 0, len(values))
	seen := make(map[string]bool, len(values))
	for i := range values {
		value := encode(&values[i])
		added := item{key: string(kind.keyOf(value)), value: value, origin: c}
		if !seen[added.key] {
			seen[added.key] = true
			items = append(items, added)
		}
	}
	return items
}

// encode returns the JSON of a part of a PodDefault, without the empty structs that
// encoding/json cannot omit.
func encode(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil { // values decoded from JSON can be encoded
		return []byte("null")
	}
	return slices.Clip(withoutEmpty(out))
}

func entries(m map[string]string) []entry {
	if len(m) == 0 {
		return nil
	}
	out := make([]entry, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, entry{key, m[key]})
	}
	return out
}
