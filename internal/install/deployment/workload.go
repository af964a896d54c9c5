// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/server"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// Where the pods have what they read, and the names of their ports.
const (
	configFolder = "/etc/sallyport/config"
	tlsFolder    = "/etc/sallyport/tls"
	webhooksPort = "webhooks"
	metricsPort  = "metrics"

	metricsPortNumber = 8080 // serve's default
	certificateFile   = "tls.crt"
	privateKeyFile    = "tls.key"
	caFile            = "ca.crt"

	// drainAnnotation tells `sallyport lint` for how long the server goes on answering
	// after it was told to end, which no field of a pod says.
	drainAnnotation = "lint.sallyport.io/drain"
	// atWork is how long requests at work may take once the server has drained.
	atWork = 5 * time.Second
	// apiTimeout is what a webhook has that says nothing else, by the API's default.
	apiTimeout = 10 * time.Second
)

// Workload runs the server in a cluster: a Service, a Deployment and a PodDisruptionBudget.
type Workload struct {
	Image         string
	Replicas      int32
	SecurePort    int32
	PriorityClass string // empty for none
	// TLSSecret has tls.crt, tls.key and ca.crt, for certificates from files.
	TLSSecret string
}

func (w *Workload) validate(m *Manifests) error {
	var errs []error
	if w.Image == "" {
		errs = append(errs, errors.New("--part workload needs --image: nobody else can know which image the server has"))
	}
	if m.Server.Registration.Service == "" {
		errs = append(errs, errors.New("--part workload needs --service: it is for a server in the cluster"))
	}
	if w.Replicas < 1 {
		errs = append(errs, fmt.Errorf("--replicas %d: at least 1, and 2 or more for a server that is always there", w.Replicas))
	}
	for _, problem := range validation.IsValidPortNum(int(w.SecurePort)) {
		errs = append(errs, fmt.Errorf("--secure-port %d: %s", w.SecurePort, problem))
	}
	if w.SecurePort == metricsPortNumber {
		errs = append(errs, fmt.Errorf("--secure-port %d is that of metrics and probes: choose another", w.SecurePort))
	}
	if m.Server.Registration.Mode == string(registration.ModeManifest) {
		errs = append(errs, errors.New("--part workload: a server that writes static manifests runs beside kube-apiserver; see config/static"))
	}
	if m.Server.Authentication.Mode == hosting.AuthenticationClientCA {
		errs = append(errs, errors.New("--part workload cannot give the pods the file of --client-ca-file: use the Helm chart, which can"))
	}
	if w.PriorityClass != "" {
		for _, problem := range validation.IsDNS1123Subdomain(w.PriorityClass) {
			errs = append(errs, fmt.Errorf("--priority-class %q: %s", w.PriorityClass, problem))
		}
	}
	switch files := m.Server.Certificate.Source == hosting.SourceFiles; {
	case files && w.TLSSecret == "":
		errs = append(errs, errors.New("--certificate-source files needs --tls-secret for --part workload: where the pods have the certificate from"))
	case !files && w.TLSSecret != "":
		errs = append(errs, errors.New("--tls-secret needs --certificate-source files"))
	case files:
		for _, problem := range validation.IsDNS1123Subdomain(w.TLSSecret) {
			errs = append(errs, fmt.Errorf("--tls-secret %q: %s", w.TLSSecret, problem))
		}
	}
	return errors.Join(errs...)
}

// objects are in the order in which they have to be created.
func (w *Workload) objects(m *Manifests) ([]runtime.Object, error) {
	config := m.registration()
	service := config.Endpoint.Service
	args := append([]string{"serve"}, server.Given(m.Given)...)
	settings := m.Server.AppServing()
	pod, managed := m.podLabels(), m.podLabels()
	managed[registration.ManagedByLabel] = registration.ManagedByValue
	meta := metav1.ObjectMeta{Namespace: service.Namespace, Name: config.Name, Labels: managed}
	var objects []runtime.Object
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: pod, Annotations: map[string]string{drainAnnotation: settings.DrainMax.String()}},
		Spec:       w.pod(m, settings, pod),
	}
	if !m.Given.Changed("priority-class") && m.Server.Registration.FailurePolicy == string(admissionregistrationv1.Ignore) && m.Server.Settings.PodDefault.Guard != server.GuardBackstop {
		template.Spec.PriorityClassName = ""
	}
	container := &template.Spec.Containers[0]
	mount := func(name, folder string, source corev1.VolumeSource) {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: folder, ReadOnly: true})
	}
	if m.ConfigFile != "" {
		data, err := os.ReadFile(m.ConfigFile)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		const name = "sallyport.yaml"
		configMap := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{name: string(data)}}
		objects = append(objects, configMap)
		mount("config", configFolder, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: meta.Name}}})
		args = append(args, "--config="+path.Join(configFolder, name))
	}
	if w.TLSSecret != "" {
		mount("tls", tlsFolder, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: w.TLSSecret}})
		args = append(args, "--tls-cert-file="+path.Join(tlsFolder, certificateFile), "--tls-private-key-file="+path.Join(tlsFolder, privateKeyFile),
			"--tls-ca-file="+path.Join(tlsFolder, caFile))
	}
	args = append(args, "--secure-port="+strconv.Itoa(int(w.SecurePort)))
	container.Args = args

	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	serviceMeta := meta
	serviceMeta.Name = service.Name
	return append(objects,
		&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: serviceMeta,
			Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeClusterIP, Selector: pod,
				Ports: []corev1.ServicePort{{
					Name: webhooksPort, Port: cmp.Or(service.Port, 443), TargetPort: intstr.FromString(webhooksPort),
					Protocol: corev1.ProtocolTCP,
				}},
			},
		},
		&appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Replicas: &w.Replicas,
				Selector: &metav1.LabelSelector{MatchLabels: pod},
				Strategy: appsv1.DeploymentStrategy{
					Type:          appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one},
				},
				Template: template,
			},
		},
		&policyv1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"}, ObjectMeta: meta,
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: pod},
			},
		}), nil
}

// pod meets the restricted Pod Security Standard, and its root file system is read-only.
func (w *Workload) pod(m *Manifests, settings serving.Options, labels map[string]string) corev1.PodSpec {
	yes, no, user := true, false, int64(65532)
	grace := int64((settings.DrainMax + atWork + max(apiTimeout, time.Duration(m.Server.Registration.TimeoutSeconds)*time.Second)).Seconds())
	get := func(path, port string, scheme corev1.URIScheme) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port), Scheme: scheme}}
	}
	metrics := corev1.URISchemeHTTP
	if m.Server.Authentication.Metrics != hosting.AuthenticationNone {
		metrics = corev1.URISchemeHTTPS
	}
	return corev1.PodSpec{
		ServiceAccountName:            m.ServiceAccount,
		PriorityClassName:             w.PriorityClass,
		TerminationGracePeriodSeconds: &grace,
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			},
			{
				MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			},
		},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:  "sallyport",
			Image: w.Image,
			Ports: []corev1.ContainerPort{
				{Name: webhooksPort, ContainerPort: w.SecurePort, Protocol: corev1.ProtocolTCP},
				{Name: metricsPort, ContainerPort: metricsPortNumber, Protocol: corev1.ProtocolTCP},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: get("/readyz", webhooksPort, corev1.URISchemeHTTPS), PeriodSeconds: 2},
			LivenessProbe:  &corev1.Probe{ProbeHandler: get("/livez", metricsPort, metrics), PeriodSeconds: 10, TimeoutSeconds: 5},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}, // none for the CPU: it would show as latency of the API
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

// podLabels is the label by which webhooks know the server's own pods or, if they do not,
// one for this server.
func (m *Manifests) podLabels() map[string]string {
	key, value, ok := strings.Cut(m.Server.Registration.OwnPods, "=")
	if !ok {
		key, value = "app.kubernetes.io/name", m.Server.Registration.Name
	}
	return map[string]string{key: value}
}

// namespace is one in which only restricted pods run.
func namespace(name string) runtime.Object {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			registration.ManagedByLabel:                  registration.ManagedByValue,
			"pod-security.kubernetes.io/enforce":         "restricted",
			"pod-security.kubernetes.io/enforce-version": "latest",
		}},
	}
}
