// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/retry"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollout"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
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
	// Revisions are ordered by number, the latest first. Refused claim to be the object's
	// and are not what they say.
	Revisions, Refused []*revision.Record
	// DryRun sends changes to the API server, which does not store them.
	DryRun bool
}

// ReadRevised reads an object and its revisions.
func ReadRevised(ctx context.Context, c *cluster.Cluster, name string, ofCluster bool) (*Revised, error) {
	r := &Revised{cluster: c, path: CollectionOf(ofCluster, c.Namespace) + "/" + name}
	o, err := c.Get(ctx, r.path)
	switch {
	case apierrors.IsNotFound(err) && ofCluster:
		return nil, fmt.Errorf("there is no ClusterPodDefault %s: see --context: %w", name, err)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no PodDefault %s in the namespace %s: see --namespace and --context: %w", name, c.Namespace, err)
	case err != nil:
		return nil, err
	}
	if r.Default, err = New(o); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(o.Raw, &r.body); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Plan, err)
	}
	var all []*revision.Record
	if err := revisionsOf(c).EachOf(ctx, r.Namespace, name, func(one *revision.Record) { all = append(all, one) }); err != nil && !apierrors.IsNotFound(err) { // a cluster with Kubeflow's definition alone has none
		return nil, fmt.Errorf("%s: %w", r.Plan, err)
	}
	set := &revision.Set{}
	r.Revisions, r.Refused = revision.Of(revision.Owner{Namespace: r.Namespace, UID: r.UID}, all)
	for _, one := range r.Revisions {
		set.Add(one)
	}
	r.Plan = r.Plan.With(set)
	return r, nil
}

// minPrefix is the least number of digits of the name of a revision that a user may type.
const minPrefix = 6

// Revision returns the revision with that number or name, of which the first digits are
// enough. An empty text is the latest one before the current revision.
func (r *Revised) Revision(text string) (*revision.Record, error) {
	var found []*revision.Record
	for _, one := range r.Revisions {
		switch {
		case text == "" && one.Name != r.Plan.Revision(), text != "" && strconv.FormatInt(one.Number, 10) == text, one.Name == text:
			return one, nil
		case len(text) >= minPrefix && strings.HasPrefix(one.Name, text):
			found = append(found, one)
		}
	}
	switch {
	case text == "":
		return nil, fmt.Errorf("%s has no earlier revision", r.Plan)
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%s has several revisions whose names begin with %s: give more digits", r.Plan, text)
	}
	var known []string
	for _, one := range r.Revisions {
		known = append(known, fmt.Sprintf("%d (%s)", one.Number, revision.Short(one.Name)))
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s has no revisions: the controller poddefault-status of the server writes them", r.Plan)
	}
	return nil, fmt.Errorf("%s has no revision %s; it has %s", r.Plan, text, strings.Join(known, ", "))
}

// PrintHistory lists the revisions, the latest last, and the state of the rollout. It notes
// on notes which revisions are ignored.
func (r *Revised) PrintHistory(out, notes io.Writer) error {
	for _, one := range r.Refused {
		manifest.Note(notes, "warning: %s is ignored: %v", one, one.Problem)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "REVISION\tNAME\tAGE\tSTATE")
	for _, one := range slices.Backward(r.Revisions) {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", one.Number, revision.Short(one.Name), duration.HumanDuration(time.Since(one.Created)), manifest.PrintableLine(r.state(one.Name)))
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
	stable, inProgress := r.Plan.RolledOut()
	switch {
	case !inProgress && name == r.Plan.Revision():
		return rollout.Current
	case name == r.Plan.Revision():
		return r.stage()
	case stable != nil && name == stable.Revision():
		return "stable"
	}
	return ""
}

// fieldsOfObject are the fields of the spec that are not part of a revision.
var fieldsOfObject = []string{"desc", "revisionHistoryLimit", "rollout"}

// Rollback gives the object the spec of a revision. With now, new pods get it without the
// steps of a rollout. It reports false if the object has it already.
func (r *Revised) Rollback(ctx context.Context, to *revision.Record, now bool) (bool, error) {
	if to.Name == r.Plan.Revision() {
		return false, nil
	}
	var spec map[string]jsontext.Value
	if err := json.Unmarshal(to.Meaning, &spec); err != nil {
		return false, err
	}
	for _, field := range fieldsOfObject {
		if value, ok := r.body.Spec[field]; ok {
			spec[field] = value
		}
	}
	if r.Spec.Rollout != nil {
		var promotion any
		if now {
			promotion = kubeflowv1alpha1.RolloutPromotion{Revision: to.Name}
		}
		var err error
		if spec["rollout"], err = r.rolloutWith(promotion, nil); err != nil {
			return false, err
		}
	}
	return true, r.write(ctx, "/spec", spec)
}

// After says which revision new pods get after a rollback.
func (r *Revised) After(to *revision.Record, now bool) string {
	stable := r.Plan.Record
	switch {
	case r.Spec.Rollout == nil:
		return "all new pods get it"
	case stable != nil && stable.Name == to.Name:
		return "it is the stable revision, so all new pods get it, and the rollout ends"
	case now:
		return "all new pods get it once the server has completed its rollout, unless its pods fail"
	case stable == nil:
		return fmt.Sprintf("new pods get it in %d steps: complete them with 'rollout promote --full'", len(r.Spec.Rollout.Steps))
	}
	return fmt.Sprintf("new pods outside of step 1 of %d still get revision %d (%s): complete the steps with 'rollout promote --full'",
		len(r.Spec.Rollout.Steps), stable.Number, revision.Short(stable.Name))
}

// Promote enters the next step of the rollout, or completes it. It returns the step, or 0
// if it is completed. With force it also does so while the condition RolloutHealthy is
// False, and overridden is what that says.
func (r *Revised) Promote(ctx context.Context, full, force bool) (step int32, overridden string, err error) {
	if err := r.rolling(); err != nil {
		return 0, "", err
	}
	if r.Spec.Rollout.AbortedRevision == r.Plan.Revision() {
		return 0, "", fmt.Errorf("%s: revision %s is aborted: change the object, or remove spec.rollout.abortedRevision", r.Plan, revision.Short(r.Plan.Revision()))
	}
	if c := meta.FindStatusCondition(r.body.Status.Conditions, kubeflowv1alpha1.ConditionRolloutHealthy); c != nil && c.Status == metav1.ConditionFalse {
		if overridden = c.Message; !force {
			return 0, "", fmt.Errorf("%s is not promoted while %s is False: %s. With --force it is", r.Plan, c.Type, c.Message)
		}
	}
	promotion := kubeflowv1alpha1.RolloutPromotion{Revision: r.Plan.Revision(), Force: overridden != ""}
	if next := int32(r.Plan.Step()) + 1; !full && int(next) <= len(r.Spec.Rollout.Steps) { // the schema limits it
		step, promotion.Step = next, &next
	}
	rollout, err := r.rolloutWith(promotion, nil)
	if err != nil {
		return 0, "", err
	}
	return step, overridden, r.write(ctx, "/spec/rollout", rollout)
}

// Abort gives all new pods the stable revision.
func (r *Revised) Abort(ctx context.Context) error {
	if err := r.rolling(); err != nil {
		return err
	}
	rollout, err := r.rolloutWith(nil, r.Plan.Revision())
	if err != nil {
		return err
	}
	return r.write(ctx, "/spec/rollout", rollout)
}

// rolloutWith returns spec.rollout as it was read with these members, which are removed if
// they are nil: those from before are about another revision, or have been superseded.
func (r *Revised) rolloutWith(promotion, aborted any) (jsontext.Value, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(r.body.Spec["rollout"], &members); err != nil {
		return nil, err
	}
	for name, value := range map[string]any{"promotion": promotion, "abortedRevision": aborted} {
		if delete(members, name); value == nil {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		members[name] = raw
	}
	return json.Marshal(members, json.Deterministic(true))
}

// rolling returns an error if no rollout is in progress.
func (r *Revised) rolling() error {
	if _, inProgress := r.Plan.RolledOut(); inProgress {
		return nil
	}
	if r.Spec.Rollout == nil {
		return fmt.Errorf("%s has no spec.rollout: its current revision applies to all new pods", r.Plan)
	}
	return fmt.Errorf("%s: no rollout is in progress", r.Plan)
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
			return fmt.Errorf("%s has changed in between: try again", r.Plan)
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

// Rollout returns spec.rollout, or nil. It must not be changed.
func (r *Revised) Rollout() *kubeflowv1alpha1.Rollout { return r.Spec.Rollout }

// Title names the object in messages.
func (r *Revised) Title() string { return r.Plan.String() }
