// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/test/cases"
)

// A source with two indexes: the cached state and the current one.
type laggingSource struct {
	cached, fresh *Index
	reads         int
	err           error
}

func (s *laggingSource) Find(ctx context.Context, ref Ref, fresh bool) (*Object, error) {
	if s.err != nil {
		return nil, s.err
	}
	if fresh {
		s.reads++
		return s.fresh.Find(ctx, ref, fresh)
	}
	return s.cached.Find(ctx, ref, fresh)
}

const oneDataset = `kind: PersistentVolumeClaim
metadata: {name: data, namespace: team-a, labels: {fluid.io/s-team-a-data: "true"}}
---
kind: Dataset
metadata: {name: data, namespace: team-a, uid: u}
status: {phase: Bound, runtimes: [{type: alluxio}]}
---
kind: AlluxioRuntime
metadata: {name: data, namespace: team-a}
`

const onePod = `{"metadata":{"name":"train","labels":{"fuse.serverful.fluid.io/inject":"true"}},"spec":{"containers":[{"name":"app"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]}}`

func request(pod string) *admissionv1.AdmissionRequest {
	req := &admissionv1.AdmissionRequest{UID: "1", Resource: podResource, Operation: admissionv1.Create, Namespace: "team-a"}
	req.Object.Raw = []byte(pod)
	return req
}

func webhookOver(t testing.TB, source Source, observe Observer) admission.Webhook {
	t.Helper()
	webhooks, err := New(source, DefaultSettings(), observe)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks[0]
}

func TestDefinitionsAreValid(t *testing.T) {
	settings := DefaultSettings()
	settings.NamespaceLabel = true
	webhooks, err := New(NewIndex(), settings, nil)
	if err != nil || len(webhooks) != 2 {
		t.Fatalf("%d webhooks, %v", len(webhooks), err)
	}
	var selectors, conditions []string
	for _, webhook := range webhooks {
		if err := webhook.Problems(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(webhook.Rules[0].Operations, []admissionregistrationv1.OperationType{"CREATE"}) {
			t.Errorf("%s is asked about %v", webhook.Name, webhook.Rules[0].Operations)
		}
		selectors = append(selectors, metav1.FormatLabelSelector(webhook.ObjectSelector))
		for _, condition := range webhook.MatchConditions {
			conditions = append(conditions, condition.Expression)
		}
	}
	if want := []string{"<none>", InjectionLabel + " notin (false)"}; !slices.Equal(selectors, want) {
		t.Errorf("they are for %q, want %q", selectors, want)
	}
	const exists = "].exists(l, l in object.metadata.labels && object.metadata.labels[l] == 'true')"
	if want := []string{
		"has(object.metadata.labels) && ['fuse.serverful.fluid.io/inject', 'serverless.fluid.io/inject', 'fuse.sidecar.fluid.io/inject'" + exists,
		"!(has(object.metadata.labels) && ['fuse.serverful.fluid.io/inject', 'serverless.fluid.io/inject', 'fuse.sidecar.fluid.io/inject'" + exists + ")",
	}; !slices.Equal(conditions, want) {
		t.Errorf("the conditions are %q", conditions)
	}
	if got := metav1.FormatLabelSelector(webhooks[1].NamespaceSelector); got != InjectionLabel+"=true" {
		t.Errorf("the older mode is for namespaces with %s", got)
	}
	if webhooks[0].Path != "/mutate-fluid-io-v1alpha1-schedulepod" {
		t.Errorf("the path is %s", webhooks[0].Path)
	}
}

func TestACacheThatLagsIsPassedByOnce(t *testing.T) {
	unbound := strings.Replace(oneDataset, "phase: Bound", "phase: NotBound", 1)
	withoutRuntime, _, _ := strings.Cut(oneDataset, "---\nkind: Alluxio")
	for name, cached := range map[string]string{
		"nothing is known yet": "", "the dataset was not bound a moment ago": unbound,
		"the runtime is not known yet": withoutRuntime,
	} {
		t.Run(name, func(t *testing.T) {
			source := &laggingSource{cached: newIndex(t, []byte(cached)), fresh: newIndex(t, []byte(oneDataset))}
			resp := cases.Handle(t, webhookOver(t, source, nil), request(onePod))
			if !resp.Allowed || len(resp.Patch) == 0 || source.reads != 3 {
				t.Errorf("allowed: %v, %d operations after %d reads", resp.Allowed, len(resp.Patch), source.reads)
			}
		})
	}
	source := &laggingSource{cached: newIndex(t, []byte(oneDataset)), fresh: NewIndex()}
	if resp := cases.Handle(t, webhookOver(t, source, nil), request(onePod)); !resp.Allowed || source.reads != 0 {
		t.Errorf("allowed: %v after %d reads", resp.Allowed, source.reads)
	}
	source = &laggingSource{cached: NewIndex(), fresh: newIndex(t, []byte(unbound))}
	if resp := cases.Handle(t, webhookOver(t, source, nil), request(onePod)); resp.Allowed || !strings.Contains(resp.Status.Message, "dataset \"team-a/data\" not bound") {
		t.Errorf("got %+v", resp.Status)
	}
}

func TestAFaultOfTheSourceIsNoDecision(t *testing.T) {
	cause := admission.Unavailable(errors.New("not read yet"), time.Second)
	resp, err := webhookOver(t, &laggingSource{err: cause}, nil).Handler.Handle(t.Context(), request(onePod))
	if resp != nil || !errors.Is(err, cause) {
		t.Errorf("got %+v, %v", resp, err)
	}
	if _, ok := admission.RetryAfter(err); !ok {
		t.Error("the API server is not told to call again")
	}
}

func TestAnEndOfTheContextIsNoDecision(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	resp, err := webhookOver(t, newIndex(t, []byte(oneDataset)), nil).Handler.Handle(ctx, request(onePod))
	if resp != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// TestTheNamespaceAsksAtFluidsPath covers the older mode with another configuration,
// such as that of an early Fluid release, which sends all pods of a namespace.
func TestTheNamespaceAsksAtFluidsPath(t *testing.T) {
	bare := strings.Replace(onePod, `"labels":{"fuse.serverful.fluid.io/inject":"true"}`, `"annotations":{}`, 1)
	for _, namespaceLabel := range []bool{false, true} {
		settings := DefaultSettings()
		settings.NamespaceLabel = namespaceLabel
		webhooks, err := New(newIndex(t, []byte(oneDataset)), settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		for pod, asks := range map[string]bool{
			onePod: true, bare: namespaceLabel, strings.Replace(onePod, "fuse.serverful.fluid.io/inject\":\"true", InjectionLabel+"\":\"false", 1): false,
		} {
			if resp := cases.Handle(t, webhooks[0], request(pod)); !resp.Allowed || (len(resp.Patch) > 0) != asks {
				t.Errorf("namespaceLabel %v: %d operations for %s", namespaceLabel, len(resp.Patch), pod)
			}
		}
	}
}

func TestRuntimesWithoutDefinitionAreNamed(t *testing.T) {
	index := newIndex(t, []byte(oneDataset))
	source := sourceFunc(func(ctx context.Context, ref Ref, fresh bool) (*Object, error) {
		if ref.Kind == "AlluxioRuntime" {
			return nil, ErrNotInstalled
		}
		return index.Find(ctx, ref, fresh)
	})
	resp := cases.Handle(t, webhookOver(t, source, nil), request(onePod))
	if resp.Allowed || !strings.Contains(resp.Status.Message, "the CustomResourceDefinition alluxioruntimes.data.fluid.io is not installed") {
		t.Errorf("got %+v", resp.Status)
	}
}

type sourceFunc func(context.Context, Ref, bool) (*Object, error)

func (f sourceFunc) Find(ctx context.Context, ref Ref, fresh bool) (*Object, error) {
	return f(ctx, ref, fresh)
}

func TestTheNamespaceIsTheRequests(t *testing.T) {
	webhook := webhookOver(t, newIndex(t, []byte(oneDataset)), nil)
	resp := cases.Handle(t, webhook, request(onePod)) // which names none
	if !resp.Allowed || strings.Contains(string(resp.Patch.AppendJSON(nil)), "/metadata/namespace") {
		t.Errorf("allowed: %v, %s", resp.Allowed, resp.Patch.AppendJSON(nil))
	}
	other := request(strings.Replace(onePod, `"name":"train"`, `"name":"train","namespace":"team-b"`, 1))
	if resp := cases.Handle(t, webhook, other); resp.Allowed || resp.Status.Code != 403 {
		t.Errorf("got %+v", resp.Status)
	}
	none := request(onePod)
	none.Namespace = ""
	if resp, err := webhook.Handler.Handle(t.Context(), none); resp != nil || err == nil {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestObjectsThatAreNoPodsAreRefused(t *testing.T) {
	webhook := webhookOver(t, NewIndex(), nil)
	for name, raw := range map[string]string{
		"nothing": "", "an array": "[1]", "invalid metadata": `{"metadata":"canary"}`,
		"no spec":                 `{"metadata":{"labels":{"fuse.serverful.fluid.io/inject":"true"}}}`,
		"a container that is one": `{"metadata":{"labels":{"fuse.serverful.fluid.io/inject":"true"}},"spec":{"containers":["canary"]}}`,
		"an invalid volume":       `{"metadata":{"labels":{"fuse.serverful.fluid.io/inject":"true"}},"spec":{"volumes":[7]}}`,
		"an invalid affinity":     `{"metadata":{"labels":{"fuse.serverful.fluid.io/inject":"true"}},"spec":{"affinity":"canary"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			resp := cases.Handle(t, webhook, request(raw))
			if resp.Allowed || resp.Status.Code != 400 || strings.Contains(resp.Status.Message, "canary") {
				t.Errorf("got %+v", resp.Status)
			}
		})
	}
	other := request(onePod)
	other.Resource.Resource = "services"
	if resp := cases.Handle(t, webhook, other); resp.Allowed {
		t.Error("it answers for services")
	}
}

func TestAPodWithTooManyLabelsIsRefused(t *testing.T) {
	labels := strings.Repeat(`"l":"",`, podmeta.MaxEntries)
	pod := strings.Replace(onePod, `"labels":{`, `"labels":{`+labels, 1)
	for allowed, pod := range map[bool]string{false: pod, true: strings.Replace(pod, `"l":"",`, "", 1)} {
		resp := cases.Handle(t, webhookOver(t, newIndex(t, []byte(oneDataset)), nil), request(pod))
		if resp.Allowed != allowed || !allowed && !strings.Contains(resp.Status.Message, "more than 20000 labels") {
			t.Errorf("want allowed %t; got %+v", allowed, resp.Status)
		}
	}
}

func TestWhatFollowsALongNodeSelectorIsRead(t *testing.T) {
	pod := []byte(strings.Replace(onePod, `"volumes"`, `"nodeSelector":{`+strings.Repeat(`"l":"",`, podmeta.MaxEntries)+`"l":""},"volumes"`, 1))
	md, _ := readMetadata(pod, true)
	if p, ok := readPod(pod, md); !ok || len(p.claims()) != 1 || len(p.selector()) != podmeta.MaxEntries+1 {
		t.Errorf("read: %t, %d claims, %d requirements", ok, len(p.claims()), len(p.selector()))
	}
}

func TestPluginsAreObserved(t *testing.T) {
	index := newIndex(t, []byte(oneDataset))
	var seen []string
	webhook := webhookOver(t, index, func(plugin, outcome string) { seen = append(seen, plugin+" "+outcome) })
	cases.Handle(t, webhook, request(onePod))
	want := []string{
		"FilePrefetcher unchanged", "RequireNodeWithFuse unchanged", "NodeAffinityWithCache changed", "MountPropagationInjector unchanged", "DatasetUsageInjector changed",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("observed %q", seen)
	}
	seen = nil
	cases.Handle(t, webhook, request(strings.Replace(onePod, `"labels"`, `"annotations":{"file-prefetcher.fluid.io/inject":"true"},"labels"`, 1)))
	if want := []string{"FilePrefetcher refused"}; !slices.Equal(seen, want) {
		t.Errorf("observed %q", seen)
	}
}

func TestAuditAnnotationsNameDatasetsAndTerms(t *testing.T) {
	webhook := webhookOver(t, newIndex(t, []byte(oneDataset)), nil)
	resp := cases.Handle(t, webhook, request(onePod))
	if got := resp.AuditAnnotations; got["datasets"] != "team-a/data" || got["terms"] != "100 fluid.io/s-team-a-data" {
		t.Errorf("got %q", got)
	}
	required := strings.Replace(onePod, `"labels":{`, `"labels":{"fluid.io/dataset.data.sched":"required",`, 1)
	if got := cases.Handle(t, webhook, request(required)).AuditAnnotations["terms"]; got != "required fluid.io/s-team-a-data" {
		t.Errorf("got %q", got)
	}
}

// TestTheAffinityIsFluids compares with Fluid's webhook, for users who migrate: for one
// Dataset, byte for byte.
func TestTheAffinityIsFluids(t *testing.T) {
	webhook := webhookOver(t, newIndex(t, []byte(oneDataset)), nil)
	for pod, want := range map[string]string{
		onePod: `{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"preference":{"matchExpressions":[{"key":"fluid.io/s-team-a-data","operator":"In","values":["true"]}]}}]}}`,
		strings.Replace(onePod, `"labels":{`, `"labels":{"fluid.io/dataset.data.sched":"required",`, 1): `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"fluid.io/s-team-a-data","operator":"In","values":["true"]}]}]}}}`,
	} {
		req := request(pod)
		after := cases.Apply(t, req.Object.Raw, cases.Handle(t, webhook, req))
		var got corev1.Pod
		if err := json.Unmarshal(after, &got); err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(got.Spec.Affinity); string(text) != want {
			t.Errorf("want\n%s\ngot\n%s", want, text)
		}
	}
}

func TestExplainTellsWhyANodeIsPreferred(t *testing.T) {
	source := newIndex(t, []byte(oneDataset))
	required := strings.Replace(onePod, `"labels":{`, `"labels":{"fluid.io/dataset.data.sched":"required",`, 1)
	for pod, weight := range map[string]int{onePod: 100, required: 0} {
		req := request(pod)
		after := cases.Apply(t, req.Object.Raw, cases.Handle(t, webhookOver(t, source, nil), req))
		for _, raw := range [][]byte{req.Object.Raw, after} { // before admission, and as it is stored
			reasons, err := Explain(t.Context(), source, DefaultSettings(), "team-a", raw)
			if err != nil || len(reasons) != 1 {
				t.Fatalf("%+v, %v", reasons, err)
			}
			r := reasons[0]
			if r.Weight != weight || r.Dataset != "team-a/data" || r.Plugin != nodeAffinityWithCacheName || !strings.Contains(r.Source(), "dataset team-a/data: NodeAffinityWithCache") {
				t.Errorf("%+v: %s", r, r.Source())
			}
			if !r.Meets(map[string]string{"fluid.io/s-team-a-data": "true"}) || r.Meets(nil) {
				t.Error("it does not know its nodes")
			}
		}
	}
	if reasons, err := Explain(t.Context(), source, DefaultSettings(), "team-a", []byte(`{"metadata":{},"spec":{}}`)); err != nil || len(reasons) > 0 {
		t.Errorf("%+v, %v", reasons, err)
	}
	if _, err := Explain(t.Context(), NewIndex(), DefaultSettings(), "team-a", []byte(onePod)); err == nil {
		t.Error("a pod that would be refused is explained")
	}
}

// TestAnyPodIsChangedOnce reviews pods with any claims, labels and affinity. Additions
// are not repeated, and existing content stays.
func TestAnyPodIsChangedOnce(t *testing.T) {
	var cluster strings.Builder
	for _, name := range []string{"a", "b", "c"} {
		cluster.WriteString(strings.NewReplacer("name: data", "name: "+name, "team-a-data", "team-a-"+name).Replace(oneDataset))
		cluster.WriteString("spec: {fuse: {nodeSelector: {disk: ssd, " + name + ": \"1\"}}}\n" +
			"status: {cacheAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
			"{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z1, z" + name + "]}]}, " +
			"{matchExpressions: [{key: topology.kubernetes.io/zone, operator: Exists}]}]}}}\n---\n")
	}
	index := newIndex(t, []byte(cluster.String()))
	requirements := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.NodeSelectorRequirement {
		r := corev1.NodeSelectorRequirement{
			Key:      rapid.SampledFrom([]string{"disk", "rack", "gpu", "fluid.io/s-team-a-a", "topology.kubernetes.io/zone", "fluid.io/dataset-num"}).Draw(t, "key"),
			Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator"),
		}
		if r.Operator == "In" || r.Operator == "NotIn" {
			r.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"true", "ssd", "z1"}), 1, 2).Draw(t, "values")
		}
		return r
	}), 0, 2)
	rapid.Check(t, func(t *rapid.T) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{ServerfulLabel: "true"}}}
		for i, claim := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 4).Draw(t, "claims") {
			if rapid.Bool().Draw(t, "required") {
				pod.Labels["fluid.io/dataset."+claim+".sched"] = "required"
			}
			v := corev1.Volume{Name: string(rune('v' + i))}
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
			pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		}
		if rapid.Bool().Draw(t, "affinity") {
			node := &corev1.NodeAffinity{}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: node}
			for range rapid.IntRange(0, 2).Draw(t, "terms") {
				if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
					node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
				}
				required := node.RequiredDuringSchedulingIgnoredDuringExecution
				required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: requirements.Draw(t, "required")})
			}
			for range rapid.IntRange(0, 2).Draw(t, "preferences") {
				node.PreferredDuringSchedulingIgnoredDuringExecution = append(node.PreferredDuringSchedulingIgnoredDuringExecution,
					corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: requirements.Draw(t, "preferred")}})
			}
		}
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		settings := DefaultSettings()
		settings.RequiredSemantics = rapid.SampledFrom([]RequiredSemantics{RequireAll, RequireAny}).Draw(t, "semantics")
		settings.PluginsProfile = strings.Replace(DefaultProfile, "    required:\n", "    required:\n    - topology.kubernetes.io/zone\n", 1)
		webhooks, err := New(index, settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		once(t, webhooks[0], raw, &pod)
	})
}

// once reviews a pod, and then the result.
func once(t *rapid.T, webhook admission.Webhook, raw []byte, pod *corev1.Pod) {
	handle := func(raw []byte) *admission.Response {
		resp, err := webhook.Handler.Handle(context.Background(), request(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	resp := handle(raw)
	if !resp.Allowed {
		return
	}
	after, err := applied(raw, resp)
	if err != nil {
		t.Fatal(err)
	}
	if again := handle(after); !again.Allowed || len(again.Patch) > 0 {
		t.Fatalf("the second pass: %+v, %s\non %s", again.Status, again.Patch.AppendJSON(nil), after)
	}
	var got corev1.Pod
	if err := json.Unmarshal(after, &got); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.Affinity == nil {
		return
	}
	had, has := pod.Spec.Affinity.NodeAffinity, got.Spec.Affinity.NodeAffinity
	for i, p := range had.PreferredDuringSchedulingIgnoredDuringExecution {
		if a, b := mustJSON(p), mustJSON(has.PreferredDuringSchedulingIgnoredDuringExecution[i]); a != b {
			t.Fatalf("preference %d was %s and is %s", i, a, b)
		}
	}
	if had.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	// Each present term requires everything that one of the original terms required.
	for _, term := range has.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if !slices.ContainsFunc(had.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(before corev1.NodeSelectorTerm) bool {
			if len(before.MatchExpressions) == 0 || len(term.MatchExpressions) < len(before.MatchExpressions) {
				return len(before.MatchExpressions) == 0 && len(term.MatchExpressions) == 0
			}
			return mustJSON(before.MatchExpressions) == mustJSON(term.MatchExpressions[:len(before.MatchExpressions)])
		}) {
			t.Fatalf("the term %s comes from none of %s", mustJSON(term), mustJSON(had.RequiredDuringSchedulingIgnoredDuringExecution))
		}
	}
}

func applied(raw []byte, resp *admission.Response) ([]byte, error) {
	if len(resp.Patch) == 0 {
		return raw, nil
	}
	patch, err := jsonpatchv4.DecodePatch(resp.Patch.AppendJSON(nil))
	if err != nil {
		return nil, err
	}
	return patch.Apply(raw)
}

func mustJSON(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// FuzzPod sends any valid JSON as a pod. An admitted pod is not changed again.
func FuzzPod(f *testing.F) {
	for _, c := range cases.All(f) {
		f.Add(c.Request(f, podResource).Object.Raw)
	}
	index := newIndex(f, []byte(oneDataset))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !jsontext.Value(raw).IsValid() { // the wire lets nothing else through
			return
		}
		webhook := webhookOver(t, index, nil)
		req := request(string(raw))
		resp := cases.Handle(t, webhook, req)
		if !resp.Allowed {
			return
		}
		after := cases.Apply(t, raw, resp)
		if again := cases.Handle(t, webhook, request(string(after))); !again.Allowed || len(again.Patch) > 0 {
			t.Fatalf("the second pass is not empty: %+v %s", again.Status, again.Patch.AppendJSON(nil))
		}
	})
}
