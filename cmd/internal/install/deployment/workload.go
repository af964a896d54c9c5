// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/install"
	"github.com/sallyport-io/sallyport/serving"
)

// configRoot is the folder in the container for the files that the pods read.
const (
	configRoot        = "/etc/sallyport"
	metricsPortNumber = 8080 // serve's default
)

// Workload runs the server in a cluster: a Service, a Deployment and a PodDisruptionBudget.
type Workload struct {
	install.Workload
	SecurePort int32
}

func (w *Workload) validate(m *Manifests) error {
	errs := []error{w.Workload.Validate(m.Server.Hosting())}
	for _, problem := range validation.IsValidPortNum(int(w.SecurePort)) {
		errs = append(errs, fmt.Errorf("--secure-port %d: %s", w.SecurePort, problem))
	}
	if w.SecurePort == metricsPortNumber {
		errs = append(errs, fmt.Errorf("--secure-port %d is that of metrics and probes: choose another", w.SecurePort))
	}
	return errors.Join(errs...)
}

// objects returns the objects in the order of their creation.
func (w *Workload) objects(m *Manifests) ([]runtime.Object, error) {
	config, settings := m.registration(), m.Server.Serving
	pods := install.Pods{
		Workload: w.Workload, Namespace: config.Endpoint.Service.Namespace, Name: config.Name, Labels: m.podLabels(), Container: "sallyport",
		ServiceAccount: m.ServiceAccount, Args: append([]string{"serve"}, m.Given.Args()...), Folder: configRoot,
		SecurePort: w.SecurePort, MetricsPort: metricsPortNumber, MetricsTLS: m.Server.Authentication.Metrics != serving.AuthenticationNone,
		Drain: settings.DrainTimeout, Timeout: time.Duration(m.Server.Registration.TimeoutSeconds) * time.Second, Resources: install.DefaultResources(),
	}
	if !m.Given.Changed("priority-class") && m.Server.Registration.FailurePolicy == string(admissionregistrationv1.Ignore) && serve.PodDefault(m.Server).Guard != serve.GuardBackstop {
		pods.PriorityClass = ""
	}
	var objects []runtime.Object
	if m.ConfigFile != "" {
		data, err := os.ReadFile(m.ConfigFile)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		const name = "sallyport.yaml"
		configMap := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: pods.Meta(pods.Name), Data: map[string]string{name: string(data)}}
		objects = append(objects, configMap)
		mount := install.Mount{Name: "config", Folder: path.Join(configRoot, "config")}
		mount.Source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap.Name}}
		pods.Mounts = append(pods.Mounts, mount)
		pods.Args = append(pods.Args, "--config="+path.Join(mount.Folder, name))
	}
	if w.TLSSecret != "" {
		pods.Args = append(pods.Args, install.TLSArgs(configRoot)...)
	}
	pods.Args = append(pods.Args, "--secure-port="+strconv.Itoa(int(w.SecurePort)))
	objects = append(objects, pods.Service(config.Endpoint.Service))
	return append(objects, pods.Objects()...), nil
}

// podLabels returns the label by which webhooks recognize the server's own pods. Without one,
// it returns a label for this server.
func (m *Manifests) podLabels() map[string]string {
	return install.PodLabels(m.Server.Registration.OwnPods, m.Server.Registration.Name)
}
