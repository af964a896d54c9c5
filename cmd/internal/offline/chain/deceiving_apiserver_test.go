// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	plainPod   = "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {app: x}}, spec: {containers: [{name: c, image: i}]}}"
	namelessPo = "{apiVersion: v1, kind: Pod, metadata: {generateName: p-}, spec: {containers: [{name: c, image: i}]}}"
	deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"
	service    = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}"
	secret     = "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: eA==}, stringData: {a: other, b: more}}"
	job        = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}"
)

// deceiving are policies that read what the API server sets before it evaluates them. Those that are decided
// must be, as the API server decides.
var deceiving = []struct {
	name, object, expression string
	mutates, decided         bool
}{
	{"priority", plainPod, "has(object.spec.priority) && object.spec.priority > 5", false, false},
	{"no priority", plainPod, "!has(object.spec.priority)", false, false},
	{"preemption policy", plainPod, "!has(object.spec.preemptionPolicy)", false, false},
	{"a toleration", plainPod, "!has(object.spec.tolerations)", false, false},
	{"tolerations of everything", plainPod, "!has(object.spec.tolerations) || object.spec.tolerations.all(t, t.operator != 'Exists')", false, false},
	{"the service account", plainPod, "has(object.spec.serviceAccountName) && object.spec.serviceAccountName != 'default'", false, false},
	{"no service account", plainPod, "!has(object.spec.serviceAccountName)", false, false},
	{"the old name of the service account", plainPod, "!has(object.spec.serviceAccount)", false, false},
	{"the UID", plainPod, "!has(object.metadata.uid)", false, false},
	{"an index of the UID", plainPod, "!('uid' in object.metadata)", false, false},
	{"the creation time", plainPod, "!has(object.metadata.creationTimestamp) || object.metadata.creationTimestamp == null", false, false},
	{"the generation", plainPod, "!has(object.metadata.generation)", false, false},
	{"managed fields", plainPod, "!has(object.metadata.managedFields)", false, false},
	{"the manager", plainPod, "object.?metadata.?managedFields.orValue([]).all(m, m.manager == 'x')", false, false},
	{"a generated name", namelessPo, "!has(object.metadata.name) || object.metadata.name == ''", false, false},
	{"the prefix of a generated name", namelessPo, "has(object.metadata.generateName) && object.metadata.generateName == 'p-'", false, true},
	{"the status", plainPod, "!has(object.status) || !has(object.status.phase)", false, false},
	{"the quality of service", plainPod, "!has(object.status.qosClass) || object.status.qosClass == 'Guaranteed'", false, false},
	{"by a variable", plainPod, "variables.priority == 7", false, false},
	{"the whole pod", plainPod, "object.spec == object.spec && string(object.spec.priority) == 'x'", false, false},
	{"the name of the request", namelessPo, "request.name != ''", false, false},
	{"no name of the request", namelessPo, "request.name == ''", false, false},
	{"data of a Secret", secret, "has(object.data) && object.data.all(k, v, k in ['a', 'b'] && v != 'eA==')", false, true},
	{"no strings of a Secret", secret, "!has(object.stringData)", false, true},
	{"no data of a Secret", secret, "!has(object.data)", false, true},
	{"the finalizer of the namespace", plainPod, "'kubernetes' in namespaceObject.spec.finalizers", false, true},
	{"another finalizer of the namespace", plainPod, "'other' in namespaceObject.spec.finalizers", false, true},
	{"the field manager", plainPod, "has(request.options.fieldManager) && request.options.fieldManager == 'x'", false, false},
	{"no host paths", plainPod, "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))", false, true},
	{"no projected volumes", plainPod, "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.projected))", false, false},
	{"no volumes", plainPod, "!has(object.spec.volumes)", false, false},
	{"no mounts", plainPod, "object.spec.containers.all(c, !has(c.volumeMounts))", false, false},
	{"images", plainPod, "object.spec.containers.all(c, c.image == 'i' && c.imagePullPolicy == 'Always')", false, true},
	{"a denial", plainPod, "object.metadata.labels.app == 'y'", false, true},
	{"a denial beside an unknown field", plainPod, "object.metadata.labels.app == 'y' || false", false, true},
	{"an authenticated user", plainPod, "'system:authenticated' in request.userInfo.groups", false, true},
	{"a dry run", plainPod, "!request.dryRun", false, true},
	{"the options of a dry run", plainPod, "!has(request.options.dryRun)", false, true},
	{"replicas of a Deployment", deployment, "!has(object.spec.replicas)", false, true},
	{"the strategy of a Deployment", deployment, "!has(object.spec.strategy) || !has(object.spec.strategy.type)", false, true},
	{"the deadline of a Deployment", deployment, "!has(object.spec.progressDeadlineSeconds)", false, true},
	{"the template of a Deployment", deployment, "!has(object.spec.template.spec.restartPolicy)", false, true},
	{"host paths of a Deployment", deployment, "!has(object.spec.template.spec.volumes)", false, true},
	{"the generation of a Deployment", deployment, "!has(object.metadata.generation)", false, false},
	{"the type of a Service", service, "!has(object.spec.type) || object.spec.type != 'ClusterIP'", false, true},
	{"the target of a Service", service, "object.spec.ports.all(p, !has(p.targetPort))", false, true},
	{"the protocol of a Service", service, "object.spec.ports.all(p, !has(p.protocol))", false, true},
	{"the address of a Service", service, "!has(object.spec.clusterIP)", false, false},
	{"the families of a Service", service, "!has(object.spec.ipFamilies)", false, false},
	{"the completions of a Job", job, "!has(object.spec.completions)", false, false},
	{"the selector of a Job", job, "!has(object.spec.selector)", false, false},
	{"an invalid label", plainPod, "[JSONPatch{op: 'add', path: '/metadata/labels/a', value: 'not valid!'}]", true, true},
	{"a valid label", plainPod, "[JSONPatch{op: 'add', path: '/metadata/labels/a', value: 'valid'}]", true, true},
	{"an invalid restart policy", plainPod, "[JSONPatch{op: 'add', path: '/spec/restartPolicy', value: 'Sometimes'}]", true, false},
	{"an invalid grace period of nothing", plainPod, "[JSONPatch{op: 'add', path: '/spec/activeDeadlineSeconds', value: 0}]", true, false},
	{"two containers of one name", plainPod, "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'c', image: 'i'}}]", true, false},
	{"replicas below zero", deployment, "[JSONPatch{op: 'replace', path: '/spec/replicas', value: -1}]", true, false},
	{"a mutation by priority", plainPod, "object.spec.priority == 0 ? [JSONPatch{op: 'add', path: '/metadata/labels/a', value: 'not valid!'}] : []", true, false},
	{"strings of a Secret that are set", secret, "[JSONPatch{op: 'add', path: '/stringData', value: {'password': 'not valid!'}}]", true, false},
	{"a mutation by the UID", plainPod, "has(object.metadata.uid) ? [JSONPatch{op: 'add', path: '/metadata/labels/a', value: 'not valid!'}] : []", true, true},
}

func deceivingPolicy(i int, namespace string) string {
	c := deceiving[i]
	kind, rest := "Validating", fmt.Sprintf("  variables: [{name: priority, expression: object.spec.priority}]\n  validations: [{expression: %q}]\n", c.expression)
	actions := ", validationActions: [Deny]"
	if c.mutates {
		kind, rest, actions = "Mutating", fmt.Sprintf("  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: %q}}]\n", c.expression), ""
	}
	return fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: %[1]sAdmissionPolicy\nmetadata: {name: deceiving-%[2]d}\nspec:\n  matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}, "+
		"resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: [CREATE], resources: [pods, deployments, services, jobs, configmaps, secrets]}]}\n%[4]s---\n"+
		"{apiVersion: admissionregistration.k8s.io/v1, kind: %[1]sAdmissionPolicyBinding, metadata: {name: deceiving-%[2]d}, spec: {policyName: deceiving-%[2]d%[5]s}}\n", kind, i, namespace, rest, actions)
}

// TestAPolicyThatReadsWhatTheAPIServerSetsIsNeverWronglyAllowedOnARealAPIServer starts its own API server: it
// has the plugin ServiceAccount.
func TestAPolicyThatReadsWhatTheAPIServerSetsIsNeverWronglyAllowedOnARealAPIServer(t *testing.T) {
	if lab.KubernetesMinor(t) < 36 {
		return // mutating policies of version v1
	}
	plane, err := lab.StartControlPlane(t.Context(), t.TempDir(), lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS")})
	t.Cleanup(plane.Kill)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, config: config, client: client, rand: rand.New(rand.NewPCG(1, 0)), mutates: true} // to be repeatable
	w.serve(nil)
	namespaces := make([]string, len(deceiving)+1)
	for i := range namespaces {
		namespaces[i] = lab.Namespace(t, config)
		if _, err := clients.CoreV1().ServiceAccounts(namespaces[i]).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(text string) []*manifest.Object {
		objects, _, err := manifest.Parse("with.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return objects
	}
	policies := make([][]*manifest.Object, len(deceiving))
	for i := range deceiving {
		policies[i] = parse(deceivingPolicy(i, namespaces[i]))
		w.create(policies[i]...)
	}
	w.awaitPolicies(namespaces[len(deceiving)])

	inCluster, err := cluster.New(config, "default")
	if err != nil {
		t.Fatal(err)
	}
	discovered, err := resources.OfCluster(inCluster.Client.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	unknown := 0
	for i, c := range deceiving {
		about := parse(c.object)[0]
		objects := append(parse("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespaces[i]+"}}"), policies[i]...)
		offline := run(t, objects, c.object, func(r *chain.Run) { r.Request.Namespace = namespaces[i] })
		resource := offline.Request.Resource
		got, err := offline.Do(t.Context())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		body := &unstructured.Unstructured{}
		if err := about.Decode(&body.Object); err != nil {
			t.Fatal(err)
		}
		created, refused := client.Resource(schema.GroupVersionResource(resource)).Namespace(namespaces[i]).Create(t.Context(), body, metav1.CreateOptions{FieldManager: "kubectl"})
		if refused == nil {
			if err := client.Resource(schema.GroupVersionResource(resource)).Namespace(namespaces[i]).Delete(t.Context(), created.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
		switch isUnknown := len(got.Unknown) > 0; {
		case isUnknown && c.decided:
			t.Errorf("%s: unknown: %q; the API server: %v", c.name, got.Unknown, refused)
		case isUnknown:
			unknown++
			if got.ErrUnknown() == nil || !strings.Contains(strings.Join(got.Unknown, "\n"), "deceiving-") {
				t.Errorf("%s: %q", c.name, got.Unknown)
			}
		case (got.Denied == nil) != (refused == nil):
			t.Errorf("%s: denied here: %+v, by the API server: %v", c.name, got.Denied, refused)
		}
		readsManager := strings.Contains(c.expression, "m.manager") || strings.Contains(c.expression, "fieldManager")
		for _, manager := range []string{"", "kubectl"} {
			if manager != "" && !readsManager {
				continue
			}
			live := &chain.Run{Resources: discovered, Request: offline.Request.DeepCopy(), FieldManager: manager}
			live.Request.UserInfo.Username = ""
			if err := live.ReadCluster(t.Context(), inCluster); err != nil {
				t.Fatal(err)
			}
			answer, err := live.Do(t.Context())
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			// Without the field manager, a dry run is another request.
			asked := manager != "" || !readsManager
			if asked != (len(answer.Unknown) == 0) || asked && (answer.Denied == nil) != (refused == nil) {
				t.Errorf("%s: with the cluster, by %q: unknown %q, denied %+v; the API server: %v", c.name, manager, answer.Unknown, answer.Denied, refused)
			}
		}
	}
	t.Logf("%d of %d policies are unknown without an API server", unknown, len(deceiving))
	missing := &chain.Run{Resources: discovered, Request: run(t, nil, plainPod, nil).Request}
	missing.Request.Namespace, missing.Request.UserInfo.Username = "missing", ""
	if err := missing.ReadCluster(t.Context(), inCluster); err != nil {
		t.Fatal(err)
	}
	if got, err := missing.Do(t.Context()); err != nil || got.Denied == nil || got.Denied.Code != 404 {
		t.Errorf("a namespace that does not exist: %v, %+v", err, got)
	}
}

// TestADryRunIsAnsweredAsOne holds that a policy sees whether the request is a dry run.
func TestADryRunIsAnsweredAsOne(t *testing.T) {
	only := team + validating("v", "{expression: request.dryRun}", "", "")
	if got, err := evaluate(t, only, nil); err != nil || got.Denied == nil {
		t.Errorf("a request: %v, %+v", err, got)
	}
	if got, err := evaluate(t, only, func(r *chain.Run) { r.Request.DryRun = new(true) }); err != nil || got.Denied != nil {
		t.Errorf("a dry run: %v, %+v", err, got)
	}
}

func TestWhetherANamespaceExistsIsNotKnownFromFilesWithoutIt(t *testing.T) {
	got, err := evaluate(t, validating("v", "{expression: 'true'}", "", ""), nil)
	if err != nil || got.ErrUnknown() == nil || !strings.Contains(got.ErrUnknown().Error(), "namespace team-a is not among the objects") {
		t.Errorf("%v, %+v", err, got)
	}
	ending := "{apiVersion: v1, kind: Namespace, metadata: {name: team-a}, status: {phase: Terminating}}"
	if got, err := evaluate(t, ending, nil); err != nil || got.Denied == nil || !strings.Contains(got.Denied.Message, "because it is being terminated") {
		t.Errorf("%v, %+v", err, got)
	}
}

func TestAKnownDenialIsNoLessOneBesideWhatIsNotKnown(t *testing.T) {
	got, err := evaluate(t, team+validating("v", "{expression: object.spec.priority == 0}, {expression: 'false', message: never}", "", ""), nil)
	if err != nil || got.Denied == nil || got.ErrUnknown() != nil {
		t.Errorf("%v, %+v", err, got)
	}
	got, err = evaluate(t, team+webhook("Validating", "v.example.com", "  sideEffects: None\n  matchConditions: [{name: c, expression: has(object.spec.priority)}]\n"), nil)
	if err != nil || got.ErrUnknown() == nil || !strings.Contains(got.ErrUnknown().Error(), "object.spec.priority") {
		t.Errorf("a match condition of a webhook: %v, %+v", err, got)
	}
	got, err = evaluate(t, team+validating("v", "{expression: 'false'}", "  matchConditions: [{name: c, expression: has(object.spec.priority)}]\n", ""), nil)
	if err != nil || got.Denied != nil || got.ErrUnknown() == nil {
		t.Errorf("a match condition of a policy: %v, %+v", err, got)
	}
}

// TestLimitsThatDependOnTheOrderOfLimitRangesAreNotKnown holds that an order that happens to fit is no answer.
func TestLimitsThatDependOnTheOrderOfLimitRangesAreNotKnown(t *testing.T) {
	limits := func(name, item string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: LimitRange, metadata: {name: %s, namespace: team-a}, spec: {limits: [{type: Container, %s}]}}\n---\n", name, item)
	}
	first := limits("a", "default: {memory: 1Gi}, max: {memory: 2Gi}")
	if got, err := evaluate(t, team+first, nil); err != nil || got.Denied != nil || len(got.Unknown) > 0 {
		t.Errorf("one: %v, %+v", err, got)
	}
	got, err := evaluate(t, team+first+limits("b", "default: {memory: 3Gi}"), nil)
	if err != nil || got.Denied != nil || got.ErrUnknown() == nil || !strings.Contains(got.ErrUnknown().Error(), "the order in which the API server applies the LimitRanges") {
		t.Errorf("two: %v, %+v", err, got)
	}
	other := first + limits("b", "default: {cpu: 1}")
	if got, err := evaluate(t, team+other, nil); err != nil || got.Denied != nil || len(got.Unknown) > 0 {
		t.Errorf("two of different resources: %v, %+v", err, got)
	}
	got, err = evaluate(t, team+other+validating("v", "{expression: \"!object.metadata.annotations['kubernetes.io/limit-ranger'].contains('cpu')\"}", "", ""), nil)
	if err != nil || got.Denied != nil || got.ErrUnknown() == nil {
		t.Errorf("the annotation: %v, %+v", err, got)
	}
	got, err = evaluate(t, team+limits("a", "max: {memory: 2Gi}")+limits("b", "min: {memory: 3Gi}"), nil)
	if err != nil || got.Denied == nil && got.ErrUnknown() == nil {
		t.Errorf("what cannot be: %v, %+v", err, got)
	}
}
