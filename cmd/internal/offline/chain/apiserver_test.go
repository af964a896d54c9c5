// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/served"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/test/lab"
)

var (
	times = flag.Int("times", 1, "how many times 40 pods are compared with the API server")
	seed  = flag.Uint64("seed", 1, "what pods and policies are drawn from")
)

// podsEach is the number of pods for each set of policies.
const podsEach = 4

// paramKind is that of all policies: expressions about parameters have to compile.
const paramKind = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n"

// TestTheResultIsThatOfTheAPIServerOnARealAPIServer draws sets of policies, bindings, parameters,
// PodDefaults and namespaces, and pods. It compares the result with what the API server stores,
// or with its refusal.
func TestTheResultIsThatOfTheAPIServerOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	warnings := &warningsOf{}
	config.WarningHandler = warnings
	w := &world{t: t, config: config, rand: rand.New(rand.NewPCG(*seed, 0))} // to be repeatable
	var err error
	if w.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	w.who = whoAmI(t, config)
	minor := lab.KubernetesMinor(t)
	w.mutates, w.exact = minor >= 36, minor >= 37 // mutating policies in version v1, and the texts of the libraries
	sets := make([]*policySet, 40**times/podsEach)
	for i := range sets {
		sets[i] = w.draw(i, lab.Namespace(t, config))
	}
	w.serve(sets)
	for _, set := range sets {
		w.create(set.objects...)
	}
	w.awaitPolicies(lab.Namespace(t, config))

	outcomes := map[string]int{}
	for i, set := range sets {
		for n := range podsEach {
			pod := w.pod(set, n)
			got, err := set.run(pod, w.who).Do(t.Context())
			if err != nil {
				t.Fatalf("set %d: %v", i, err)
			}
			warnings.take()
			stored, refused := w.client.Resource(pods).Namespace(set.namespace).Create(t.Context(), unstructuredOf(t, pod), metav1.CreateOptions{})
			outcomes[w.compare(fmt.Sprintf("set %d, pod %d", i, n), set, pod, got, stored, refused, warnings.take())]++
			for _, s := range got.Steps {
				outcomes[string(s.Phase)+" "+string(s.Outcome)]++
				if s.Again && s.Outcome == chain.Changed && refused == nil {
					outcomes["stored with changes of a reinvocation"]++
				}
			}
		}
	}
	t.Logf("seed %d: %v", *seed, outcomes)
	if *seed != 1 || !w.mutates {
		return // another one may draw no case of some kind, and so may this one without mutating policies
	}
	for _, want := range []string{
		"stored", "refused", "mutating policies changed", "mutating policies skipped", "mutating policies ignored", "mutating policies failed",
		"mutating webhooks changed", "pod security denied", "pod security warned", "validating policies allowed", "validating policies denied",
		"validating policies warned", "validating policies audited", "validating webhooks allowed", "validating webhooks denied",
		"stored with changes of a reinvocation",
	} {
		if outcomes[want] == 0 {
			t.Errorf("no case was %q: %v", want, outcomes)
		}
	}
}

// compare compares a result with that of the API server.
func (w *world) compare(title string, set *policySet, pod *corev1.Pod, got *chain.Result, stored *unstructured.Unstructured, refused error, warned []string) string {
	t := w.t
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		steps, _ := json.MarshalIndent(got, "", " ")
		t.Errorf("%s (namespace %s, pod %s): %s\n%s\n%s", title, set.namespace, pod.Name, fmt.Sprintf(format, args...), steps, set.yaml)
	}
	if len(got.Unknown) > 0 {
		fail("something is unknown")
	}
	if i := slices.IndexFunc(got.Notes, func(note string) bool { return strings.Contains(note, "order") }); i >= 0 {
		fail("the policies that are drawn do not commute: %s", got.Notes[i])
	}
	slices.Sort(got.Warnings)
	slices.Sort(warned)
	if refused != nil {
		var status apierrors.APIStatus
		if !errorAs(refused, &status) || got.Denied == nil {
			fail("the API server refuses: %v", refused)
			return "refused"
		}
		message := status.Status().Message
		var candidates []string
		for _, s := range got.Steps {
			if s.Outcome == chain.Denied || s.Outcome == chain.Failed {
				candidates = append(candidates, s.Name)
			}
		}
		if len(candidates) == 1 && w.exact {
			if diff := cmp.Diff(message, got.Denied.Message); diff != "" {
				fail("refusal (-API server +here):\n%s", diff)
			}
			if status.Status().Reason != got.Denied.Reason || status.Status().Code != got.Denied.Code {
				fail("the API server refuses with %s %d, here it is %s %d", status.Status().Reason, status.Status().Code, got.Denied.Reason, got.Denied.Code)
			}
		} else if !slices.ContainsFunc(candidates, func(name string) bool { return names(message, name) }) { // policies are evaluated in any order
			fail("the API server refuses with %q", message)
		}
		return "refused"
	}
	if got.Denied != nil {
		fail("the API server stores it; here it is refused: %s", got.Denied.Message)
		return "stored"
	}
	here := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(got.Object)}
	for _, o := range []*unstructured.Unstructured{here, stored} {
		delete(o.Object, "status")
		maps.DeleteFunc(o.Object["metadata"].(map[string]any), func(key string, _ any) bool {
			return !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, key)
		})
	}
	if diff := cmp.Diff(stored.Object, here.Object); diff != "" {
		fail("(-stored +here):\n%s", diff)
	}
	if diff := cmp.Diff(warned, got.Warnings, cmpopts.EquateEmpty()); diff != "" {
		fail("warnings (-API server +here):\n%s", diff)
	}
	return "stored"
}

func errorAs(err error, target *apierrors.APIStatus) bool {
	status, ok := err.(apierrors.APIStatus)
	*target = status
	return ok
}

// names reports whether a message names a step.
func names(message, step string) bool {
	first, second, _ := strings.Cut(step, "/")
	return strings.Contains(message, "'"+first+"' with binding '"+second+"'") || strings.Contains(message, `"`+second+`"`) || strings.Contains(message, `policy "`+first+`" denied`) || step == "PodSecurity" && strings.Contains(message, "violates PodSecurity")
}

type warningsOf struct {
	mu   sync.Mutex
	list []string
}

func (w *warningsOf) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warningsOf) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

var (
	pods       = corev1.SchemeGroupVersion.WithResource("pods")
	registered = admissionregistrationv1.SchemeGroupVersion
)

// world is an API server and what is drawn for it.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	config *rest.Config
	client dynamic.Interface
	who    authenticationv1.UserInfo
	// address and ca are those of the server of webhooks.
	address string
	ca      []byte
	// mutates is set if the API server has mutating policies.
	mutates bool
	// exact is set if its refusals have the texts of the libraries.
	exact bool
}

// policySet is what decides in a namespace.
type policySet struct {
	namespace string
	yaml      string
	// objects are those that the API server has. The PodDefaults are only here: their webhook
	// reads them in this process, in both cases.
	objects  []*manifest.Object
	all      []*manifest.Object
	webhooks []admission.Webhook
}

func (s *policySet) run(pod *corev1.Pod, who authenticationv1.UserInfo) *chain.Run {
	raw, err := json.Marshal(pod)
	if err != nil {
		panic(err)
	}
	known, err := resources.OfFiles(s.all)
	if err != nil {
		panic(err)
	}
	return &chain.Run{Objects: s.all, Resources: known, Webhooks: s.webhooks, Request: &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource(pods),
		Namespace: s.namespace, Name: pod.Name, UserInfo: who, Object: runtime.RawExtension{Raw: raw},
	}}
}

func (w *world) one(of ...string) string { return of[w.rand.IntN(len(of))] }
func (w *world) sometimes(n int) bool    { return w.rand.IntN(n) == 0 }

// draw draws a set for a namespace. Its mutating policies commute, because the API server evaluates
// them in any order.
func (w *world) draw(number int, namespace string) *policySet {
	set := &policySet{namespace: namespace}
	var docs []string
	add := func(format string, args ...any) { docs = append(docs, fmt.Sprintf(format, args...)) }
	labels := "tier: " + w.one("gold", "silver")
	if w.sometimes(4) {
		labels += ", pod-security.kubernetes.io/enforce: " + w.one("baseline", "restricted")
	}
	if w.sometimes(2) {
		labels += ", pod-security.kubernetes.io/warn: " + w.one("baseline", "restricted")
	}
	add("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {kubernetes.io/metadata.name: %s, %s}}}", namespace, namespace, labels)
	for _, name := range []string{"a", "b"} {
		add("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, labels: {set: %q}}, data: {value: %s, most: %q}}", name, namespace, w.one("x", "y"), w.one("red", "blue"), w.one("1", "2"))
	}
	constraints := "matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + namespace + "}}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}"
	lists := 0
	policies := 1 + w.rand.IntN(4)
	if !w.mutates {
		policies = 0
	}
	for i := range policies {
		name := fmt.Sprintf("m%d-%s", i, namespace)
		var mutation string
		reinvocation := w.one("Never", "IfNeeded")
		switch w.rand.IntN(10) {
		case 0:
			mutation = fmt.Sprintf("{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"m%d\": variables.count}}}'}}", i)
		case 1:
			mutation = fmt.Sprintf("{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"m%d\": params == null ? \"none\" : params.data.value}}}'}}", i)
		case 2:
			mutation = fmt.Sprintf("{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"add\", path: \"/metadata/labels/m%d\", value: namespaceObject.metadata.labels.tier}]'}}", i)
		case 3:
			mutation = fmt.Sprintf("{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"m%d\": object.metadata.labels.missing}}}'}}", i)
		case 4: // not allowed: the list is atomic
			mutation = "{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{containers: [Object.spec.containers{name: \"main\", args: [\"x\"]}]}}'}}"
		case 5, 6, 7: // what the webhook has set, when it is reinvoked
			reinvocation = "IfNeeded"
			mutation = fmt.Sprintf("{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"add\", path: \"/metadata/labels/m%d\", value: has(object.metadata.labels.team) ? object.metadata.labels.team : \"nobody\"}]'}}", i)
		default:
			if lists++; lists > 1 {
				continue
			}
			mutation = w.one(
				"{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: \"BY_POLICY\", value: c.imagePullPolicy}]})}}'}}",
				"{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"add\", path: \"/spec/containers/-\", value: Object.spec.containers{name: \"side\", image: \"side:1\", ports: [Object.spec.containers.ports{containerPort: 80}], resources: Object.spec.containers.resources{limits: {\"cpu\": \"1\"}}}}].filter(x, !object.spec.containers.exists(c, c.name == \"side\"))'}}",
				"{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"add\", path: \"/spec/terminationGracePeriodSeconds\", value: object.spec.terminationGracePeriodSeconds + 1}]'}}",
			)
		}
		add("apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: %s}\nspec:\n  failurePolicy: %s\n  reinvocationPolicy: %s\n  %s\n%s%s  variables: [{name: count, expression: 'string(object.spec.containers.filter(c, c.name != \"side\").size())'}]\n  mutations:\n  - %s\n",
			name, w.one("Fail", "Ignore", "Ignore"), reinvocation, constraints, paramKind, w.conditions(), mutation)
		w.bindings(add, "Mutating", name, namespace, "")
	}
	for i := range 1 + w.rand.IntN(4) {
		name := fmt.Sprintf("v%d-%s", i, namespace)
		validation := w.one(
			"{expression: 'object.spec.containers.size() <= 2', messageExpression: '\"there are \" + string(object.spec.containers.size()) + \" containers\"'}",
			"{expression: 'object.spec.restartPolicy == \"Always\"', message: it has to restart}",
			"{expression: 'object.spec.containers.all(c, c.imagePullPolicy != \"Always\" || c.image.endsWith(\":latest\"))', reason: Forbidden}",
			"{expression: 'has(object.metadata.labels.team)'}",
			"{expression: 'params == null || object.spec.containers.size() <= int(params.data.most)', messageExpression: '\"at most \" + params.data.most'}",
			"{expression: 'object.metadata.labels.missing == \"x\"'}",
			"{expression: 'variables.images.all(i, !i.contains(\"evil\"))', message: evil image}",
			"{expression: 'object.spec.containers.all(c, !has(c.env) || c.env.all(e, e.name != \"FORBIDDEN\"))', message: forbidden variable}",
			"{expression: 'namespaceObject.metadata.labels.tier == \"gold\" || request.userInfo.username != \"nobody\"'}",
		)
		add("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: %s}\nspec:\n  failurePolicy: %s\n  %s\n%s%s  variables: [{name: images, expression: 'object.spec.containers.map(c, c.image)'}]\n  validations:\n  - %s\n  auditAnnotations: [{key: images, valueExpression: 'string(variables.images.size())'}]\n",
			name, w.one("Fail", "Ignore"), constraints, paramKind, w.conditions(), validation)
		w.bindings(add, "Validating", name, namespace, "  validationActions: ["+w.one("Deny", "Warn", "Warn", "Audit", "\"Deny\", \"Audit\"", "\"Warn\", \"Audit\"")+"]\n")
	}
	for i := range 1 + w.rand.IntN(2) {
		add("{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: pd%d, namespace: %s}, spec: {selector: {matchLabels: {use: %q}}, desc: d, conflictPolicy: %s, env: [{name: %s, value: %q}], labels: {team: %s}, annotations: {example.com/pd%d: x}}}",
			i, namespace, w.one("yes", "both"), w.one("Skip", "Deny"), w.one("A", "B", "FORBIDDEN"), w.one("1", "2"), w.one("red", "red", "blue"), i)
	}
	set.yaml = strings.Join(docs, "\n---\n")
	var err error
	if set.all, _, err = manifest.Parse(fmt.Sprintf("set %d", number), []byte(set.yaml)); err != nil {
		w.t.Fatalf("%v\n%s", err, set.yaml)
	}
	set.objects = slices.DeleteFunc(slices.Clone(set.all), func(o *manifest.Object) bool { return o.Kind == "PodDefault" })
	return set
}

func (w *world) conditions() string {
	return w.one("", "", "", "  matchConditions: [{name: several, expression: 'object.spec.containers.filter(c, c.name != \"side\").size() > 1'}]\n",
		"  matchConditions: [{name: used, expression: 'has(object.metadata.labels.use)'}, {name: named, expression: 'object.metadata.name != \"pod-1\"'}]\n",
		"  matchConditions: [{name: broken, expression: 'object.metadata.labels.absent == \"x\"'}]\n")
}

func (w *world) bindings(add func(string, ...any), kind, policy, namespace, more string) {
	for i := range 1 + w.rand.IntN(2) {
		param := w.one("", "  paramRef: {name: a, parameterNotFoundAction: Deny}\n", "  paramRef: {selector: {matchLabels: {set: x}}, parameterNotFoundAction: Allow}\n",
			"  paramRef: {name: absent, parameterNotFoundAction: Allow}\n", "  paramRef: {name: b, namespace: "+namespace+", parameterNotFoundAction: Deny}\n",
			w.one("", "", "", "  paramRef: {name: absent, parameterNotFoundAction: Deny}\n"))
		match := w.one("", "", "  matchResources: {objectSelector: {matchLabels: {use: \"yes\"}}}\n", "  matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: [pods], resourceNames: [pod-2]}]}\n")
		if kind == "Mutating" && i > 0 { // two bindings with different parameters do not commute
			return
		}
		if kind == "Mutating" && strings.Contains(param, "selector") {
			param = ""
		}
		add("apiVersion: admissionregistration.k8s.io/v1\nkind: %sAdmissionPolicyBinding\nmetadata: {name: b%d-%s}\nspec:\n  policyName: %s\n%s%s%s", kind, i, policy, policy, param, match, more)
	}
}

// pod draws a pod. It has what built-in plugins would add.
func (w *world) pod(set *policySet, n int) *corev1.Pod {
	forever := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}
	}
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", n), Namespace: set.namespace, Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{
			Priority: new(int32), PreemptionPolicy: new(corev1.PreemptLowerPriority), RestartPolicy: corev1.RestartPolicy(w.one("", "", "Never")),
			Tolerations: []corev1.Toleration{forever("node.kubernetes.io/not-ready"), forever("node.kubernetes.io/unreachable")},
		},
	}
	if use := w.one("", "yes", "yes", "both"); use != "" {
		pod.Labels["use"] = use
	}
	for i := range 1 + w.rand.IntN(2) {
		c := corev1.Container{Name: []string{"main", "second"}[i], Image: w.one("a:1", "b:2", "registry.example.com:5000/a:1", w.one("a", "new:latest"), w.one("evil:1", "c:3"), "a@sha256:"+strings.Repeat("0", 64))}
		if w.sometimes(3) {
			c.Env = []corev1.EnvVar{{Name: w.one("A", "FORBIDDEN", "C"), Value: "1"}, {Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
		}
		if w.sometimes(3) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}}
		}
		if w.sometimes(4) {
			c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	if w.sometimes(3) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "e"}, {Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
	}
	return pod
}

// configuration is that of the webhooks: mutating and validating ones.
const configuration = `{apiVersion: config.sallyport.io/v1alpha1, kind: SallyportConfiguration, webhooks: [{name: poddefault}, {name: imagepull, settings: {forbidLatest: true}}]}`

// serve prepares the webhooks of each set, and a server for them.
func (w *world) serve(sets []*policySet) {
	file := filepath.Join(w.t.TempDir(), "sallyport.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		w.t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, set := range sets {
		config, err := serve.Load(file, nil, serve.OfDeployment...)
		if err != nil {
			w.t.Fatal(err)
		}
		run := &review.Run{Given: set.all, Notes: io.Discard, Namespace: set.namespace, Validation: "strict"}
		served.Review(run, config)
		if set.webhooks, err = run.Prepared(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		for _, webhook := range set.webhooks {
			served, err := wire.NewAdmission(webhook, wire.AdmissionOptions{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				w.t.Fatal(err)
			}
			mux.HandleFunc("/"+set.namespace+"/"+webhook.Name, func(out http.ResponseWriter, in *http.Request) {
				body, err := io.ReadAll(in.Body)
				if err == nil {
					var reviewed *wire.Reviewed
					if reviewed, err = served.Review(in.Context(), body); err == nil {
						out.Header().Set("Content-Type", "application/json")
						_, _ = out.Write(reviewed.Answer)
						return
					}
				}
				http.Error(out, err.Error(), http.StatusInternalServerError)
			})
		}
	}
	mux.HandleFunc("/sentinel/", func(out http.ResponseWriter, in *http.Request) {
		var asked admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&asked); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		asked.Response = &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: true, Warnings: []string{in.URL.Path}}
		asked.Request = nil
		_ = json.NewEncoder(out).Encode(asked)
	})
	https := httptest.NewTLSServer(mux)
	w.t.Cleanup(https.Close)
	w.address, w.ca = https.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw})
	for _, set := range sets {
		mutating := &admissionregistrationv1.MutatingWebhookConfiguration{TypeMeta: registeredKind("MutatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: set.namespace}}
		validating := &admissionregistrationv1.ValidatingWebhookConfiguration{TypeMeta: registeredKind("ValidatingWebhookConfiguration"), ObjectMeta: metav1.ObjectMeta{Name: set.namespace}}
		for _, webhook := range set.webhooks {
			client := w.clientConfig("/" + set.namespace + "/" + webhook.Name)
			webhook = webhook.Defaulted()
			none := admissionregistrationv1.SideEffectClassNone
			selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: set.namespace}}
			if webhook.Type == admission.TypeMutating {
				mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
					Name: webhook.Name, ClientConfig: client, Rules: webhook.Rules, NamespaceSelector: selector, MatchConditions: webhook.MatchConditions, SideEffects: &none,
					AdmissionReviewVersions: []string{"v1"}, ReinvocationPolicy: &webhook.ReinvocationPolicy,
				})
			} else {
				validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
					Name: webhook.Name, ClientConfig: client, Rules: webhook.Rules, NamespaceSelector: selector, MatchConditions: webhook.MatchConditions, SideEffects: &none,
					AdmissionReviewVersions: []string{"v1"},
				})
			}
		}
		for _, configuration := range []any{mutating, validating} {
			raw, err := json.Marshal(configuration)
			if err != nil {
				w.t.Fatal(err)
			}
			objects, err := manifest.FromJSON(raw)
			if err != nil {
				w.t.Fatal(err)
			}
			set.all, set.objects = append(set.all, objects...), append(set.objects, objects...)
		}
	}
}

func registeredKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: registered.String(), Kind: kind}
}

func (w *world) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	url := w.address + path
	return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: w.ca}
}

// create creates objects. What is in no namespace is deleted in the end.
func (w *world) create(objects ...*manifest.Object) {
	w.t.Helper()
	known, err := resources.OfFiles(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		resource := known.OfKind(o.GVK())
		client := dynamic.ResourceInterface(w.client.Resource(resource.GroupVersionResource))
		if resource.Namespaced {
			client = w.client.Resource(resource.GroupVersionResource).Namespace(o.Namespace)
		}
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(o.Raw, u); err != nil {
			w.t.Fatal(err)
		}
		if o.Kind == "Namespace" {
			if _, err := client.Patch(w.t.Context(), o.Name, "application/merge-patch+json", o.Raw, metav1.PatchOptions{}); err != nil {
				w.t.Fatal(err)
			}
			continue
		}
		if _, err := client.Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
			w.t.Fatalf("%s: %v\n%s", o.Title(), err, o.Raw)
		}
		if !resource.Namespaced {
			w.t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(w.t.Context()), o.Name, metav1.DeleteOptions{}) })
		}
	}
}

// awaitPolicies waits until the API server evaluates what was created before: policies of both
// kinds and webhooks that are created last.
func (w *world) awaitPolicies(namespace string) {
	w.t.Helper()
	selector := "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " + namespace + "}}"
	rules := "[{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]"
	text := fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  reinvocationPolicy: Never
  matchConstraints: {%[2]s, resourceRules: %[3]s}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"sentinel": "x"}}}'}}]
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {%[2]s, resourceRules: %[3]s}
  validations: [{expression: '!has(object.metadata.labels.sentinel) && %[6]t', message: sentinel}]
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s, validationActions: [Warn]}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks: [{name: m.sentinel.io, clientConfig: {url: "%[4]s/sentinel/m", caBundle: %[5]s}, rules: %[3]s, %[2]s, sideEffects: None, admissionReviewVersions: [v1]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks: [{name: v.sentinel.io, clientConfig: {url: "%[4]s/sentinel/v", caBundle: %[5]s}, rules: %[3]s, %[2]s, sideEffects: None, admissionReviewVersions: [v1]}]
`, namespace, selector, rules, w.address, base64.StdEncoding.EncodeToString(w.ca), w.mutates)
	objects, _, err := manifest.Parse("sentinel", []byte(text))
	if err != nil {
		w.t.Fatal(err)
	}
	if !w.mutates {
		objects = slices.DeleteFunc(objects, func(o *manifest.Object) bool { return strings.HasPrefix(o.Kind, "MutatingAdmissionPolicy") })
	}
	w.create(objects...)
	config, warnings := rest.CopyConfig(w.config), &warningsOf{}
	config.WarningHandler = warnings
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	probe := unstructuredOf(w.t, w.pod(&policySet{namespace: namespace}, 0))
	lab.Eventually(w.t.Context(), w.t, time.Minute, "the API server evaluates all policies", func(ctx context.Context) (bool, error) {
		if _, err := client.Resource(pods).Namespace(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{"All"}}); err != nil {
			return false, nil //nolint:nilerr // it is not ready
		}
		all := strings.Join(warnings.take(), "\n")
		return strings.Contains(all, "ValidatingAdmissionPolicy") && strings.Contains(all, "/sentinel/m") && strings.Contains(all, "/sentinel/v"), nil
	})
}

func unstructuredOf(t *testing.T, object any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// whoAmI returns the user of a client.
func whoAmI(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.UserInfo
}
