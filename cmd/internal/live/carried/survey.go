// SPDX-License-Identifier: Apache-2.0

package carried

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/compare"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/store"
)

// A Survey has the PodDefaults and ClusterPodDefaults for a namespace, in order of application, and what
// became of them.
type Survey struct {
	Defaults []*Surveyed
	// Conflicts are pairs that set the same place of a pod differently. Only the first Compared objects
	// are compared.
	Conflicts []Conflict
	Compared  int
	// Pods is the number of running pods that were looked at. PodsHidden is set if the user may not list them.
	Pods       int
	PodsHidden bool
}

// A Surveyed is an object of a survey.
type Surveyed struct {
	Kind, Name, Description string
	// Selector is for people. NamespaceSelector is that of a
	// ClusterPodDefault.
	Selector, NamespaceSelector string
	Problem                     string
	Mode                        kubeflowv1alpha1.Mode
	Version                     string
	Adds                        []Field
	Writers                     []Writer
	Conditions                  []metav1.Condition
	// Carriers are the pods that it was applied to, by its revision at that time, or its resourceVersion for
	// pods that Kubeflow's webhook injected: the current one first, then those with most pods.
	Carriers []Carriers
	// Without are pods that it selects and that are older than it is, Missed those for which the webhook
	// was not called. Deselected are pods that it was applied to and does not select now.
	Without, Missed, Deselected []string
}

// A Field is a field of a spec with the names of its elements. It has no values of environment variables,
// annotations, commands and the like, which may be secret.
type Field struct {
	Name  string
	Items []string
}

// A Writer is a client that wrote fields of an object other than its status.
type Writer struct {
	Name string
	At   time.Time
}

// Carriers are the pods that an object was applied to in one version: a revision, or the
// resourceVersion for pods that Kubeflow's webhook injected.
type Carriers struct {
	Version string
	Current bool
	Pods    []string
}

// A Conflict is between two objects of [Survey.Defaults].
type Conflict struct {
	A, B   int
	Places []string
	// Text says what happens to pods that both select, and the remedy.
	Text string
}

// maxCompared limits how many objects are compared with each other.
const maxCompared = 100

// NewSurvey reads a [Survey] of a namespace. Of the ClusterPodDefaults it has those that select the
// namespace. It notes on notes what the user may not read.
func NewSurvey(ctx context.Context, c *cluster.Cluster, namespace string, notes io.Writer) (*Survey, error) {
	f, err := newFleet(ctx, c, namespace, notes)
	if err != nil {
		return nil, err
	}
	known := f.defaults
	known.All = slices.DeleteFunc(known.All, func(d *injection.Default) bool { return !d.Plan.SelectsNamespace(known.Labels) })
	var pods []surveyedPod
	err = f.eachPod(ctx, namespace, store.RunningPods, func(pod *metav1.ObjectMeta) error {
		if pod.DeletionTimestamp != nil {
			return nil
		}
		findings, err := f.judge(ctx, pod)
		pods = append(pods, surveyedPod{pod.Name, pod.Annotations, findings})
		return err
	})
	hidden := apierrors.IsForbidden(err)
	if err != nil && !hidden {
		return nil, err
	}
	s := &Survey{Pods: len(pods), PodsHidden: hidden, Compared: min(len(known.All), maxCompared)}
	for _, d := range known.All {
		s.Defaults = append(s.Defaults, surveyOf(d, pods))
	}
	for i, a := range known.All[:s.Compared] {
		for j, b := range known.All[:i] {
			if places := compare.OfPlans(b.Plan, a.Plan); len(places) > 0 {
				s.Conflicts = append(s.Conflicts, Conflict{j, i, places, compare.Disagreement(b.Plan, a.Plan, places, 3)})
			}
		}
	}
	return s, nil
}

// A surveyedPod is a pod, compared with current PodDefaults.
type surveyedPod struct {
	name        string
	annotations map[string]string
	findings    []drift.Finding
}

func surveyOf(d *injection.Default, pods []surveyedPod) *Surveyed {
	s := &Surveyed{
		Kind: kubeflowv1alpha1.PodDefaultKind, Name: d.Name, Description: d.Spec.Desc, Selector: metav1.FormatLabelSelector(&d.Spec.Selector),
		Mode: cmp.Or(d.Spec.Mode, kubeflowv1alpha1.ModeEnforce), Version: cmp.Or(d.Plan.Revision(), d.ResourceVersion), Conditions: d.Plan.Status().Conditions,
		Writers: writersOf(d.ManagedFields),
	}
	if d.Plan.Cluster() {
		s.Kind, s.NamespaceSelector = "ClusterPodDefault", "all namespaces"
		if selector := d.Plan.NamespaceSelector(); selector != nil {
			s.NamespaceSelector = selector.String()
		}
	}
	if len(d.Spec.Selector.MatchLabels)+len(d.Spec.Selector.MatchExpressions) == 0 {
		s.Selector = "all pods"
	}
	if problem := d.Plan.Problem(); problem != nil {
		s.Problem = problem.Error()
	}
	if raw, err := json.Marshal(d.Spec); err == nil {
		s.Adds = fieldsOf(raw)
	}
	carriers := map[string]*Carriers{}
	for i := range pods {
		pod := &pods[i]
		j := slices.IndexFunc(pod.findings, func(f drift.Finding) bool { return f.Title == d.Plan.String() })
		switch {
		case j < 0:
			continue
		case pod.findings[j].State == drift.Exempt:
			continue
		case pod.findings[j].State == drift.Missing:
			s.Without = append(s.Without, pod.name)
			continue
		case pod.findings[j].State == drift.Missed:
			s.Missed = append(s.Missed, pod.name)
			continue
		case pod.findings[j].State == drift.Surplus:
			s.Deselected = append(s.Deselected, pod.name)
		}
		mark, _ := d.Plan.MarkIn(pod.annotations)
		version := cmp.Or(mark.Revision, mark.Value)
		if carriers[version] == nil {
			carriers[version] = &Carriers{Version: version, Current: d.Plan.Wrote(mark)}
		}
		carriers[version].Pods = append(carriers[version].Pods, pod.name)
	}
	s.Carriers = carriersOf(carriers)
	return s
}

// carriersOf puts the current version first, then those with most pods.
func carriersOf(versions map[string]*Carriers) []Carriers {
	var out []Carriers
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		out = append(out, *versions[version])
	}
	slices.SortStableFunc(out, func(a, b Carriers) int {
		if a.Current != b.Current {
			if a.Current {
				return -1
			}
			return 1
		}
		return cmp.Compare(len(b.Pods), len(a.Pods))
	})
	return out
}

// writersOf returns who wrote an object last, each client once, newest first.
func writersOf(entries []metav1.ManagedFieldsEntry) []Writer {
	var out []Writer
	for _, entry := range entries {
		if entry.Subresource == "" && entry.Time != nil {
			out = append(out, Writer{entry.Manager, entry.Time.UTC()})
		}
	}
	slices.SortStableFunc(out, func(a, b Writer) int { return b.At.Compare(a.At) })
	return out
}

// notAdded are fields of a spec that decide where and how the others apply.
var notAdded = []string{"selector", "namespaceSelector", "desc", "mode", "priority", "conflictPolicy", "exclusiveGroup", "substitute", "containerSelector", "positions", "allowExclude", "revisionHistoryLimit", "rollout"}

// shownValues are the fields whose values name objects, and are not secret.
var shownValues = []string{"serviceAccountName", "priorityClassName", "runtimeClassName", "automountServiceAccountToken", "terminationGracePeriodSeconds"}

// fieldsOf returns the fields that a spec adds, sorted.
func fieldsOf(spec []byte) []Field {
	var body map[string]jsontext.Value
	if json.Unmarshal(spec, &body) != nil {
		return nil // the problem of the object says why
	}
	var out []Field
	for _, name := range slices.Sorted(maps.Keys(body)) {
		if !slices.Contains(notAdded, name) {
			out = append(out, Field{name, itemsOf(name, body[name])})
		}
	}
	return out
}

// itemsOf names the elements of a field.
func itemsOf(field string, value jsontext.Value) []string {
	switch value.Kind() {
	case '{':
		var of map[string]jsontext.Value
		if json.Unmarshal(value, &of) == nil {
			return slices.Sorted(maps.Keys(of))
		}
	case '[':
		var elements []struct {
			Name          string `json:"name"`
			MountPath     string `json:"mountPath"`
			DevicePath    string `json:"devicePath"`
			Key           string `json:"key"`
			TopologyKey   string `json:"topologyKey"`
			IP            string `json:"ip"`
			ContainerPort int    `json:"containerPort"`
			SecretRef     struct {
				Name string `json:"name"`
			} `json:"secretRef"`
			ConfigMapRef struct {
				Name string `json:"name"`
			} `json:"configMapRef"`
		}
		if json.Unmarshal(value, &elements) != nil { // a list of strings, such as a command
			return nil
		}
		var out []string
		for _, e := range elements {
			port := ""
			if e.ContainerPort > 0 {
				port = strconv.Itoa(e.ContainerPort)
			}
			name := cmp.Or(e.Name, e.Key, e.TopologyKey, e.IP, port)
			switch {
			case e.SecretRef.Name != "":
				name = "Secret " + e.SecretRef.Name
			case e.ConfigMapRef.Name != "":
				name = "ConfigMap " + e.ConfigMapRef.Name
			case e.MountPath != "" || e.DevicePath != "":
				name += " at " + cmp.Or(e.MountPath, e.DevicePath)
			}
			out = append(out, name)
		}
		return out
	case '"', 't', 'f', '0':
		if slices.Contains(shownValues, field) {
			return []string{manifest.Printable(strings.Trim(string(value), `"`))}
		}
	}
	return nil
}
