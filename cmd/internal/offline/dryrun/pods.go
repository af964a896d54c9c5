// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/cli"
)

// Pods asks an API server about new pods. It asks once about pods that differ only in what their controllers generate,
// and no more in a namespace where the user may not create pods. Its methods may be called at the same time.
type Pods struct {
	Server *Server
	// Limit is how many pods that differ it asks about, 0 for any number, and Until is when it stops, if it is not zero.
	// The answer is unknown from then on.
	Limit int
	Until time.Time

	mu      sync.Mutex
	known   map[[sha256.Size]byte]func() (*Answer, error)
	noRight map[string]*Answer // by namespace
}

// A Pod is a new pod as admission would leave it.
type Pod struct {
	Namespace string
	// Before is the pod as it is sent, After the pod as the webhooks leave it.
	Before, After jsontext.Value
	// Controller creates the pod. Its UID may be a stand-in. It has no name if the pod's own metadata says all.
	Controller metav1.OwnerReference
	// Origins say what has changed the pod.
	Origins []admission.Origin
}

// Ask asks about a pod. The message of a refusal ends with the origins of what is refused. An error means that the
// context has ended, or that the pod is not an object.
func (p *Pods) Ask(ctx context.Context, pod Pod) (*Answer, error) {
	before, err := pod.sent(pod.Before)
	if err != nil {
		return nil, err
	}
	after, err := pod.sent(pod.After)
	if err != nil {
		return nil, err
	}
	key, err := pod.key(before, after)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if answer := p.noRight[pod.Namespace]; answer != nil {
		p.mu.Unlock()
		return answer, nil
	}
	if p.known == nil {
		p.known, p.noRight = map[[sha256.Size]byte]func() (*Answer, error){}, map[string]*Answer{}
	}
	ask := p.known[key]
	if ask == nil && p.Limit > 0 && len(p.known) >= p.Limit {
		p.mu.Unlock()
		return unknown("it is asked about the first %s only", cli.Count(p.Limit, "pod", "pods")), nil
	}
	if ask == nil {
		ask = sync.OnceValues(func() (*Answer, error) { return p.inTime(ctx, &question{p.Server, pod, before, after}) })
		p.known[key] = ask
	}
	p.mu.Unlock()
	answer, err := ask()
	if err == nil && answer.NoRight {
		p.mu.Lock()
		p.noRight[pod.Namespace] = answer
		p.mu.Unlock()
	}
	return answer, err
}

// inTime asks a question until it is time to stop.
func (p *Pods) inTime(ctx context.Context, q *question) (*Answer, error) {
	if p.Until.IsZero() {
		return q.answer(ctx)
	}
	limited, cancel := context.WithDeadline(ctx, p.Until)
	defer cancel()
	answer, err := q.answer(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return unknown("it did not answer in time"), nil
	}
	return answer, err
}

// sent returns a pod as a client sends it: without what the API server or a node has set.
func (p *Pod) sent(raw jsontext.Value) (map[string]any, error) {
	body := map[string]any{}
	if err := utiljson.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	meta, _ := body["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	spec, _ := body["spec"].(map[string]any)
	if _, stored := meta["uid"]; stored && spec != nil { // computed from classes; any other value is refused
		for _, field := range []string{"priority", "preemptionPolicy", "overhead", "ephemeralContainers"} {
			delete(spec, field)
		}
	}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"} {
		delete(meta, field)
	}
	delete(body, "status")
	if meta["namespace"] = p.Namespace; meta["name"] == nil && meta["generateName"] == nil {
		meta["generateName"] = "pod-"
	}
	owners, _ := meta["ownerReferences"].([]any)
	if owners == nil && p.Controller.Name != "" {
		c := p.Controller
		owners = []any{map[string]any{"apiVersion": c.APIVersion, "kind": c.Kind, "name": c.Name, "uid": string(c.UID), "controller": true}}
		meta["ownerReferences"] = owners
	}
	for _, owner := range owners {
		if owner, ok := owner.(map[string]any); ok {
			delete(owner, "blockOwnerDeletion") // needs a right of the controller
		}
	}
	body["metadata"] = meta
	return body, nil
}

// key identifies pods that get the same answer.
func (p *Pod) key(before, after map[string]any) ([sha256.Size]byte, error) {
	trimmed := func(pod map[string]any) map[string]any {
		meta, _ := pod["metadata"].(map[string]any)
		out := map[string]any{"spec": pod["spec"]}
		for key, value := range meta {
			if owned := meta["ownerReferences"] != nil; owned && (key == "name" || key == "generateName" || key == "ownerReferences") {
				continue
			}
			out["metadata."+key] = value
		}
		return out
	}
	raw, err := json.Marshal([]any{p.Namespace, trimmed(before), trimmed(after), p.Origins})
	return sha256.Sum256(raw), err
}

// A question is one about a pod.
type question struct {
	server        *Server
	pod           Pod
	before, after map[string]any
}

// answer asks about the pod as admission leaves it. The API server calls the registered webhook with it once more. So
// that this neither hides nor invents a refusal, the answer must be the same without injection, if the webhook has
// changed the pod further, or the pod is refused.
func (q *question) answer(ctx context.Context) (*Answer, error) {
	if account(q.before) != account(q.after) {
		// Whether the ServiceAccount that the pod was sent with may use the objects, only this pod shows.
		if answer, err := q.send(ctx, q.before); err != nil || answer.Verdict == Refused && usage.MatchString(answer.Status.Message) {
			return answer, err
		}
	}
	first, err := q.send(ctx, q.after)
	switch {
	case err != nil || first.Verdict == Unknown:
		return first, err
	case first.NoNamespace:
		return unknown("the namespace %s does not exist", q.pod.Namespace), nil
	case first.Verdict == Refused && usage.MatchString(first.Status.Message):
		return first, nil
	case first.Verdict == Accepted && !q.changed(first.Object):
		return first, nil
	}
	second, err := q.send(ctx, excluded(q.after))
	if err != nil {
		return nil, err
	}
	injects := first.Verdict == Refused && strings.Contains(first.Status.Message, `"`+poddefault.Name+`"`)
	switch {
	case second.Verdict == Unknown:
		return second, nil
	case first.Verdict == Accepted && second.Verdict == Accepted:
		if q.injected(second.Object) {
			return unknown("ClusterPodDefaults of the cluster that allow no exclusion change the pod further"), nil
		}
		return second, nil
	case first.Verdict == Accepted:
		return unknown("the PodDefaults of the cluster change the pod further, and without that it is refused: %s", second.Status.Message), nil
	case second.Verdict == Accepted && injects:
		return second, nil // the objects in the cluster are not those that were asked about
	case second.Verdict == Accepted:
		return unknown("it is refused, and not if it is excluded from injection: %s", first.Status.Message), nil
	case injects && strings.Contains(second.Status.Message, `"`+poddefault.Name+`"`):
		return unknown("the objects in the cluster refuse it: %s", second.Status.Message), nil
	case injects:
		return q.explained(ctx, second)
	}
	return q.explained(ctx, first)
}

// explained adds the origins of what is refused to an answer.
func (q *question) explained(ctx context.Context, answer *Answer) (*Answer, error) {
	out, found := answer.Explained(q.pod.Origins)
	if found {
		return out, nil
	}
	by := sources(q.pod.Origins)
	if len(by) == 0 {
		return out, nil
	}
	without, err := q.send(ctx, excluded(q.before))
	if err != nil {
		return nil, err
	}
	if without.Verdict == Accepted {
		out.Status.Message += "; the pod without what these add would be admitted: " + strings.Join(by, ", ")
	}
	return out, nil
}

func (q *question) send(ctx context.Context, pod map[string]any) (*Answer, error) {
	raw, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	return q.server.Ask(ctx, NewPod(q.pod.Namespace, raw))
}

// NewPod returns the request that creates a pod.
func NewPod(namespace string, pod []byte) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: namespace, Object: runtime.RawExtension{Raw: pod},
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
	}
}

// usage matches the message of a denial because of the setting usage.
var usage = regexp.MustCompile(`cannot be applied to pod .*(may not use it|has replaced the ServiceAccount)`)

// changed reports whether the API server's pod lacks something of the pod that was sent, or has had more injected.
func (q *question) changed(object map[string]any) bool {
	if object == nil {
		return false
	}
	var got corev1.Pod
	raw, err := json.Marshal(q.after)
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(object, &got) != nil {
		return true
	}
	places, err := Lacking([]byte("{}"), raw, &got)
	return err != nil || len(places) > 0 || q.injected(object)
}

// injected reports whether the API server's pod has the mark of an object that the pod was not sent with.
func (q *question) injected(object map[string]any) bool {
	annotations := func(pod map[string]any) map[string]string {
		out, _, _ := unstructured.NestedStringMap(pod, "metadata", "annotations")
		return out
	}
	had := annotations(q.after)
	return slices.ContainsFunc(meta.Marks(annotations(object)), func(m meta.CarriedMark) bool {
		_, sent := had[m.Annotation]
		return !sent
	})
}

// excluded returns a pod that PodDefaults leave as it is, unless they do not allow it.
func excluded(pod map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(pod)
	Exclude(out["metadata"].(map[string]any))
	return out
}

// Exclude excludes a pod from injection, by its metadata.
func Exclude(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[meta.ExcludeAnnotation] = "true"
	metadata["annotations"] = annotations
}

func account(pod map[string]any) string {
	spec, _ := pod["spec"].(map[string]any)
	return fmt.Sprint(spec["serviceAccountName"])
}
