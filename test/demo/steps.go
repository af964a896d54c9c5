// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	serverNamespace = "sallyport-system"
	namespace       = "team-a"
	podDefaultName  = "gcp-credentials"
	notebookName    = "demo-notebook-0"
)

var (
	podDefaultFile = filepath.Join("examples", "poddefaults", podDefaultName+".yaml")
	notebookFile   = filepath.Join("examples", "poddefaults", "notebook-pod.yaml")
)

func (d *demo) steps(ctx context.Context, assets string) error {
	notebook, err := readObject(notebookFile)
	if err != nil {
		return err
	}
	d.screen.println(d.screen.style(bold, "Sallyport: a PodDefault on a real API server"), "\n")

	err = d.step(ctx, "control plane", func(ctx context.Context) (string, error) {
		if d.cluster, err = startCluster(ctx, assets, d.folder); err != nil {
			return "", err
		}
		version, err := d.cluster.version()
		return "etcd and kube-apiserver " + version, err
	})
	if err != nil {
		return err
	}
	err = d.step(ctx, "install", func(ctx context.Context) (string, error) {
		return "CRD and RBAC from `sallyport manifests`", d.install(ctx)
	})
	if err != nil {
		return err
	}
	err = d.step(ctx, "serve", func(ctx context.Context) (string, error) {
		// The rights of the service account, not of an administrator.
		if err := d.startServer(); err != nil {
			return "", err
		}
		return "`sallyport serve` at " + d.server.URL + ", ready", d.server.AwaitReady(ctx, soon)
	})
	if err != nil {
		return err
	}
	err = d.step(ctx, "apply", func(ctx context.Context) (string, error) {
		if err := d.createNamespace(ctx, namespace); err != nil {
			return "", err
		}
		podDefault, err := os.ReadFile(podDefaultFile)
		if err != nil {
			return "", err
		}
		return podDefaultFile, d.cluster.apply(ctx, namespace, podDefault)
	})
	if err != nil {
		return err
	}
	err = d.step(ctx, "registered", func(ctx context.Context) (string, error) {
		return "the API server calls Sallyport for new pods", d.waitEffective(ctx, notebook)
	})
	if err != nil {
		return err
	}

	var stored map[string]any
	var before calls
	var beforeInside calls
	err = d.step(ctx, "create pod", func(ctx context.Context) (string, error) {
		if before, beforeInside, err = d.callsSeen(ctx); err != nil {
			return "", err
		}
		stored, err = d.cluster.createPod(ctx, namespace, notebook, false)
		return notebookFile, err
	})
	if err != nil {
		return err
	}
	after, afterInside, err := d.callsSeen(ctx)
	if err != nil {
		return err
	}
	if err := d.showPod(ctx, notebook, stored); err != nil {
		return err
	}
	d.title("How long the admission call took")
	outside, inside := after.since(before), afterInside.since(beforeInside)
	d.screen.println(fmt.Sprintf("  %s as kube-apiserver measured it, %s of them in Sallyport", milliseconds(outside.mean()), milliseconds(inside.mean())))

	d.title("Checks")
	d.check(outside.count >= 1 && inside.count >= 1, "the API server called Sallyport for this pod (%d), which answered (%d)", outside.count, inside.count)
	if err := d.checkStored(ctx, stored); err != nil {
		return err
	}
	if err := d.checkUnlabelled(ctx, notebook); err != nil {
		return err
	}
	if err := d.checkAgain(ctx, stored); err != nil {
		return err
	}
	return d.checkReview(ctx)
}

// soon is how long anything may take that the demo waits for.
const soon = 20 * time.Second

// startServer starts the command outside of the cluster: the API server calls it
// by URL. Everything else is as in a cluster, with the same rights.
func (d *demo) startServer() error {
	kubeconfig, err := d.cluster.KubeconfigOf(serverAccount.Name)
	if err != nil {
		return err
	}
	d.server, err = lab.Serve(d.folder, lab.Serving{Name: "sallyport", Binary: d.command, Kubeconfig: kubeconfig, ByURL: true, OwnGroup: true},
		"--authority-secret", serverNamespace+"/sallyport-authority",
		lab.Set("serving.drainMin", "0s"), lab.Set("serving.drainTimeout", "0s"), // there is no Service that routes to it
	)
	return err
}

func (d *demo) title(text string) { d.screen.title(text) }

// install applies what `sallyport manifests` prints, as a cluster administrator
// would, save for the webhook configurations, which the server writes itself.
func (d *demo) install(ctx context.Context) error {
	if err := d.createNamespace(ctx, serverNamespace); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, d.command, "manifests", "--service", serverNamespace+"/sallyport", "--part", "crd", "--part", "rbac")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	manifests, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("sallyport manifests: %w\n%s", err, stderr.String())
	}
	return d.cluster.apply(ctx, serverNamespace, manifests)
}

// createNamespace also creates the service account that kube-controller-manager
// would create.
func (d *demo) createNamespace(ctx context.Context, name string) error {
	_, err := d.cluster.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name,
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = d.cluster.client.CoreV1().ServiceAccounts(name).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// waitEffective waits until the API server has taken note of the configuration and
// Sallyport of the PodDefault, both of which take a moment: it creates the pod on
// dry run until the mark is there.
func (d *demo) waitEffective(ctx context.Context, pod map[string]any) error {
	mark := markPrefix + podDefaultName
	return d.server.Await(ctx, soon, "a new pod to have "+mark, func(ctx context.Context) error {
		out, err := d.cluster.createPod(ctx, namespace, pod, true)
		if err == nil && object(object(out["metadata"])["annotations"])[mark] == nil {
			err = errors.New("it has not")
		}
		return err
	})
}

// showPod prints the difference between the pod as sent and as stored, and who made it.
func (d *demo) showPod(ctx context.Context, sent, stored map[string]any) error {
	c, err := d.compare(ctx, sent, stored)
	if err != nil {
		return err
	}
	d.title("Pod " + namespace + "/" + notebookName + ", from as sent to as stored")
	d.screen.pod(c.lines)

	d.title("Which PodDefault added what")
	bySource := map[string][]addition{}
	var order []string
	for _, a := range c.additions {
		source := strings.Join(a.sources, ", ")
		if !slices.Contains(order, source) {
			order = append(order, source)
		}
		bySource[source] = append(bySource[source], a)
	}
	for _, source := range order {
		byPlace := map[string][]string{}
		var places []string
		for _, a := range bySource[source] {
			if !slices.Contains(places, a.where) {
				places = append(places, a.where)
			}
			byPlace[a.where] = append(byPlace[a.where], a.what)
		}
		for i, place := range places {
			name := source
			if i > 0 {
				name = ""
			}
			d.screen.println("  ", d.screen.style(cyan, fmt.Sprintf("%-16s", name)), " ",
				d.screen.style(dim, fmt.Sprintf("%-16s", place)), " ", strings.Join(byPlace[place], ", "))
		}
	}
	for _, what := range c.unexplained {
		d.wrong++
		d.screen.check(false, "no PodDefault asked for this: "+what)
	}
	return nil
}

// compare asks the API server what the pod would be without the webhook.
func (d *demo) compare(ctx context.Context, sent, stored map[string]any) (*comparison, error) {
	alone, err := d.cluster.createExcluded(ctx, namespace, sent)
	if err != nil {
		return nil, fmt.Errorf("creating the pod on dry run, excluded from injection: %w", err)
	}
	pds, err := d.cluster.listPodDefaults(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return compare(sent, alone, stored, pds), nil
}

func readObject(file string) (map[string]any, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var obj map[string]any
	if err := yaml.UnmarshalStrict(data, &obj); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return obj, nil
}

func toPod(obj map[string]any) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, runtime.DefaultUnstructuredConverter.FromUnstructured(obj, pod)
}
