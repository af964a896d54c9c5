// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// A repository is what a GitOps tool applies, by server-side apply under its own name.
type repository struct {
	t      *testing.T
	e      *env
	folder string
	argo   string // program of cmd/test/gitops/engine
}

func (r *repository) kubectl(stdin []byte, args ...string) ([]byte, error) {
	command := exec.CommandContext(r.t.Context(), kubectl(), append([]string{"--kubeconfig", r.e.kubeconfig}, args...)...)
	command.Stdin = bytes.NewReader(stdin)
	return command.CombinedOutput()
}

// commit writes a file, and applies the whole repository.
func (r *repository) commit(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.folder, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if out, err := r.kubectl(nil, "apply", "--server-side", "--field-manager", "gitops", "-f", r.folder); err != nil {
		r.t.Fatalf("applying %s: %v\n%s", name, err, out)
	}
}

// unchanged fails if anything in the cluster differs from what was applied.
func (r *repository) unchanged(after string) {
	r.t.Helper()
	if out, err := r.kubectl(nil, "diff", "--server-side", "--field-manager", "gitops", "-f", r.folder); err != nil {
		r.t.Errorf("after %s there is drift: %v\n%.3000s", after, err, out)
	}
	if out, err := r.engine(); err != nil {
		r.t.Errorf("after %s Argo CD shows drift: %v\n%.3000s", after, err, out)
	}
}

// engine compares with the engine of Argo CD.
func (r *repository) engine() ([]byte, error) {
	r.t.Helper()
	live, err := r.kubectl(nil, "get", "-f", r.folder, "-o", "yaml")
	if err != nil {
		return live, err
	}
	files, err := filepath.Glob(filepath.Join(r.folder, "*.yaml")) // sorted, as kubectl reads them
	if err != nil {
		return nil, err
	}
	var applied []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		applied = append(append(applied, "\n---\n"...), text...)
	}
	folder := r.t.TempDir()
	for name, text := range map[string][]byte{"applied.yaml": applied, "live.yaml": live} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return exec.CommandContext(r.t.Context(), r.argo, filepath.Join(folder, "applied.yaml"), filepath.Join(folder, "live.yaml")).CombinedOutput()
}

// wait is `kubectl wait`.
func (r *repository) wait(condition, object string) {
	r.t.Helper()
	if out, err := r.kubectl(nil, "wait", "--for=condition="+condition, object, "--timeout=120s", "--namespace", "gitops"); err != nil {
		r.t.Errorf("kubectl wait --for=condition=%s %s: %v\n%s", condition, object, err, out)
	}
}

// TestGitOps applies the chart, the kustomization, PodDefaults, ClusterPodDefaults and an Exemption, and lets the server
// do all that it does to objects. What was applied stays as it was. The API server is its own, because
// the chart and the kustomization are installed in it.
func TestGitOps(t *testing.T) {
	t.Parallel()
	e := newEnv(t, sallyporttest.WithAPIServerFlag("disable-admission-plugins"))
	name := e.namespace(t, "gitops")
	top, err := lab.Top()
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{t, e, t.TempDir(), filepath.Join(t.TempDir(), "engine")}
	// It is in a module of its own, whose first build takes minutes.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", r.argo, ".")
	build.Dir = filepath.Join(top, "cmd/test/gitops/engine")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	render := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), lab.Binary(t, program), args...).Output()
		if err != nil {
			t.Fatalf("%s: %v", program, err)
		}
		return string(out)
	}
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-chart"}})
	// Both have the definitions: of the chart, they are left out.
	r.commit("0-kustomization.yaml", render("kustomize", "build", filepath.Join(top, "config/base")))
	r.commit("1-chart.yaml", render("helm", "template", "hooks", filepath.Join(top, "charts/sallyport"), "--namespace", "of-chart",
		"--set", "image.repository=x", "--set", "crds.install=false"))
	r.unchanged("the installation")

	// An invalid object, from before the server.
	invalid := envPodDefault(name, "invalid")
	invalid.Spec.HostAliases = []corev1.HostAlias{{IP: "localhost"}}
	e.create(t, invalid)
	const everywhere = `---
apiVersion: sallyport.io/v1alpha1
kind: ClusterPodDefault
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {everywhere: "true"}}
  namespaceSelector: {matchLabels: {e2e: gitops}}
  env: [{name: PROXY, value: http://proxy}]
  ports: [{containerPort: 9090}]
`
	exemption := `---
apiVersion: sallyport.io/v1alpha1
kind: Exemption
metadata: {name: batch, namespace: gitops}
spec:
  until: "` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `"
  podDefaults: [staged, cluster/everywhere]
  workloads: [Deployment/batch]
  reason: it breaks rsync
`
	spec := func(value, promotion string) string {
		return `apiVersion: kubeflow.org/v1alpha1
kind: PodDefault
metadata: {name: staged, namespace: gitops}
spec:
  selector: {matchLabels: {staged: "true"}}
  env: [{name: VERSION, value: "` + value + `"}]
  rollout:
    steps: [{percent: 10}, {percent: 50}]
` + promotion
	}
	r.commit("2-poddefaults.yaml", spec("1", "")+everywhere)
	r.commit("2-exemptions.yaml", exemption)
	secret := name + "/authority"
	file := filepath.Join(t.TempDir(), "sallyport.yaml")
	configuration(t, file, "- {name: poddefault, settings: {guard: Fail, maxExemption: 24h}}\n")
	s := e.serve(t, name, "--controllers=*", "--authority-secret", secret, "--config", file)
	for _, object := range []string{"poddefault/staged", "clusterpoddefault/everywhere", "exemption/batch"} {
		r.wait("Ready", object)
	}
	r.wait("InForce", "exemption/batch")
	r.wait("Ready=False", "poddefault/invalid")
	r.wait("Stalled", "poddefault/invalid")
	r.unchanged("the first status")
	extended := strings.ReplaceAll(exemption, "[Deployment/batch]", "[Deployment/batch, CronJob/backup]")
	r.commit("2-exemptions.yaml", extended)
	r.wait("Ready", "exemption/batch")
	r.unchanged("a wider Exemption")

	ready := func(reason string) *kubeflowv1alpha1.PodDefault {
		t.Helper()
		pd := &kubeflowv1alpha1.PodDefault{}
		eventually(t, "the reason "+reason, func(ctx context.Context) (bool, error) {
			if err := e.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "staged"}, pd); err != nil {
				return false, err
			}
			c := meta.FindStatusCondition(pd.Status.Conditions, kubeflowv1alpha1.ConditionReady)
			return c != nil && c.Reason == reason && c.ObservedGeneration == pd.Generation && pd.Status.ObservedGeneration == pd.Generation, nil
		})
		return pd
	}
	r.commit("2-poddefaults.yaml", spec("2", "")+everywhere)
	second := ready("AwaitingPromotion")
	if second.Status.Rollout.Step != 1 {
		t.Errorf("in step %d", second.Status.Rollout.Step)
	}
	r.unchanged("the first step of a rollout")
	promote := func(step string) string {
		return "    promotion: {revision: " + second.Status.CurrentRevision + step + "}\n"
	}
	r.commit("2-poddefaults.yaml", spec("2", promote(", step: 2"))+everywhere)
	eventually(t, "the second step", func(ctx context.Context) (bool, error) {
		return ready("AwaitingPromotion").Status.Rollout.Step == 2, nil
	})
	r.unchanged("a promotion to the second step")
	r.commit("2-poddefaults.yaml", spec("2", promote(""))+everywhere)
	ready("Applied")
	r.unchanged("the end of a rollout")
	r.commit("2-poddefaults.yaml", spec("1", "")+everywhere)
	if got := ready("AwaitingPromotion").Status; got.Rollout.StableRevision != second.Status.CurrentRevision {
		t.Errorf("a rollback over revision %s", got.Rollout.StableRevision)
	}
	r.unchanged("a rollback by a commit")
	r.commit("2-poddefaults.yaml", spec("1", "    abortedRevision: "+ready("AwaitingPromotion").Status.CurrentRevision+"\n")+everywhere)
	ready("RolloutAborted")
	r.wait("Stalled", "poddefault/staged")
	r.unchanged("an abortion by a commit")
	r.commit("2-poddefaults.yaml", spec("2", "")+everywhere)
	ready("Applied")

	// Healing, another authority, another start.
	registered := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := e.client.Get(t.Context(), client.ObjectKeyFromObject(registered), registered); err != nil {
		t.Fatal(err)
	}
	before, deleted := registered.Webhooks[0].ClientConfig.CABundle, registered.UID
	if err := e.client.Delete(t.Context(), registered); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the configuration to be written again", func(ctx context.Context) (bool, error) {
		err := e.client.Get(ctx, client.ObjectKeyFromObject(registered), registered)
		return err == nil && registered.UID != deleted, client.IgnoreNotFound(err)
	})
	r.unchanged("the healing of a webhook configuration")
	if out, err := exec.CommandContext(t.Context(), e.binary, "certificates", "rotate", "--authority-secret", secret, "--kubeconfig", e.kubeconfig).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, "another CA bundle", func(ctx context.Context) (bool, error) {
		err := e.client.Get(ctx, client.ObjectKeyFromObject(registered), registered)
		return err == nil && !bytes.Equal(registered.Webhooks[0].ClientConfig.CABundle, before), err
	})
	r.unchanged("a rotation of the authority")
	configuration(t, file, "- {name: poddefault, settings: {guard: Fail, maxExemption: 24h, authorizeAuthors: warn}}\n")
	eventually(t, "the configuration to be reloaded", func(context.Context) (bool, error) {
		return s.metric(t, `sallyport_config_reloads_total{result="success"}`) == "1", nil
	})
	r.unchanged("a reload")
	s.stop(t)
	e.serve(t, name, "--controllers=*", "--authority-secret", secret)
	e.create(t, simplePod(name, "after"))
	r.wait("Stalled", "exemption/batch") // there is no maxExemption any more
	r.unchanged("a restart")

	// Without Sallyport's own registration, the repository has the configurations.
	const others = "gitops-others"
	e.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: others}})
	unregistered := e.start(t, others, "--registration", "None", "--authority-secret", others+"/ca")
	unregistered.awaitReady(t)
	authority := &corev1.Secret{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: others, Name: "ca"}, authority); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, authority.Data[corev1.TLSCertKey], 0o600); err != nil {
		t.Fatal(err)
	}
	printed, err := exec.CommandContext(t.Context(), e.binary, "manifests", "--part", "configurations", "--url", unregistered.URL,
		"--configuration-name", others, "--namespace-selector", "kubernetes.io/metadata.name="+others, "--ca-file", ca).Output()
	if err != nil {
		t.Fatal(err)
	}
	r.commit("3-configurations.yaml", string(printed))
	r.unchanged("configurations of the repository")

	// What somebody else changes is drift.
	if out, err := r.kubectl(nil, "patch", "poddefault/staged", "--namespace", name, "--type", "merge", "--patch", `{"spec":{"env":[{"name":"VERSION","value":"3"}]}}`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := r.kubectl(nil, "diff", "--server-side", "--force-conflicts", "--field-manager", "gitops", "-f", r.folder); err == nil {
		t.Errorf("kubectl diff does not see a variable with another value:\n%s", out)
	}
	if out, err := r.engine(); err == nil {
		t.Errorf("Argo CD does not see a variable with another value:\n%s", out)
	}
}
