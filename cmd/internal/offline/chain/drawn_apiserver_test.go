// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// policiesEach is how many policies are drawn, `times` times.
const policiesEach = 60

// advice are rules about policies that the API server accepts: they see nothing, or refuse too much.
var advice = []string{"policy-unknown-resource", "policy-wedge-node", "policy-wedge-wildcard", "policy-binding-target", "policy-param-missing", "policy-param-unused", "policy-delete"}

// A drawn policy, and what lint and chain say of it and a pod.
type drawn struct {
	namespace string
	objects   []*manifest.Object
	run       *chain.Run
	findings  []string // of severity error
	result    *chain.Result
	err       error // of chain, and the policies do not get to a request
	refused   error // by the API server, when the policies are created
	yaml      string
}

// TestWhatLintAndChainAcceptOnARealAPIServer draws policies. What lint and chain accept, the API server has to accept, with the same
// object, message and warnings; what they find wrong has to be wrong there.
func TestWhatLintAndChainAcceptOnARealAPIServer(t *testing.T) {
	config, mutatingVersion := mutatingAPIServer(t)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	of, err := release.OfServer(clients.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*drawn, policiesEach**times)
	for i := range all {
		d := &drawn{namespace: lab.Namespace(t, config)}
		d.yaml = drawing{rand.New(rand.NewPCG(*seed, uint64(i)))}.policy(d.namespace, mutatingVersion)
		d.judge(t, of)
		if _, err := clients.CoreV1().ServiceAccounts(d.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		d.refused = created(t, config, d.objects[1:])
		all[i] = d
	}
	time.Sleep(3 * time.Second) // policies are in force
	counts := map[string]int{}
	for i, d := range all {
		verdict, why := d.compare(t, config)
		counts[verdict]++
		switch verdict {
		case "false alarm":
			t.Logf("%s, policy %d: %s\n%s", verdict, i, why, d.yaml)
		case "false green":
			t.Errorf("%s, policy %d: %s\n%s", verdict, i, why, d.yaml)
		}
	}
	t.Logf("Kubernetes %s, seed %d, %d policies: %v", of, *seed, len(all), counts)
	if alarms := counts["false alarm"]; *seed == 1 && alarms*100 > len(all) { // such as a branch that fails, and is not taken
		t.Errorf("%d false alarms: more than 1%%", alarms)
	}
	for _, want := range []string{"refused policy", "denied", "stored"} {
		if counts[want] == 0 {
			t.Errorf("no policy was of the kind %q: %v", want, counts)
		}
	}
}

// mutatingAPIServer returns an API server that evaluates mutating policies, and the version in which it serves them. In 1.34 and 1.35
// they are behind a feature gate, for which there is a server of its own.
func mutatingAPIServer(t *testing.T) (config *rest.Config, version string) {
	if lab.KubernetesMinor(t) >= release.Gates()[release.MutatingPolicies].Since {
		return lab.APIServer(t), "v1"
	}
	return betaAPIServer(t, "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"), "v1beta1"
}

func betaAPIServer(t *testing.T, flags ...string) *rest.Config {
	cp, err := lab.StartControlPlane(t.Context(), t.TempDir(), lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: append(flags, lab.SharedFlags...)})
	t.Cleanup(cp.Kill)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig)
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func (d *drawn) judge(t *testing.T, of release.Version) {
	var err error
	text := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s, labels: {kubernetes.io/metadata.name: %[1]s}}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: p, namespace: %[1]s, labels: {a: b}}, data: {k: v}}\n---\n%[2]s", d.namespace, d.yaml)
	if d.objects, _, err = manifest.Parse("with.yaml", []byte(text)); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	known, err := resources.OfFiles(d.objects)
	if err != nil {
		t.Fatal(err)
	}
	var forLint []lint.Object
	for _, o := range d.objects {
		forLint = append(forLint, lint.Object{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Labels: o.Labels, Raw: o.Raw,
			At: func(string) (string, int) { return "with.yaml", 1 }})
	}
	inventory, err := lint.ReadFiles(forLint)
	if err != nil {
		d.findings = append(d.findings, err.Error())
	}
	for _, f := range lint.Run(inventory, lint.Options{Release: of, Resources: known.ForLint()}).Findings {
		if f.Severity == lint.Error {
			d.findings = append(d.findings, f.Rule+": "+f.Message)
		}
	}
	about := fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: %s, labels: {l: v, zero: '0'}}, spec: {priority: 0, preemptionPolicy: PreemptLowerPriority, serviceAccountName: default, automountServiceAccountToken: false, tolerations: [{key: b, operator: Exists}, {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}], containers: [{name: c, image: 'i:1'}]}}", d.namespace)
	d.run = run(t, d.objects, about, func(r *chain.Run) {
		r.Request.Namespace, r.Release, r.FromFiles = d.namespace, of, true
		r.Request.UserInfo.Username, r.Request.UserInfo.Groups = "system:admin", []string{"system:masters", "system:authenticated"}
	})
	d.result, d.err = d.run.Do(t.Context())
}

// compare returns how what is said here differs from what the API server does.
func (d *drawn) compare(t *testing.T, config *rest.Config) (verdict, why string) {
	for attempt := range 6 { // a policy may not be in force yet
		if attempt > 0 {
			time.Sleep(time.Second)
		}
		if verdict, why = d.once(t, config); !strings.HasPrefix(verdict, "false") {
			break
		}
	}
	return verdict, why
}

func (d *drawn) once(t *testing.T, config *rest.Config) (verdict, why string) {
	accepted := len(d.findings) == 0 && d.err == nil
	if d.refused != nil {
		if accepted {
			return "false green", fmt.Sprintf("the API server refuses the policy: %v", d.refused)
		}
		return "refused policy", ""
	}
	if d.err != nil {
		return "false alarm", fmt.Sprintf("the API server accepts the policy: %v", d.err)
	}
	mine, warnings := rest.CopyConfig(config), &warningsOf{}
	mine.WarningHandler = warnings
	clients, err := kubernetes.NewForConfig(mine)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(d.run.Request.Object.Raw, pod); err != nil {
		t.Fatal(err)
	}
	stored, refused := clients.CoreV1().Pods(d.namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if difference := d.difference(stored, refused, warnings.take()); difference != "" {
		if len(d.result.Unknown) > 0 {
			return "unknown", ""
		}
		if d.result.Denied != nil && refused == nil {
			return "false alarm", difference
		}
		return "false green", difference
	}
	claims := slices.DeleteFunc(slices.Clone(d.findings), func(f string) bool { rule, _, _ := strings.Cut(f, ":"); return slices.Contains(advice, rule) })
	evaluated := slices.ContainsFunc(d.result.Steps, func(s *chain.Step) bool { // without a failure
		return strings.HasPrefix(s.Name, d.namespace) && !slices.Contains([]chain.Outcome{chain.Failed, chain.Ignored, chain.Skipped}, s.Outcome)
	})
	switch {
	case len(d.result.Unknown) > 0:
		return "unknown", ""
	case len(claims) > 0 && evaluated:
		return "false alarm", strings.Join(claims, "\n")
	case refused != nil:
		return "denied", ""
	default:
		return "stored", ""
	}
}

// difference compares the result with that of the API server.
func (d *drawn) difference(stored *corev1.Pod, refused error, warned []string) string {
	if (refused != nil) != (d.result.Denied != nil) {
		return fmt.Sprintf("here: %+v; the API server: %v", d.result.Denied, refused)
	}
	if refused != nil {
		status := refused.(apierrors.APIStatus).Status() //nolint:forcetypeassert // it is that of the client
		if status.Message != d.result.Denied.Message || status.Code != d.result.Denied.Code || status.Reason != d.result.Denied.Reason {
			return cmp.Diff([]any{status.Message, status.Code, status.Reason}, []any{d.result.Denied.Message, d.result.Denied.Code, d.result.Denied.Reason})
		}
		return ""
	}
	here := &corev1.Pod{}
	raw, err := json.Marshal(d.result.Object)
	if err == nil {
		err = json.Unmarshal(raw, here)
	}
	if err != nil {
		return err.Error()
	}
	difference := cmp.Diff([]any{stored.Labels, stored.Annotations, stored.Spec}, []any{here.Labels, here.Annotations, here.Spec}, cmpopts.EquateEmpty())
	slices.Sort(warned)
	return difference + cmp.Diff(warned, slices.Sorted(slices.Values(d.result.Warnings)), cmpopts.EquateEmpty())
}
