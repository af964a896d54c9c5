// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestPodDefaultsUnderControl has an API server of its own: what it is about counts in
// the whole cluster.
func TestPodDefaultsUnderControl(t *testing.T) {
	t.Parallel()
	e := newEnv(t, sallyporttest.WithAPIServerFlag("disable-admission-plugins"))
	for _, test := range []struct {
		name string
		run  func(*testing.T, *env)
	}{
		{"no PodDefault gives more than its author has", testEscalations},
		{"what authors are asked can be a warning or nothing", testAuthorModes},
		{"exemptions are for who has the verb, and end", testExemptions},
		{"exemptions are for who has the verb, also without a server", testExemptionsWithoutServer},
		{"statuses say what becomes of PodDefaults", testStatuses},
		{"kubectl sallyport explains, shows and previews", testPlugin},
		{"no verb leads round the check of authors", testWaysRound},
		{"the owner of a namespace forges no history of the cluster", testForgedRevisions},
		{"whoever may write revisions alone decides nothing", testRevisionAuthors},
		{"revisions that are not what they say are told, and stop nothing", testSpoiledRevisions},
		{"statuses do nothing", testStatusesDoNothing},
		{"what may be written can be rolled out, whatever its size", testLargestRollout},
		{"what may be written makes pods that may be created", testWritten},
		{"the pods that an outage has left un-injected are listed, and no others", testMissed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, e) })
	}
}

// user is a client of another user.
func (e *env) user(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: e.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// grant lets a user do these things in a namespace, or everywhere if it is empty.
func (e *env) grant(t *testing.T, namespace, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
	if namespace == "" {
		e.create(t, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
		e.create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}})
		return
	}
	e.create(t, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	e.create(t, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}})
}

var (
	writePods       = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "get"}}
	writeDefaults   = rbacv1.PolicyRule{APIGroups: []string{kubeflowv1alpha1.GroupName}, Resources: []string{"poddefaults"}, Verbs: []string{"create", "get", "update", "patch"}}
	writeEverywhere = rbacv1.PolicyRule{APIGroups: []string{sallyportv1alpha1.GroupName}, Resources: []string{"clusterpoddefaults"}, Verbs: []string{"create", "get"}}
)

// The users of testEscalations: a writer may write PodDefaults and no pods, a member may
// write both in his namespace, and a planner ClusterPodDefaults and pods of one
// namespace.
const (
	writer  = "writer"
	member  = "member"
	planner = "planner"
)

// An escalation is an attempt to get more by a PodDefault than one has.
type escalation struct {
	what string
	user string
	spec string // with the selector
	// write and pod are parts of the message by which it is stopped: when it is written, or
	// when a pod that it selects is created by somebody else.
	write, pod string
	// first is the spec before: the attempt is an update.
	first string
	// labels is how many the selector asks for, beside the spec.
	labels int
}

// byRole is what whoever may not create pods is told.
const byRole = "may not create pods in the namespace"

// escalations are what has been thought of. What a member can do with a pod of his own,
// he may do with a PodDefault: those rows are about what a pod could not have.
var escalations = []escalation{
	{what: "another's service account", user: writer, spec: "serviceAccountName: admin", write: byRole},
	{what: "a Secret as a variable", user: writer, spec: "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]", write: byRole},
	{what: "a Secret as all variables", user: writer, spec: "envFrom: [{secretRef: {name: s}}]", write: byRole},
	{what: "a Secret as a volume", user: writer, spec: "volumes: [{name: s, secret: {secretName: s}}], volumeMounts: [{name: s, mountPath: /s}]", write: byRole},
	{what: "a token of the service account", user: writer, spec: "volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}]", write: byRole},
	{what: "a command in the pods of others", user: writer, spec: "command: [sh, -c, steal]", write: byRole},
	{what: "a sidecar beside the containers of others", user: writer, spec: "sidecars: [{name: spy, image: spy}]", write: byRole},
	{what: "an image that is pulled with another's secret", user: writer, spec: "imagePullSecrets: [{name: s}]", write: byRole},
	{what: "a harmless object that is changed later", user: writer, first: "desc: harmless", spec: "serviceAccountName: admin", write: byRole},
	{what: "an object without a spec that gets one", user: writer, first: "-", spec: "command: [sh]", write: byRole},
	{what: "a selector that is widened", user: writer, first: "env: [{name: A, value: b}]", spec: "-selector: {}, env: [{name: A, value: b}]", write: byRole},
	{what: "all namespaces", user: planner, spec: "env: [{name: A, value: b}]", write: "may not create pods in every namespace"},

	{what: "a directory of the node", user: member, spec: "volumes: [{name: h, hostPath: {path: /}}], volumeMounts: [{name: h, mountPath: /h}]", pod: "hostPath volumes"},
	{what: "a privileged sidecar", user: member, spec: "sidecars: [{name: x, image: x, securityContext: {privileged: true}}]", pod: "privileged"},
	{what: "a privileged init container", user: member, spec: "initContainers: [{name: x, image: x, securityContext: {privileged: true}}]", pod: "privileged"},
	{what: "a capability", user: member, spec: "sidecars: [{name: x, image: x, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]", pod: "non-default capabilities"},
	{what: "a port of the node", user: member, spec: "sidecars: [{name: x, image: x, ports: [{containerPort: 80, hostPort: 80}]}]", pod: "hostPort"},
	{what: "no seccomp", user: member, spec: "sidecars: [{name: x, image: x, securityContext: {seccompProfile: {type: Unconfined}}}]", pod: "seccompProfile"},
	{what: "another SELinux type", user: member, spec: "sidecars: [{name: x, image: x, securityContext: {seLinuxOptions: {type: spc_t}}}]", pod: "seLinuxOptions"},
	{what: "no AppArmor", user: member, spec: "annotations: {container.apparmor.security.beta.kubernetes.io/main: unconfined}", pod: "forbidden AppArmor profile"},
	{what: "the host's processes on Windows", user: member, spec: "sidecars: [{name: x, image: x, securityContext: {windowsOptions: {hostProcess: true}}}]", pod: "hostProcess"},

	{what: "the containers of others, privileged", user: member, spec: "containerSecurityContext: {privileged: true}", pod: "privileged"},
	{what: "a kernel parameter", user: member, spec: "podSecurityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}", pod: "forbidden sysctls"},
	{what: "a port of the node for the containers of others", user: member, spec: "ports: [{containerPort: 80, hostPort: 80}]", pod: "hostPort"},

	{what: "the network of the node", user: member, spec: "hostNetwork: true", write: `unknown field "spec.hostNetwork"`},
	{what: "the processes of the node", user: member, spec: "hostPID: true", write: `unknown field "spec.hostPID"`},
	{what: "a node by its name", user: member, spec: "nodeName: control-plane-0", write: `unknown field "spec.nodeName"`},
	{what: "nodes of the control plane", user: member, spec: `nodeSelector: {node-role.kubernetes.io/control-plane: ""}`, write: "spec.nodeSelector[node-role.kubernetes.io/control-plane]: Forbidden"},
	{
		what: "nodes of the control plane by affinity", user: member,
		spec:  "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}]}}}",
		write: "chooses nodes that run the cluster",
	},
	{
		what: "a node of the control plane by its name", user: member,
		spec:  "nodeSelector: {kubernetes.io/hostname: control-plane-0}, tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]",
		write: "chooses nodes by name and tolerates the taints",
	},
	{
		what: "a node of the control plane by its name and every taint", user: member,
		spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [control-plane-0]}]}]}}}, " +
			"tolerations: [{operator: Exists}]",
		write: "chooses nodes by name and tolerates the taints",
	},
	{what: "pods that the kubelet does not run", user: member, spec: "annotations: {kubernetes.io/config.mirror: x}", write: "only the kubelet says so"},
	{what: "a mark that was not made", user: member, spec: "annotations: {sallyport.io/poddefaults: all}", write: "are reserved"},
	{what: "pods that exclude themselves", user: member, spec: `annotations: {poddefault.admission.kubeflow.org/exclude: "true"}`, write: "it is reserved for the webhook"},
	{what: "a mark in other letters", user: member, spec: "annotations: {SALLYPORT.io/clusterpoddefault-x: '1'}", write: "are reserved"},
	{what: "pods of another controller", user: member, spec: "labels: {batch.kubernetes.io/controller-uid: x}", write: "a controller knows its pods by it"},
	{what: "pods that a ReplicaSet takes for its own", user: member, spec: "labels: {pod-template-hash: x}", write: "a controller knows its pods by it"},
	{what: "the Secret that a label names", user: member, spec: "substitute: true, volumes: [{name: s, secret: {secretName: \"${pod.labels['s']}\"}}]", write: "spec.volumes[0].secret.secretName: Forbidden"},
	{what: "the service account that a label names", user: member, spec: "substitute: true, serviceAccountName: \"${pod.labels['s']}\"", write: "spec.serviceAccountName: Invalid value"},
	{what: "the image that a label names", user: member, spec: "substitute: true, sidecars: [{name: x, image: \"${pod.labels['i']}\"}]", write: "spec.sidecars[0].image: Forbidden: placeholders are replaced"},
	{what: "a place in the container that a label names", user: member, spec: "substitute: true, volumes: [{name: e, emptyDir: {}}], volumeMounts: [{name: e, mountPath: \"/${pod.labels['p']}\"}]", write: "spec.volumeMounts[0].mountPath: Forbidden: placeholders are replaced"},
	{what: "a path out of the volume", user: member, spec: "volumes: [{name: e, emptyDir: {}}], volumeMounts: [{name: e, mountPath: /e, subPath: ../..}]", write: "must not contain '..'"},
	{what: "a selector that costs everybody", user: member, spec: "desc: dear", labels: 20_000, write: "spec.selector.matchLabels: Too many"},
	{what: "a selector larger than a request may be", user: member, spec: "desc: dearer", labels: 200_000, write: "too large"},
}

// asObject is the object of an attempt.
func (x escalation) asObject(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kubeflowv1alpha1.Kind(kubeflowv1alpha1.PodDefaultKind))
	if x.user == planner {
		o.SetGroupVersionKind(sallyportv1alpha1.Kind(sallyportv1alpha1.ClusterPodDefaultKind))
	} else {
		o.SetNamespace(namespace)
	}
	o.SetName(name)
	text := "{selector: {matchLabels: {" + name + ": 'true'}}, " + spec + "}"
	switch {
	case spec == "-":
		return o
	case strings.HasPrefix(spec, "-"):
		text = "{" + spec[1:] + "}"
	}
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	if x.labels > 0 {
		many := map[string]any{}
		for i := range x.labels {
			many[fmt.Sprintf("label-%d", i)] = "x"
		}
		parsed["selector"] = map[string]any{"matchLabels": many}
	}
	o.Object["spec"] = parsed
	return o
}

func testEscalations(t *testing.T, e *env) {
	const name = "escalations"
	e.namespace(t, name)
	labelled := &corev1.Namespace{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Name: name}, labelled); err != nil {
		t.Fatal(err)
	}
	labelled.Labels["pod-security.kubernetes.io/enforce"] = "baseline"
	if err := e.client.Update(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	e.grant(t, name, writer, writeDefaults)
	e.grant(t, name, member, writeDefaults, writePods)
	e.grant(t, name, planner, writePods)
	e.grant(t, "", planner, writeEverywhere)
	e.serve(t, name)
	e.awaitJudge(t, name)
	if len(escalations) < 30 {
		t.Errorf("only %d attempts", len(escalations))
	}
	users := map[string]client.Client{writer: e.user(t, writer), member: e.user(t, member), planner: e.user(t, planner)}
	for i, x := range escalations {
		t.Run(x.what, func(t *testing.T) {
			object := fmt.Sprintf("attempt-%02d", i)
			user := users[x.user]
			attempt := x.asObject(t, name, object, x.spec)
			var err error
			if x.first != "" {
				before := x.asObject(t, name, object, x.first)
				if err := e.client.Create(t.Context(), before); err != nil { // by somebody who may
					t.Fatal(err)
				}
				attempt.SetResourceVersion(before.GetResourceVersion())
				err = user.Update(t.Context(), attempt, client.FieldValidation(metav1.FieldValidationStrict))
			} else {
				err = user.Create(t.Context(), attempt, client.FieldValidation(metav1.FieldValidationStrict))
			}
			if x.write != "" {
				if err == nil || !strings.Contains(err.Error(), x.write) {
					t.Errorf("writing it: %.300v; want %q", err, x.write)
				}
				return
			}
			if err != nil {
				t.Fatalf("writing it: %v", err)
			}
			// Somebody else's pod, once the server knows of the object.
			victim := simplePod(name, "victim-"+object)
			victim.Labels = map[string]string{object: "true"}
			var denial error
			eventually(t, "the pod to be refused", func(ctx context.Context) (bool, error) {
				denial = e.client.Create(ctx, victim.DeepCopy(), client.DryRunAll)
				return denial != nil, nil
			})
			if !apierrors.IsForbidden(denial) && !apierrors.IsInvalid(denial) || !strings.Contains(denial.Error(), x.pod) {
				t.Errorf("creating a pod: %v; want %q", denial, x.pod)
			}
		})
	}
}

func testAuthorModes(t *testing.T, e *env) {
	const name = "authors"
	e.namespace(t, name)
	e.grant(t, name, "author", writeDefaults)
	user := e.user(t, "author")
	t.Run("enforce refuses, and tells how to find out", func(t *testing.T) {
		e.serve(t, name)
		e.awaitJudge(t, name)
		err := user.Create(t.Context(), envPodDefault(name, "refused"))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "kubectl auth can-i create pods -n authors") {
			t.Errorf("%v", err)
		}
		mine := envPodDefault(name, "mine")
		e.create(t, mine)
		mine.Labels = map[string]string{"team": "a"}
		if err := user.Update(t.Context(), mine); err != nil {
			t.Errorf("metadata cannot be changed: %v", err)
		}
		mine.Spec.Env[0].Value = "2"
		if err := user.Update(t.Context(), mine); !apierrors.IsForbidden(err) {
			t.Errorf("the spec can be changed: %v", err)
		}
	})
	t.Run("warn admits and says so", func(t *testing.T) {
		e.serve(t, name, lab.Set("webhooks.poddefault.authorizeAuthors", `"warn"`))
		e.awaitJudge(t, name)
		warnings := kubectlAs(t, e, "author", "apply", "-f", "-", "-n", name)(envYAML("warned"))
		if !strings.Contains(warnings, `Warning: PodDefault authors/warned: it adds to pods, and "author" may not create pods`) {
			t.Errorf("kubectl says %q", warnings)
		}
	})
	t.Run("off asks nobody, and still judges", func(t *testing.T) {
		e.serve(t, name, lab.Set("webhooks.poddefault.authorizeAuthors", `"off"`))
		e.awaitJudge(t, name)
		if err := user.Create(t.Context(), envPodDefault(name, "free")); err != nil {
			t.Errorf("%v", err)
		}
		twice := envPodDefault(name, "twice")
		twice.Spec.Env = append(twice.Spec.Env, corev1.EnvVar{Name: twice.Spec.Env[0].Name, Value: "2"})
		if err := user.Create(t.Context(), twice); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.env[1].name: Duplicate value") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a server that is away keeps specs as they are, and nothing else", func(t *testing.T) {
		s := e.serve(t, name)
		e.awaitJudge(t, name)
		s.Kill()
		existing := &kubeflowv1alpha1.PodDefault{}
		if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "free"}, existing); err != nil {
			t.Fatal(err)
		}
		existing.Labels = map[string]string{"a": "b"}
		if err := user.Update(t.Context(), existing); err != nil {
			t.Errorf("metadata cannot be changed: %v", err)
		}
		existing.Spec.Desc = "changed"
		if err := e.client.Update(t.Context(), existing); err == nil {
			t.Error("a spec was changed without being judged")
		}
		if err := e.client.Delete(t.Context(), existing); err != nil {
			t.Errorf("it cannot be deleted: %v", err)
		}
	})
}

// awaitJudge waits until the API server asks about what is written into PodDefaults: it
// hears of that configuration by itself, and may do so after that of pods.
func (e *env) awaitJudge(t *testing.T, namespace string) {
	t.Helper()
	twice := envPodDefault(namespace, "judged")
	twice.Spec.Env = append(twice.Spec.Env, corev1.EnvVar{Name: twice.Spec.Env[0].Name, Value: "2"})
	eventually(t, "PodDefaults to be judged", func(ctx context.Context) (bool, error) {
		return apierrors.IsInvalid(e.client.Create(ctx, twice.DeepCopy(), client.DryRunAll)), nil
	})
}

func envYAML(name string) string {
	return "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: " + name + "}\nspec: {selector: {matchLabels: {" + name + ": 'true'}}, env: [{name: A, value: b}]}\n"
}

// kubectlAs runs kubectl as a user and returns what it prints, warnings included.
func kubectlAs(t *testing.T, e *env, user string, args ...string) func(stdin string) string {
	t.Helper()
	return func(stdin string) string {
		t.Helper()
		cmd := exec.Command(kubectl(), append([]string{"--kubeconfig", e.kubeconfig, "--as", user}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl: %v\n%s", err, out)
		}
		return string(out)
	}
}
