// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

// process is a cloud controller manager.
type process struct {
	cmd  *exec.Cmd
	log  bytes.Buffer
	port int
	done chan struct{}
	err  error
}

func run(t *testing.T, binary string, flags ...string) *process {
	t.Helper()
	p := &process{port: freeport.For(t), done: make(chan struct{})}
	p.cmd = exec.Command(binary, append(flags, fmt.Sprint("--webhook-secure-port=", p.port))...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(flags, " "), p.log.String())
		}
	})
	return p
}

func (p *process) ready() (bool, error) {
	select {
	case <-p.done:
		return false, fmt.Errorf("it has ended: %w", errors.Join(p.err, errors.New("see its log")))
	default:
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/readyz", p.port))
	if err != nil {
		return false, nil
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK, nil
}

func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		ok, err := condition(ctx)
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// zone is the zone of a volume that is created, in a dry run.
func zone(ctx context.Context, client kubernetes.Interface, disk string) (string, error) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.GCEPersistentDisk = &corev1.GCEPersistentDiskVolumeSource{PDName: disk}
	made, err := client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", err
	}
	return made.Labels[corev1.LabelTopologyZone], nil
}

// create creates an object of the sample's manifests.
func create(ctx context.Context, client kubernetes.Interface, object runtime.Object) (err error) {
	options := metav1.CreateOptions{}
	switch object := object.(type) {
	case *corev1.ServiceAccount:
		_, err = client.CoreV1().ServiceAccounts(object.Namespace).Create(ctx, object, options)
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, object, options)
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, object, options)
	case *rbacv1.Role:
		_, err = client.RbacV1().Roles(object.Namespace).Create(ctx, object, options)
	case *rbacv1.RoleBinding:
		_, err = client.RbacV1().RoleBindings(object.Namespace).Create(ctx, object, options)
	case *corev1.Service:
		_, err = client.CoreV1().Services(object.Namespace).Create(ctx, object, options)
	case *corev1.ConfigMap:
		_, err = client.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, options)
	case *appsv1.Deployment:
		_, err = client.AppsV1().Deployments(object.Namespace).Create(ctx, object, options)
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		_, err = client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, object, options)
	default:
		err = fmt.Errorf("the sample has no %T", object)
	}
	return err
}

// An unmodified sample of k8s.io/cloud-provider with a change of at most 20 lines labels
// volumes: with controllers and webhooks in two replicas of one process (story 2 of the
// KEP), and as a webhook manager beside one (story 1), by flags alone.
func TestTheAdoptedSampleOnARealAPIServer(t *testing.T) {
	binary := adopted(t)
	config := sallyporttest.StartAPIServer(t)
	client := kubernetes.NewForConfigOrDie(config)
	flags := func(more ...string) []string {
		return append([]string{
			"--kubeconfig=" + sallyporttest.Kubeconfig(t, config), "--cloud-provider=sample", "--cloud-config=cloud.yaml", "--secure-port=0",
			"--feature-gates=CloudControllerManagerWebhook=true", "--webhook-drain-min=0s", "--webhook-drain-timeout=1s",
		}, more...)
	}
	labelled := func(ctx context.Context) (bool, error) {
		got, err := zone(ctx, client, "data-1")
		return got == "north-1-a", err
	}

	t.Run("one process for both, in two replicas", func(t *testing.T) {
		beside := []string{"--webhooks=*", "--controllers=cloud-node-controller"}
		leader := run(t, binary, flags(append(beside, "--webhook-configuration-name=first")...)...)
		eventually(t, "a volume with labels", labelled)
		var holder string
		eventually(t, "the leader's lease", func(ctx context.Context) (bool, error) {
			lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "cloud-controller-manager", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			holder = *lease.Spec.HolderIdentity
			return holder != "", nil
		})
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		taint := corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: "NoSchedule"}
		node.Spec.Taints = []corev1.Taint{taint}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the node controller to initialise a node", func(ctx context.Context) (bool, error) {
			node, err := client.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{})
			return err == nil && node.Spec.ProviderID == "sample://node-1" && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t == taint }), err
		})

		other := run(t, binary, flags(append(beside, "--webhook-configuration-name=second")...)...)
		eventually(t, "the other replica to be ready", func(context.Context) (bool, error) { return other.ready() })
		if err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		_ = leader.cmd.Process.Kill()
		<-leader.done
		eventually(t, "a volume that the other replica labels", labelled)
		if lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "cloud-controller-manager", metav1.GetOptions{}); err != nil || *lease.Spec.HolderIdentity != holder {
			t.Logf("the other replica leads by now: the test has shown less than it could (%v)", err)
		}
		if err := other.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-other.done
		if other.err != nil {
			t.Errorf("it ends with %v", other.err)
		}
		if err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := client.CoordinationV1().Leases("kube-system").Delete(t.Context(), "cloud-controller-manager", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("all that is in the cluster is created before there is a server, and stops no volume", func(t *testing.T) {
		objects := read(t, filepath.Join("manifests", "in-cluster", "rbac.yaml"))
		objects = append(objects, read(t, filepath.Join("manifests", "in-cluster", "deployment.yaml"))...)
		configuration := printedConfiguration(t, programs(t)[filepath.Join("manifests", "in-cluster", "deployment.yaml")])
		for _, object := range append(objects, configuration) {
			if err := create(t.Context(), client, object); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := zone(t.Context(), client, "data-1"); err != nil || got != "" {
			t.Errorf("a volume before there is a server: %q, %v", got, err)
		}
		if err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), configuration.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("a webhook manager, with the rights of the sample", func(t *testing.T) {
		limited := rest.CopyConfig(config)
		limited.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:kube-system:cloud-controller-manager"}
		manager := run(t, binary, flags("--controllers=-*", "--webhooks=*", "--kubeconfig="+sallyporttest.Kubeconfig(t, limited), "--v=1")...)
		eventually(t, "a volume with labels", labelled)
		if _, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "cloud-controller-manager", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("a webhook manager elects a leader: %v", err)
		}
		if _, err := zone(t.Context(), client, "lost-1"); err == nil || !strings.Contains(err.Error(), "error querying GCE PD volume lost-1: the disk was deleted") {
			t.Errorf("%v", err)
		}
		if ready, err := manager.ready(); err != nil || !ready {
			t.Errorf("ready: %v, %v", ready, err)
		}
		if err := manager.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-manager.done
		if manager.err != nil {
			t.Errorf("it ends with %v", manager.err)
		}
		if got, err := zone(t.Context(), client, "data-1"); err != nil || got != "" {
			t.Errorf("with the server away: %q, %v", got, err)
		}
	})

	t.Run("a cloud config that is not there is told, and nothing runs", func(t *testing.T) {
		p := run(t, binary, flags("--controllers=-*", "--webhooks=*", "--cloud-config="+filepath.Join(t.TempDir(), "not-there"))...)
		<-p.done
		if p.err == nil || !strings.Contains(p.log.String(), "not-there") || !strings.Contains(p.log.String(), "no such file") && !strings.Contains(p.log.String(), "Couldn't open cloud provider configuration") {
			t.Errorf("%v\n%s", p.err, p.log.String())
		}
	})
	if _, err := os.Stat("adopted"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the build has left something: %v", err)
	}
}
