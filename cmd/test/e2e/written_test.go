// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/test/lab"
)

// How many changes testWritten makes; there are some 30,000. `make nightly` wants 10,000.
var changes = flag.Int("changes", 100, "how many changes to valid PodDefaults are tried")

// testWritten changes valid PodDefaults in one place each and lets the API server judge
// twice: what is written, with the schema and the webhook, and a plain pod that it was
// injected into. Whatever may be written must come out as a pod that may be created. And
// what may not be written would have been refused in a pod.
func testWritten(t *testing.T, e *env) {
	const name = "written"
	e.namespace(t, name)
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "builder"}})
	e.create(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important-written"}, Value: 1000})
	e.create(t, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "sandboxed-written"}, Handler: "sandboxed"})
	e.serve(t, name, lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`))
	e.awaitJudge(t, name)
	t.Run("what cannot work is refused, with the path of the field", func(t *testing.T) { testInvalid(t, e, name) })

	w := newTrial(t, e, name)
	valid := validPodDefaults(t)
	newest := lab.KubernetesMinor(t) >= 37
	for _, base := range valid {
		v := w.judge(t.Context(), base.spec)
		if v.pod != nil && !newest && olderReleases.MatchString(v.pod.Error()) {
			v.pod = nil
		}
		if v.refused != nil || v.denied != "" || v.pod != nil {
			t.Errorf("%s: written: %v, injected: %s, created: %v", base.name, v.refused, v.denied, v.pod)
		}
	}
	all := changesOf(valid)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(*changes, len(all))]

	var mu sync.Mutex
	accepted, refused, denied, depends := 0, 0, 0, 0
	var broken, strict []string
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for _, change := range all {
		group.Go(func() error {
			spec := change.made()
			v := w.judge(ctx, spec)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case v.fault != nil:
				return fmt.Errorf("%s: %w", change.what, v.fault)
			case v.refused != nil:
				refused++
				if v.pod == nil && !ofPodDefaults.MatchString(v.refused.Error()) {
					strict = append(strict, fmt.Sprintf("%s: %.300s", change.what, v.refused))
				}
			case v.denied != "":
				denied++
			case v.pod == nil:
				accepted++
			case dependsOnPod.MatchString(v.pod.Error()), !newest && olderReleases.MatchString(v.pod.Error()):
				depends++
			default:
				broken = append(broken, fmt.Sprintf("%s: %.300s", change.what, v.pod))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d changes: %d may be written and their pods created, %d may not be written, %d conflict with the pod, %d depend on it; %d break pods, %d are refused without need",
		len(all), accepted, refused, denied, depends, len(broken), len(strict))
	report := func(what string, list []string) {
		slices.Sort(list)
		for _, line := range list[:min(len(list), *most)] {
			t.Errorf("%s: %s", what, line)
		}
	}
	report("it may be written, and pods break", broken)
	if newest { // an older API server takes what it drops
		report("it may not be written, and pods would be right", strict)
	}
}

var most = flag.Int("most", 20, "how many mistakes of a kind are printed")

// dependsOnPod is why a pod is refused that another pod, or another cluster, would not be:
// what the pod lacks that a PodDefault cannot bring.
var dependsOnPod = regexp.MustCompile(strings.Join([]string{
	`serviceaccount ".*" not found`, `no PriorityClass with name`, `RuntimeClass ".*" not found`,
	`less than terminationGracePeriodSeconds`, // of the pod
	"with empty `spec.os.name`",
	"`hostUsers` must be false",
	`hostProcess`,
	`names in pod.spec.resourceClaims`,
	`spec.containers\[0\].*only to privileged containers|only to privileged containers`,
	`container not found`,
	`operator: Unsupported value: "(Gt|Lt)"`, // behind a feature gate
}, "|"))

// olderReleases is why releases of Kubernetes before 1.37 refuse a pod: features that are off, and
// fields that they do not know and drop.
var olderReleases = regexp.MustCompile(`seLinuxChangePolicy: Unsupported value: "MountOption"|action: Unsupported value: "RestartAllContainers"|` +
	`valueFrom: Invalid value: "": must specify one of`)

// ofPodDefaults is why a PodDefault is refused whose fields a pod could have.
var ofPodDefaults = regexp.MustCompile(strings.Join([]string{
	`Duplicate value`, // elements are merged by key: the second would be lost
	`Forbidden`,       // it is not for authors to say
	`spec\.selector`,  // and what else is about the PodDefault itself
	`spec\.(rollout|revisionHistoryLimit|envFromSecretSelector|volumesFromSecretSelector|secretsMountPath|positions|containerSelector|exclusiveGroup|conflictPolicy|mode|priority|desc|substitute)`,
	`Too (many|long)`, // what a pod gets is bounded
	`strict decoding error`, `spec: /priority`, `terminationGracePeriodSeconds: Invalid value: -1`,
	`(secretName|(secret|configMap)\.name|claimName): Invalid`,                                   // nothing can have such a name: the pod would wait for ever
	`(defaultUser|user|emptyDir.mode|(httpGet|grpc)\.(protocol|mode|host)|bindMountOptions.*): `, // fields that many API servers drop
	`Required value($|, |\])`,                     // so says Kubernetes' own schema, though an absent value would do
	`nodeAffinity.*values\[0\]\S*: Invalid value`, // the scheduler refuses it
}, "|"))

// A trial writes PodDefaults and creates pods, both in dry runs.
type trial struct {
	client     client.Client
	namespace  string
	plain      []byte // the pod as the API server would send it to the webhook
	validation string // of fields of pods
}

func newTrial(t *testing.T, e *env, namespace string) *trial {
	t.Helper()
	config := rest.CopyConfig(e.config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: e.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	pod := simplePod(namespace, "written")
	pod.Spec.Containers[0].Name = "main"
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	pod.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: pod.Name, Labels: pod.Labels}
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	plain, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	validation := metav1.FieldValidationStrict
	if lab.KubernetesMinor(t) < 37 {
		validation = metav1.FieldValidationIgnore // it drops what is new in 1.37 from a pod
	}
	return &trial{c, namespace, plain, validation}
}

// A verdict is what becomes of a spec.
type verdict struct {
	fault   error  // nobody judged
	refused error  // why it may not be written
	denied  string // why the webhook refuses the pod
	pod     error  // why the API server refuses the pod that comes out
}

func (w *trial) judge(ctx context.Context, spec map[string]any) (v verdict) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind))
	object.SetNamespace(w.namespace)
	object.SetName("changed")
	if v.refused, v.fault = w.create(ctx, object, metav1.FieldValidationStrict); v.fault != nil {
		return v
	}
	var pod []byte
	if v.refused != nil {
		if pod, v.fault = w.byHand(spec); v.fault != nil {
			return v
		}
	} else if pod, v.denied, v.fault = w.injected(ctx, object); v.fault != nil || v.denied != "" {
		return v
	}
	created := &unstructured.Unstructured{}
	if v.fault = created.UnmarshalJSON(pod); v.fault == nil {
		v.pod, v.fault = w.create(ctx, created, w.validation)
	}
	return v
}

// create tells a refusal from a fault. The API server's plugin for runtime classes looks a class
// up before its name is validated, and says 500 to a name with a slash.
func (w *trial) create(ctx context.Context, object *unstructured.Unstructured, validation string) (refusal, fault error) {
	err := w.client.Create(ctx, object, client.DryRunAll, client.FieldValidation(validation))
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "invalid resource name") {
		return err, nil
	}
	return nil, err
}

// injected is what the webhook makes of the plain pod.
func (w *trial) injected(ctx context.Context, object *unstructured.Unstructured) (pod []byte, denied string, err error) {
	pd := &kubeflowv1alpha1.PodDefault{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pd); err != nil {
		return nil, "", err
	}
	pd.ResourceVersion = "1"
	index := source.NewIndex()
	index.Set(plan.Compile(pd))
	webhook, err := poddefault.New(index, poddefault.DefaultSettings())
	if err != nil {
		return nil, "", err
	}
	resp, err := webhook.Handler.Handle(ctx, &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: w.namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: w.plain},
	})
	switch {
	case err != nil:
		return nil, "", err
	case !resp.Allowed:
		return nil, resp.Status.Message, nil
	case len(resp.Patch) == 0:
		return w.plain, "", nil
	}
	patch, err := jsonpatchv4.DecodePatch(resp.Patch.AppendJSON(nil))
	if err == nil {
		pod, err = patch.Apply(w.plain)
	}
	return pod, "", err
}

// byHand puts the fields of a spec where they belong in the plain pod, right or wrong.
func (w *trial) byHand(spec map[string]any) ([]byte, error) {
	var pod map[string]any
	if err := json.Unmarshal(w.plain, &pod); err != nil {
		return nil, err
	}
	podSpec := pod["spec"].(map[string]any)
	meta := pod["metadata"].(map[string]any)
	main := podSpec["containers"].([]any)[0].(map[string]any)
	put := func(into map[string]any, key string, value any) {
		list, isList := value.([]any)
		there, _ := into[key].([]any)
		add, isMap := value.(map[string]any)
		have, _ := into[key].(map[string]any)
		switch {
		case isList:
			into[key] = append(slices.Clone(there), list...)
		case isMap && have != nil:
			have = maps.Clone(have)
			maps.Copy(have, add)
			into[key] = have
		default:
			into[key] = value
		}
	}
	for key, value := range spec {
		switch key {
		case "selector", "desc", "priority", "conflictPolicy", "mode", "substitute", "positions", "containerSelector", "exclusiveGroup", "revisionHistoryLimit", "rollout",
			"envFromSecretSelector", "volumesFromSecretSelector", "secretsMountPath":
		case "env", "envFrom", "volumeMounts", "volumeDevices", "command", "args", "ports", "resources", "lifecycle", "terminationMessagePolicy":
			put(main, key, value)
		case "containerSecurityContext":
			put(main, "securityContext", value)
		case "podSecurityContext":
			put(podSpec, "securityContext", value)
		case "labels", "annotations":
			put(meta, key, value)
		case "sidecars":
			put(podSpec, "containers", value)
		case "serviceAccountName":
			podSpec["serviceAccountName"], podSpec["serviceAccount"] = value, value
		case "priorityClassName":
			delete(podSpec, "priority")
			delete(podSpec, "preemptionPolicy")
			put(podSpec, key, value)
		default:
			put(podSpec, key, value)
		}
	}
	return json.Marshal(pod)
}
