// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cluster"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/internal/webhooks/poddefault"
)

// A Revised is a PodDefault or ClusterPodDefault of a cluster with its revisions. Its
// methods that change the object have the user's rights, and fail if its spec has changed
// since it was read.
type Revised struct {
	cluster *cluster.Cluster
	path    string // of the object
	*Default
	body struct {
		Spec   map[string]jsontext.Value         `json:"spec"`
		Status kubeflowv1alpha1.PodDefaultStatus `json:"status"`
	}
	// Revisions are ordered by number, the latest first.
	Revisions []appsv1.ControllerRevision
	// DryRun sends changes to the API server, which does not store them.
	DryRun bool
}

// revisedTypes are the names of the kinds as kubectl takes them.
var revisedTypes = map[string]bool{
	"poddefault": false, "poddefaults": false, "poddefaults.kubeflow.org": false,
	"clusterpoddefault": true, "clusterpoddefaults": true, "clusterpoddefaults.sallyport.io": true,
}

// ParseRevised parses TYPE/NAME, or NAME for a PodDefault.
func ParseRevised(text string) (name string, ofCluster bool, err error) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		kind, name = "poddefault", text
	}
	ofCluster, known := revisedTypes[strings.ToLower(kind)]
	if !known || name == "" || strings.Contains(name, "/") {
		return "", false, fmt.Errorf("%q: expected poddefault/NAME or clusterpoddefault/NAME", text)
	}
	return name, ofCluster, nil
}

// CollectionOf returns the path of all objects of the kind.
func CollectionOf(ofCluster bool, namespace string) string {
	if ofCluster {
		return "/apis/" + sallyportv1alpha1.GroupVersion.String() + "/" + sallyportv1alpha1.ClusterPodDefaultResource
	}
	return "/apis/" + kubeflowv1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/" + kubeflowv1alpha1.PodDefaultResource
}

// ReadRevised reads an object and its revisions.
func ReadRevised(ctx context.Context, c *cluster.Cluster, name string, ofCluster bool) (*Revised, error) {
	r := &Revised{cluster: c, path: CollectionOf(ofCluster, c.Namespace) + "/" + name}
	o, err := c.Get(ctx, r.path)
	switch {
	case apierrors.IsNotFound(err) && ofCluster:
		return nil, fmt.Errorf("there is no ClusterPodDefault %s: see --context", name)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no PodDefault %s in the namespace %s: see --namespace and --context", name, c.Namespace)
	case err != nil:
		return nil, err
	}
	if r.Default, err = New(o); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(o.Raw, &r.body); err != nil {
		return nil, fmt.Errorf("%s: %w", r.compiled, err)
	}
	namespace := c.Namespace
	if ofCluster {
		namespace = metav1.NamespaceAll // Sallyport's, whichever that is
	}
	list, err := c.Client.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set(poddefault.RevisionsOf(ofCluster, name)).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the revisions of %s: %w", r.compiled, err)
	}
	for _, one := range list.Items {
		if owner := metav1.GetControllerOf(&one); owner != nil && owner.UID == r.UID {
			r.Revisions = append(r.Revisions, one)
		}
	}
	slices.SortStableFunc(r.Revisions, func(a, b appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
	return r, nil
}

// current is the name of the current revision.
func (r *Revised) current() string { return r.compiled.Revision() }

// Revision returns the revision with that number or name. An empty text is the latest one
// before the current revision.
func (r *Revised) Revision(text string) (*appsv1.ControllerRevision, error) {
	for i := range r.Revisions {
		one := &r.Revisions[i]
		name := one.Labels[poddefault.RevisionLabel]
		if text != "" && (name == text || strconv.FormatInt(one.Revision, 10) == text) || text == "" && name != r.current() {
			return one, nil
		}
	}
	if text == "" {
		return nil, fmt.Errorf("%s has no earlier revision", r.compiled)
	}
	var known []string
	for i := range r.Revisions {
		known = append(known, fmt.Sprintf("%d (%s)", r.Revisions[i].Revision, r.Revisions[i].Labels[poddefault.RevisionLabel]))
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s has no revisions: the controller poddefault-status of the server writes them", r.compiled)
	}
	return nil, fmt.Errorf("%s has no revision %s; it has %s", r.compiled, text, strings.Join(known, ", "))
}

// SpecOf returns the spec of a revision.
func SpecOf(revision *appsv1.ControllerRevision) (map[string]jsontext.Value, error) {
	var data struct {
		Spec map[string]jsontext.Value `json:"spec"`
	}
	if err := json.Unmarshal(revision.Data.Raw, &data); err != nil || data.Spec == nil {
		return nil, fmt.Errorf("the ControllerRevision %s/%s has no spec", revision.Namespace, revision.Name)
	}
	return data.Spec, nil
}

// PrintDiff prints how the current revision differs from an earlier one, as a unified diff
// of YAML. It prints nothing if it does not.
func (r *Revised) PrintDiff(out io.Writer, revision *appsv1.ControllerRevision) error {
	spec, err := SpecOf(revision)
	if err != nil {
		return err
	}
	before, err := json.Marshal(map[string]any{"spec": spec}, json.Deterministic(true))
	if err != nil {
		return err
	}
	texts := [2]string{}
	for i, raw := range [][]byte{before, fmt.Appendf(nil, `{"spec":%s}`, r.compiled.Meaning())} {
		text, err := yaml.JSONToYAML(raw)
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	_, err = io.WriteString(out, manifest.Printable(udiff.Unified("revision "+revision.Labels[poddefault.RevisionLabel], "revision "+r.current(), texts[0], texts[1])))
	return err
}

// PrintHistory lists the revisions, the latest last, and the state of the rollout.
func (r *Revised) PrintHistory(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "REVISION\tNAME\tAGE\tSTATE")
	for _, one := range slices.Backward(r.Revisions) {
		name := one.Labels[poddefault.RevisionLabel]
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", one.Revision, manifest.PrintableLine(name), duration.HumanDuration(time.Since(one.CreationTimestamp.Time)), manifest.PrintableLine(r.state(name)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if c := meta.FindStatusCondition(r.body.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy); c != nil {
		text := string(c.Status)
		if c.Message != "" {
			text += ": " + c.Message
		}
		if _, err := io.WriteString(out, manifest.Sprintf("\n%s: %s\n", c.Type, text)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Revised) state(name string) string {
	stable, inProgress := r.compiled.RolledOut()
	switch {
	case !inProgress && name == r.current():
		return "current"
	case name == r.current():
		return r.stage()
	case stable != nil && name == stable.Revision():
		return "stable"
	}
	return ""
}

// fieldsOfObject are the fields of the spec that are not part of a revision.
var fieldsOfObject = []string{"desc", "revisionHistoryLimit", "rollout"}

// Rollback gives the object the spec of a revision. It reports false if the object has it
// already.
func (r *Revised) Rollback(ctx context.Context, revision *appsv1.ControllerRevision) (bool, error) {
	if revision.Labels[poddefault.RevisionLabel] == r.current() {
		return false, nil
	}
	spec, err := SpecOf(revision)
	if err != nil {
		return false, err
	}
	spec = maps.Clone(spec)
	for _, field := range fieldsOfObject {
		if value, ok := r.body.Spec[field]; ok {
			spec[field] = value
		}
	}
	return true, r.write(ctx, "/spec", spec)
}

// Promote enters the next step of the rollout, or completes it. It returns the step, or 0
// if it is completed. With force it also does so while the condition RolloutHealthy is
// False, and overridden is what that says.
func (r *Revised) Promote(ctx context.Context, full, force bool) (step int32, overridden string, err error) {
	if err := r.rolling(); err != nil {
		return 0, "", err
	}
	if r.spec.Rollout.AbortedRevision == r.current() {
		return 0, "", fmt.Errorf("%s: revision %s is aborted: change the object, or remove spec.rollout.abortedRevision", r.compiled, r.current())
	}
	if c := meta.FindStatusCondition(r.body.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy); c != nil && c.Status == metav1.ConditionFalse {
		if overridden = c.Message; !force {
			return 0, "", fmt.Errorf("%s is not promoted while %s is False: %s. With --force it is", r.compiled, c.Type, c.Message)
		}
	}
	promotion := kubeflowv1alpha1.RolloutPromotion{Revision: r.current(), Force: overridden != ""}
	if next := r.body.Status.Rollout.Step + 1; !full && int(next) <= len(r.spec.Rollout.Steps) {
		step, promotion.Step = next, &next
	}
	return step, overridden, r.write(ctx, "/spec/rollout/promotion", promotion)
}

// Abort gives all new pods the stable revision.
func (r *Revised) Abort(ctx context.Context) error {
	if err := r.rolling(); err != nil {
		return err
	}
	return r.write(ctx, "/spec/rollout/abortedRevision", r.current())
}

// rolling returns an error if no rollout is in progress.
func (r *Revised) rolling() error {
	if _, inProgress := r.compiled.RolledOut(); inProgress && r.body.Status.Rollout != nil {
		return nil
	}
	if r.spec.Rollout == nil {
		return fmt.Errorf("%s has no spec.rollout: its current revision applies to all new pods", r.compiled)
	}
	return fmt.Errorf("%s: no rollout is in progress", r.compiled)
}

// write sets a value of the object. The controller may write the status in the meantime.
func (r *Revised) write(ctx context.Context, path string, value any) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		conflict := r.send(ctx, path, value)
		if !apierrors.IsConflict(conflict) {
			return conflict
		}
		now, err := r.cluster.Get(ctx, r.path)
		if err != nil {
			return err
		}
		if now.UID != r.UID || now.Generation != r.Generation {
			return fmt.Errorf("%s has changed in between: try again", r.compiled)
		}
		r.ResourceVersion = now.ResourceVersion
		return conflict
	})
}

// send patches the object if it is as it was read.
func (r *Revised) send(ctx context.Context, path string, value any) error {
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": r.ResourceVersion},
		{"op": "add", "path": path, "value": value},
	})
	if err != nil {
		return err
	}
	request := r.cluster.Client.Discovery().RESTClient().Patch(types.JSONPatchType).AbsPath(r.path).Param("fieldManager", "kubectl-sallyport").Body(patch)
	if r.DryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	return request.Do(ctx).Error()
}

// Title names the object in messages.
func (r *Revised) Title() string { return r.compiled.String() }
