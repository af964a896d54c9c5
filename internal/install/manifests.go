// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"net"
	"path"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/registration/rbac"
	"github.com/sallyport-io/sallyport/serving"
)

// conversionTimeout is the API server's fixed timeout for conversion webhooks.
const conversionTimeout = 30 * time.Second

// Objects returns the objects to print, in the order of their creation. The manifests must be valid.
func (m *Manifests) Objects() ([]runtime.Object, error) {
	caBundle, err := cli.ReadCABundle("ca-file", m.CAFile)
	if err != nil {
		return nil, err
	}
	if m.has(partService) || m.has(partWorkload) {
		m.chooseConversionService()
	}
	webhooks, err := hosting.Apply(m.Registration, slices.Clone(m.chosen.Webhooks))
	if err != nil {
		return nil, err
	}
	config := hosting.Config(m.Registration)
	var objects []runtime.Object
	if m.has(partNamespace) {
		objects = append(objects, Namespace(config.Endpoint.Service.Namespace))
	}
	if m.has(partCRD) {
		crds, err := m.crds(caBundle)
		if err = errors.Join(err, m.Extra.Apply(crds)); err != nil {
			return nil, err
		}
		objects = append(objects, crds...)
	}
	if m.has(partRBAC) {
		rights := Rights{
			Registration: *m.Registration, Certificate: *m.Certificate, LeaderElection: *m.LeaderElection,
			ServiceAccount: m.ServiceAccount, Rules: m.Rules, RulesIn: m.RulesIn, CRDs: m.chosen.Converted(),
		}
		if m.chosen.Controllers {
			rights.ControllersLease = m.Name
		}
		if m.chosen.Migrates { // the leader migrates, and records events about cluster-scoped objects
			rights.ComponentsOf = m.Name
			if m.Registration.Mode != registration.ModeAPI { // otherwise it has the permission already
				rights.RulesIn = map[string][]rbacv1.PolicyRule{metav1.NamespaceDefault: rbac.EventPolicyRules()}
			}
		}
		objects = append(objects, rights.Objects()...)
	}
	longest := time.Duration(0)
	for _, webhook := range webhooks {
		longest = max(longest, time.Duration(webhook.TimeoutSeconds)*time.Second)
	}
	pods := m.pods(longest)
	if m.has(partService) {
		objects = append(objects, pods.Service(config.Endpoint.Service))
		if conversion := config.ConversionEndpoint; conversion != nil && *conversion.Service != *config.Endpoint.Service {
			service := pods.Service(conversion.Service)
			service.Spec.PublishNotReadyAddresses = true
			objects = append(objects, service)
		}
	}
	if m.has(partWorkload) {
		objects = append(objects, pods.Objects()...)
	}
	if m.has(partConfigurations) {
		// Building the components neither starts nor calls their dependencies.
		if m.chosen.Unknown {
			return nil, errors.New("there is a component that tells its webhooks only while it runs: leave out --part " + partConfigurations + ", or declare them, see sallyport.WithComponent")
		}
		configurations, err := registration.Manifests(config, webhooks, caBundle)
		if err = errors.Join(err, m.Extra.Apply(configurations)); err != nil {
			return nil, err
		}
		objects = append(objects, configurations...)
	}
	return objects, nil
}

// chooseConversionService gives converters a separate Service if the server may need converted
// objects to become ready: a replica is not an endpoint of the other Service until it is ready.
func (m *Manifests) chooseConversionService() {
	r := m.Registration
	service := hosting.Config(r).Endpoint.Service
	if service == nil || r.ConversionService != nil || len(m.chosen.Converters) == 0 || !m.chosen.Reads {
		return
	}
	own := *service
	own.Name += "-conversion"
	r.ConversionService = &own
	m.Args = append(m.Args, "--conversion-service="+hosting.FormatService(&own))
	slices.Sort(m.Args)
}

// pods returns the server's pods. timeout is the longest timeout of a webhook.
func (m *Manifests) pods(timeout time.Duration) Pods {
	config := hosting.Config(m.Registration)
	if config.Endpoint.Service == nil {
		return Pods{}
	}
	if len(m.chosen.Converters) > 0 {
		timeout = max(timeout, conversionTimeout)
	}
	pods := Pods{
		Workload: m.Workload, Namespace: config.Endpoint.Service.Namespace, Name: config.Name, Labels: PodLabels(m.Registration.OwnPods, m.Name),
		Container: m.Name, ServiceAccount: m.ServiceAccount, Args: m.Args, Folder: path.Join("/etc", m.Name),
		SecurePort: m.Serving.SecurePort, MetricsPort: m.metricsPort(), MetricsTLS: m.Authentication.Metrics != serving.AuthenticationNone,
		Drain: m.Serving.DrainTimeout, Timeout: timeout, Resources: m.Resources.requirements(),
	}
	if m.Workload.TLSSecret != "" && m.Certificate.CertFile == "" {
		pods.Args = append(slices.Clone(pods.Args), TLSArgs(pods.Folder)...)
	}
	return pods
}

func (r *Resources) requirements() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: r.CPU.Quantity, corev1.ResourceMemory: r.Memory.Quantity},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: r.MemoryLimit.Quantity},
	}
}

// metricsPort returns the port of metrics and probes, if the kubelet can reach it.
func (m *Manifests) metricsPort() int32 {
	host, port, err := net.SplitHostPort(m.Serving.MetricsBindAddress)
	number, errNumber := strconv.ParseUint(port, 10, 16)
	if address := net.ParseIP(host); err != nil || errNumber != nil || host == "localhost" || address != nil && address.IsLoopback() {
		return 0
	}
	return int32(number)
}

// crds returns the definitions. They include the conversion unless the server writes it.
func (m *Manifests) crds(caBundle []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, crd := range m.CRDs {
		crd = crd.DeepCopy()
		crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
		crd.ManagedFields = nil
		if m.Registration.Mode != registration.ModeAPI && slices.Contains(m.chosen.Converted(), crd.Name) {
			conversion, err := registration.ConversionManifest(hosting.Config(m.Registration), hosting.ConversionOf(crd.Name), caBundle)
			if err != nil {
				return nil, err
			}
			crd.Spec.Conversion = conversion
		}
		objects = append(objects, crd)
	}
	return objects, nil
}

// Converted returns the names of the definitions that have a converter.
func (c *Chosen) Converted() []string {
	var names []string
	for _, converter := range c.Converters {
		names = append(names, converter.CRD())
	}
	return names
}
