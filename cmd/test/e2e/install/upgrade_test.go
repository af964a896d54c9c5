// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/internal/install/authority"
	"github.com/sallyport-io/sallyport/test/lab"
	"github.com/sallyport-io/sallyport/test/lab/clusternet"
)

// firstCandidate is the commit of v0.1.0-rc.1, which stands for the previous release until a release has been tagged.
const firstCandidate = "0c904690bb853e77149ab9323367585c2592cd04"

// A version of the product: its files, the command built from them, and the tag of its image.
type version struct{ name, top, command, image string }

// versionBefore is the release before HEAD, or that candidate. It comes from git: what a release has is a commit.
func versionBefore(t *testing.T) version {
	t.Helper()
	const remedy = "run it in a clone of the repository with its history and tags: `git fetch --unshallow --tags`"
	if out, err := exec.CommandContext(t.Context(), "git", "-C", top, "rev-parse", "--is-shallow-repository").Output(); err != nil || strings.TrimSpace(string(out)) != "false" {
		t.Fatalf("the release before is made from an earlier commit: %s (shallow: %q, %v)", remedy, out, err)
	}
	revision := firstCandidate
	if tags := strings.Fields(output(t, "git", "-C", top, "-c", "versionsort.suffix=-", "tag", "--list", "v*", "--merged", "HEAD~", "--sort=-v:refname")); len(tags) > 0 {
		revision = tags[0]
	}
	v := version{name: revision, top: t.TempDir(), image: "before"}
	archive, err := exec.CommandContext(t.Context(), "git", "-C", top, "archive", revision).Output()
	if err != nil {
		t.Fatalf("there is no commit %s, from which the release before is made: %s (%s)", revision, remedy, withStderr(err))
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", v.top)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	v.command = filepath.Join(t.TempDir(), "sallyport")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags=-X main.version=v0.1.0-rc.1", "-o", v.command, "./cmd/sallyport")
	build.Dir, build.Env = v.top, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", revision, err, out)
	}
	return v
}

// An upgrade is a cluster in which versions replace each other.
type upgrade struct {
	*cluster
	helm, kustomize, kubectl string
	exempt                   map[string]metav1.OwnerReference // a Job whose pods are exempt, by namespace
}

// TestUpgradeAndBackUnderLoadOnARealAPIServer installs the release before with three replicas, replaces it by this one, and this
// one by it, while pods are created: no create fails, none is un-injected, no object loses a field, both versions decide alike, and
// both read the revisions. `make upgrade` runs it.
func TestUpgradeAndBackUnderLoadOnARealAPIServer(t *testing.T) {
	before, now := versionBefore(t), version{"HEAD", top, sallyport(t), "now"}
	helm, kustomize, newest := lab.Binary(t, "helm"), lab.Binary(t, "kustomize"), os.Getenv("KUBEBUILDER_ASSETS")
	for _, way := range []struct {
		name    string
		install func(*upgrade, *testing.T, version)
		older   bool // begins on the minor release of Kubernetes before the newest
	}{
		{"by chart", (*upgrade).byChart, false},
		{"by kustomize", (*upgrade).byKustomize, false},
		{"by binary", (*upgrade).byBinary, false},
		{"across a minor release of Kubernetes", (*upgrade).byChart, true},
	} {
		t.Run(way.name, func(t *testing.T) {
			if way.older {
				t.Setenv("KUBEBUILDER_ASSETS", olderControlPlane(t))
			}
			controlPlane, network := startControlPlane(t)
			config, err := clientcmd.BuildConfigFromFlags("", controlPlane.Kubeconfig)
			if err == nil {
				err = rest.LoadTLSFiles(config) // for those who hand on what is in the file
			}
			if err != nil {
				t.Fatal(err)
			}
			config.QPS = -1
			u := &upgrade{helm: helm, kustomize: kustomize, kubectl: filepath.Join(newest, "kubectl"), cluster: runCluster(t, config, network, map[string]func(*cluster, *testing.T, *corev1.Pod) (*container, error){
				"registry.example.com/sallyport:before": runSallyport(before.command), "registry.example.com/sallyport:now": runSallyport(now.command),
			})}
			way.install(u, t, before)
			u.settled(t, before)
			u.populate(t)
			objects, answers := u.objectsNow(t), u.answers(t)
			to := func(v version, rotating version) {
				t.Helper()
				signer := u.authority(t, rotating).Signer.Fingerprint
				u.underLoad(t, v.name, func() {
					output(t, rotating.command, "certificates", "rotate", "--kubeconfig", u.kubeconfig, "--service", system+"/sallyport")
					way.install(u, t, v)
					u.settled(t, v)
				})
				u.rotated(t, signer, before, now)
				u.definitions(t, v)
				after := u.objectsNow(t)
				if diff := cmp.Diff(objects, after); diff != "" {
					t.Errorf("with %s objects are others (-before +after):\n%s", v.name, diff)
				}
				if diff := cmp.Diff(answers, u.answers(t)); diff != "" {
					t.Errorf("%s decides otherwise (-before +after):\n%s", v.name, diff)
				}
				u.sameHistory(t, after, before, now)
			}
			to(now, before)
			if way.older {
				if err := controlPlane.UpgradeAPIServer(t.Context(), newest); err != nil {
					t.Fatal(err)
				}
				u.settled(t, now)
				if diff := cmp.Diff(answers, u.answers(t)); diff != "" {
					t.Errorf("decisions are others with the next release of Kubernetes (-before +after):\n%s", diff)
				}
			}
			to(before, now)
		})
	}
}

// olderControlPlane is the folder of the release of Kubernetes before the newest, which is built if it is not there.
func olderControlPlane(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(top, "test/controlplane/versions"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("there is no older release of Kubernetes: %v", err)
	}
	build := exec.CommandContext(t.Context(), "go", "run", ".", "-kubernetes", entries[len(entries)-1].Name(), "etcd", "kube-apiserver", "kube-controller-manager")
	build.Dir = filepath.Join(top, "test/controlplane")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBEBUILDER_ASSETS=") && !strings.HasPrefix(variable, "GOWORK=") {
			build.Env = append(build.Env, variable)
		}
	}
	build.Env = append(build.Env, "GOWORK=off")
	out, err := build.Output()
	if err != nil {
		t.Fatalf("building Kubernetes %s: %s", entries[len(entries)-1].Name(), withStderr(err))
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func startControlPlane(t *testing.T) (*lab.ControlPlane, *clusternet.Network) {
	t.Helper()
	network := clusternet.Start(t)
	var flags []string
	for name, value := range network.Flags() {
		flags = append(flags, "--"+name+"="+value)
	}
	controlPlane, err := lab.StartControlPlane(t.Context(), t.TempDir(), lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: flags})
	t.Cleanup(controlPlane.Kill)
	if err != nil {
		t.Fatal(err)
	}
	return controlPlane, network
}

// settings turn on what the release before has, and let a rotation of the authority end within a minute.
const settings = `certificate: {caPropagation: 5s}
webhooks: [{name: poddefault, settings: {maxExemption: 24h}}]
`

func (u *upgrade) byChart(t *testing.T, v version) {
	t.Helper()
	release := []string{"--namespace", system, "--kubeconfig", u.kubeconfig}
	if v.image == "before" && u.exempt != nil { // as docs/install.md says
		output(t, u.helm, append([]string{"rollback", "sallyport", "1"}, release...)...)
		return
	}
	values := file(t, "values.yaml", "image: {repository: registry.example.com/sallyport, tag: "+v.image+"}\nreplicas: 3\nconfig:\n  "+strings.ReplaceAll(strings.TrimSpace(settings), "\n", "\n  ")+"\n")
	output(t, u.helm, append([]string{"upgrade", "--install", "--create-namespace", "sallyport", filepath.Join(v.top, "charts/sallyport"), "--values", values}, release...)...)
}

func (u *upgrade) byKustomize(t *testing.T, v version) {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(v.top, "config"))); err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(folder, "overlay")
	err := errors.Join(os.Mkdir(overlay, 0o700),
		os.WriteFile(filepath.Join(overlay, "sallyport.yaml"), []byte(configHead+settings), 0o600),
		os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(`resources: [../base]
images: [{name: sallyport, newName: registry.example.com/sallyport, newTag: `+v.image+`}]
replicas: [{name: sallyport, count: 3}]
configMapGenerator: [{name: sallyport-config, namespace: sallyport-system, files: [sallyport.yaml]}]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: sallyport, namespace: sallyport-system}
    spec:
      template:
        spec:
          containers:
          - name: sallyport
            args: [serve, --service=sallyport-system/sallyport, --secure-port=8443, --config=/etc/sallyport/sallyport.yaml]
            volumeMounts: [{name: config, mountPath: /etc/sallyport}]
          volumes: [{name: config, configMap: {name: sallyport-config}}]
`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	u.apply(t, output(t, u.kustomize, "build", overlay))
}

// byBinary prints the manifests with the command of the version.
func (u *upgrade) byBinary(t *testing.T, v version) {
	t.Helper()
	u.apply(t, output(t, v.command, "manifests", "--service", system+"/sallyport", "--part", "namespace,crd,rbac,user-roles,flowcontrol,workload",
		"--image", "registry.example.com/sallyport:"+v.image, "--replicas", "3", "--config", file(t, "sallyport.yaml", configHead+settings)))
}

func (u *upgrade) apply(t *testing.T, objects string) {
	t.Helper()
	output(t, u.kubectl, "--kubeconfig", u.kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", file(t, "objects.yaml", objects))
}

// settled waits until three replicas of the version are all that there is, and the webhook is registered.
func (u *upgrade) settled(t *testing.T, v version) {
	t.Helper()
	lab.Eventually(t.Context(), t, 2*patience, "three replicas of "+v.name, func(ctx context.Context) (bool, error) {
		deployment, err := u.client.AppsV1().Deployments(system).Get(ctx, "sallyport", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pods, err := u.client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			if !strings.HasSuffix(pod.Spec.Containers[0].Image, ":"+v.image) {
				return false, fmt.Errorf("pod %s has %s", pod.Name, pod.Spec.Containers[0].Image)
			}
		}
		if !available(deployment) || len(pods.Items) != 3 {
			return false, fmt.Errorf("%d pods, %+v", len(pods.Items), deployment.Status)
		}
		_, err = u.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "sallyport", metav1.GetOptions{})
		return err == nil, err
	})
}

func available(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.Replicas == 3 && s.UpdatedReplicas == 3 && s.AvailableReplicas == 3
}

// authority is what a command says of it.
func (u *upgrade) authority(t *testing.T, v version) authority.Status {
	t.Helper()
	var status authority.Status
	text := output(t, v.command, "certificates", "status", "--kubeconfig", u.kubeconfig, "--service", system+"/sallyport", "--output", "json")
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return status
}

// rotated waits until the rotation has ended that began under the other version, and lets both commands say so.
func (u *upgrade) rotated(t *testing.T, signer string, versions ...version) {
	t.Helper()
	for _, v := range versions {
		lab.Eventually(t.Context(), t, patience, "the end of the rotation, by "+v.name, func(context.Context) (bool, error) {
			now := u.authority(t, v)
			if now.Next != nil || now.Old != nil || now.Signer == nil || now.Signer.Fingerprint == signer {
				return false, fmt.Errorf("phase %s, it waits for %s", now.Phase, now.WaitsFor)
			}
			for _, bundle := range now.CABundles {
				if !bundle.HoldsSigner {
					return false, fmt.Errorf("%s %s does not trust the signer", bundle.Kind, bundle.Webhook)
				}
			}
			return len(now.CABundles) > 0, nil
		})
	}
}

// definitions are those of the version, are served, have one stored version, and need no conversion.
func (u *upgrade) definitions(t *testing.T, v version) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(v.top, "config/crd/*_*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d definitions (%v)", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := parse(t, string(text))[0]
		got, err := u.cluster.objects.Resource(definitionResource).Get(t.Context(), want.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		versions := func(object *unstructured.Unstructured) (names []string) {
			list, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
			for _, item := range list {
				m := item.(map[string]any)
				names = append(names, fmt.Sprint(m["name"], " ", m["served"], " ", m["storage"]))
			}
			return names
		}
		if diff := cmp.Diff(versions(want), versions(got)); diff != "" {
			t.Errorf("%s: versions (-want +got):\n%s", want.GetName(), diff)
		}
		schema := func(object *unstructured.Unstructured) string {
			list, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
			text, err := json.Marshal(list[0].(map[string]any)["schema"])
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if schema(want) != schema(got) {
			t.Errorf("%s: the schema is not that of %s", want.GetName(), v.name)
		}
		strategy, _, _ := unstructured.NestedString(got.Object, "spec", "conversion", "strategy")
		stored, _, _ := unstructured.NestedStringSlice(got.Object, "status", "storedVersions")
		if strategy != "None" || len(stored) != 1 {
			t.Errorf("%s: strategy %s, stored %v", want.GetName(), strategy, stored)
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		states := map[string]any{}
		for _, c := range conditions {
			states[fmt.Sprint(c.(map[string]any)["type"])] = c.(map[string]any)["status"]
		}
		if states["Established"] != "True" || states["NamesAccepted"] != "True" || states["NonStructuralSchema"] == "True" {
			t.Errorf("%s: conditions %v", want.GetName(), states)
		}
	}
}

var (
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	podDefaultResource = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1alpha1", Resource: "poddefaults"}
	// kept are the kinds whose objects no upgrade may change.
	kept = []schema.GroupVersionResource{
		podDefaultResource,
		{Group: "sallyport.io", Version: "v1alpha1", Resource: "clusterpoddefaults"}, {Group: "sallyport.io", Version: "v1alpha1", Resource: "exemptions"},
		{Group: "sallyport.io", Version: "v1alpha1", Resource: "poddefaultrevisions"}, {Group: "sallyport.io", Version: "v1alpha1", Resource: "clusterpoddefaultrevisions"},
	}
)

// objectsNow are all objects of these kinds, in JSON, without what each write changes.
func (u *upgrade) objectsNow(t *testing.T) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, resource := range kept {
		list, err := u.cluster.objects.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range list.Items {
			for _, path := range [][]string{{"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"status", "pods"}, {"status", "conditions"}} {
				unstructured.RemoveNestedField(object.Object, path...)
			}
			out[resource.Resource+" "+object.GetNamespace()+"/"+object.GetName()] = object.Object
		}
	}
	return out
}

// sameHistory lets both commands print the revisions, which are among the objects, of one whose rollout is under way.
func (u *upgrade) sameHistory(t *testing.T, objects map[string]any, before, now version) {
	t.Helper()
	revisions := map[string][]string{}
	for _, v := range []version{before, now} {
		text := output(t, v.command, "rollout", "history", "poddefault/"+name(0), "--namespace", team(0), "--kubeconfig", u.kubeconfig)
		for _, object := range slices.Sorted(maps.Keys(objects)) {
			kind, _, _ := strings.Cut(object, " ")
			revision := object[strings.LastIndexByte(object, '-')+1:]
			if kind == "poddefaultrevisions" && strings.Contains(text, revision[:min(8, len(revision))]) {
				revisions[v.image] = append(revisions[v.image], object)
			}
		}
		if len(revisions[v.image]) != 2 {
			t.Errorf("%s does not print two revisions, but %v:\n%s", v.name, revisions[v.image], text)
		}
	}
	if diff := cmp.Diff(revisions["before"], revisions["now"]); diff != "" {
		t.Errorf("the versions print different revisions (-before +now):\n%s", diff)
	}
}

// answers are the pods that the API server would store, by dry runs, without what differs from one to the next.
func (u *upgrade) answers(t *testing.T) map[string]any {
	t.Helper()
	out := map[string]any{}
	for n := range 200 {
		pod := u.pod(fmt.Sprintf("same-%d", n), n)
		answer, err := u.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(answer.Spec)
		if err != nil {
			t.Fatal(err)
		}
		out[pod.Namespace+"/"+pod.Name] = map[string]any{ // the values of marks are resource versions, and volumes of tokens have random names
			"spec": tokenName.ReplaceAllString(string(text), "kube-api-access"), "annotations": slices.Sorted(maps.Keys(answer.Annotations)), "labels": answer.Labels,
		}
	}
	return out
}
