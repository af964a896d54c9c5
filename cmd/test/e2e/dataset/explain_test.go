// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/cmd/test/fluid"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// testExplained asks about pods that the tests before have created, in a cluster without
// PodDefaults.
func testExplained(t *testing.T, c *cluster) {
	placed := &corev1.Pod{}
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "preferred-0"}, placed); err != nil {
		t.Fatal(err)
	}
	c.explains(t, c.kubeconfig, 0, "", []string{"pod/preferred-0"},
		"\nNodes that are required or preferred:\n",
		"\n  [1] dataset team-a/imagenet: NodeAffinityWithCache: nodes that hold its cache are preferred (weight 100)\n",
		"\n  node "+placed.Spec.NodeName+", where the pod is: 170: [1] [2] [3]\n", "\n  node near: 70: [2] [3]\n", "\n  node far: 0: no preference\n")

	var explained struct {
		Datasets struct {
			Wants []struct {
				Plugin, Dataset, Labels string
				Weight                  int
			}
			Node  string
			Nodes []struct {
				Node   string
				Weight int
				Lacks  []string
			}
		}
	}
	out := c.explains(t, c.kubeconfig, 0, "", []string{"pod/preferred-0", "-o", "json"})
	if err := json.Unmarshal([]byte(out), &explained); err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, node := range explained.Datasets.Nodes {
		order = append(order, node.Node)
	}
	if want := []string{"cache-1", "cache-2", "near", "region", "far"}; !slices.Equal(order, want) || explained.Datasets.Node != placed.Spec.NodeName {
		t.Errorf("want the nodes %v and the pod on %s:\n%s", want, placed.Spec.NodeName, out)
	}
	if wants := explained.Datasets.Wants; len(wants) != 3 || wants[0].Weight != 100 || wants[0].Plugin != "NodeAffinityWithCache" || wants[0].Labels != "fluid.io/s-team-a-imagenet" {
		t.Errorf("it wants %+v", wants)
	}

	// A pod without datasets, one that is not there yet, and one that would be refused.
	c.explains(t, c.kubeconfig, 0, "", []string{"pod/plain-0"}, "[1] PreferNodesWithoutCache: ", "\n  node cache-1: 0: ")
	required := pod("team-a", "to-come", "imagenet")
	required.Labels["fluid.io/dataset.imagenet.sched"] = "required"
	c.explains(t, c.kubeconfig, 0, manifest(t, required), []string{"-f", "-"}, "\n  node near: cannot run the pod: [1]\n")
	c.create(t, fluid.Object(kinds.Dataset, "team-a", "later", nil, map[string]any{"phase": "NotBound"}))
	c.claim(t, "team-a", "later")
	c.explains(t, c.kubeconfig, 3, manifest(t, pod("team-a", "to-come", "later")), []string{"-f", "-"}, `denied the request: pod to-come: dataset "team-a/later" not bound`)
	bare := pod("team-a", "bare")
	bare.Labels = nil
	c.explains(t, c.kubeconfig, 1, manifest(t, bare), []string{"-f", "-"}, "the cluster has no PodDefaults")

	// Somebody who may not read Datasets is told so, and somebody who may not list nodes.
	for name, rule := range map[string]rbacv1.PolicyRule{
		"poddefaults": {APIGroups: []string{"kubeflow.org"}, Resources: []string{"poddefaults"}, Verbs: []string{"list"}},
		"pods":        {APIGroups: []string{""}, Resources: []string{"pods", "persistentvolumeclaims"}, Verbs: []string{"get", "list"}},
		"datasets":    {APIGroups: []string{kinds.Group}, Resources: kinds.Resources(), Verbs: []string{"get"}},
	} {
		c.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}})
	}
	for _, user := range []struct {
		name   string
		roles  []string
		status int
		want   string
	}{
		// Nothing is left to explain in a cluster without PodDefaults.
		{"viewer", []string{"pods", "poddefaults"}, 1, "note: why the pod prefers nodes is left out: "},
		{"trainer", []string{"pods", "poddefaults", "datasets"}, 0, "note: you may not list nodes: they are left out\n"},
		{"nobody", nil, 1, `User "nobody" cannot get resource "pods"`},
	} {
		config := rest.CopyConfig(c.config)
		config.Impersonate.UserName = user.name
		for _, role := range user.roles {
			c.create(t, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: user.name + "-" + role}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.name}},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			})
		}
		c.explains(t, sallyporttest.Kubeconfig(t, config), user.status, "", []string{"pod/preferred-0"}, user.want)
	}
}

func manifest(t *testing.T, p *corev1.Pod) string {
	t.Helper()
	p.APIVersion, p.Kind = "v1", "Pod"
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// explains runs the command, and returns what it prints.
func (c *cluster) explains(t *testing.T, kubeconfig string, status int, stdin string, args []string, wants ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.binary, append([]string{"explain", "--kubeconfig", kubeconfig, "-n", "team-a"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("explain %v: status %d, want %d\n%s%s", args, got, status, &stdout, &stderr)
	}
	for _, want := range wants {
		if !strings.Contains(stdout.String()+stderr.String(), want) {
			t.Errorf("explain %v: there is no %q in\n%s%s", args, want, &stdout, &stderr)
		}
	}
	return stdout.String()
}
