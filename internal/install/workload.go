// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/serving"
)

// The port names of pods.
const (
	WebhooksPort = "webhooks"
	MetricsPort  = "metrics"
)

const (
	// drainAnnotation tells `sallyport lint` how long the server keeps serving after a shutdown
	// signal. No field of a pod does.
	drainAnnotation = "lint.sallyport.io/drain"
	// atWork is how long running requests may take after the drain.
	atWork = 5 * time.Second
	// apiTimeout is the API's default timeout of a webhook.
	apiTimeout = 10 * time.Second
)

// The keys of a Secret of type kubernetes.io/tls, and the one that cert-manager adds.
const (
	certificateFile = "tls.crt"
	privateKeyFile  = "tls.key"
	caFile          = "ca.crt"
)

// Workload selects the image and the number of pods of the server.
type Workload struct {
	Image         string
	Replicas      int32
	PriorityClass string // empty for none
	// TLSSecret has tls.crt, tls.key and ca.crt, for certificates from files.
	TLSSecret string
}

// Validate reports every problem, by the flags of the command manifests. The arguments are the
// server's settings.
func (w *Workload) Validate(s *hosting.Settings) error {
	var errs []error
	if w.Image == "" {
		errs = append(errs, errors.New("--part workload needs --image"))
	}
	if s.Registration.Service == nil {
		errs = append(errs, errors.New("--part workload needs --service: it is for a server in the cluster"))
	}
	if w.Replicas < 1 {
		errs = append(errs, fmt.Errorf("--replicas %d: at least 1, and 2 or more for a server that is always there", w.Replicas))
	}
	if s.Registration.Mode == registration.ModeManifest {
		errs = append(errs, errors.New("--part workload: a server that writes static manifests runs beside kube-apiserver; see config/static"))
	}
	if s.Authentication.Mode == serving.AuthenticationClientCA {
		errs = append(errs, errors.New("--part workload cannot give the pods the file of --client-ca-file: print it without this flag, and add both the flag and a volume, with kustomize for example"))
	}
	if w.PriorityClass != "" {
		for _, problem := range validation.IsDNS1123Subdomain(w.PriorityClass) {
			errs = append(errs, fmt.Errorf("--priority-class %q: %s", w.PriorityClass, problem))
		}
	}
	switch files := s.Certificate.Source == certificate.SourceFiles; {
	case files && w.TLSSecret == "":
		errs = append(errs, errors.New("--certificate-source Files needs --tls-secret for --part workload: where the pods have the certificate from"))
	case !files && w.TLSSecret != "":
		errs = append(errs, errors.New("--tls-secret needs --certificate-source Files"))
	case files:
		for _, problem := range validation.IsDNS1123Subdomain(w.TLSSecret) {
			errs = append(errs, fmt.Errorf("--tls-secret %q: %s", w.TLSSecret, problem))
		}
	}
	return errors.Join(errs...)
}

// Mount is a read-only folder in the container.
type Mount struct {
	Name, Folder string
	Source       corev1.VolumeSource
}

// Pods describes the pods that run a server.
type Pods struct {
	Workload

	// Namespace and Name are the Deployment's.
	Namespace, Name string
	Labels          map[string]string
	Container       string // its name
	ServiceAccount  string
	Args            []string
	// Folder is the parent of the folder tls, where the certificate of TLSSecret is mounted.
	Folder string
	Mounts []Mount
	// SecurePort and MetricsPort are port numbers; MetricsPort is 0 if there is none.
	SecurePort, MetricsPort int32
	MetricsTLS              bool
	// Drain is how long the server keeps serving after a shutdown signal. Timeout is the
	// longest timeout of a webhook; 0 means the API's default.
	Drain, Timeout time.Duration
	Resources      corev1.ResourceRequirements
}

// DefaultResources returns the default resources of a webhook server. It sets no CPU limit,
// because throttling would add API latency.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

// Meta returns the metadata of an object that belongs to the pods.
func (p *Pods) Meta(name string) metav1.ObjectMeta {
	meta := managed(p.Namespace, name)
	for key, value := range p.Labels {
		meta.Labels[key] = value
	}
	return meta
}

// Service returns the Service of the pods.
func (p *Pods) Service(reference *registration.Service) *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: p.Meta(reference.Name),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: p.Labels,
			Ports: []corev1.ServicePort{{
				Name: WebhooksPort, Port: cmp.Or(reference.Port, 443), TargetPort: intstr.FromString(WebhooksPort),
				Protocol: corev1.ProtocolTCP,
			}},
		},
	}
}

// Objects returns the Deployment and its PodDisruptionBudget.
func (p *Pods) Objects() []runtime.Object {
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	return []runtime.Object{
		&appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}, ObjectMeta: p.Meta(p.Name),
			Spec: appsv1.DeploymentSpec{
				Replicas: &p.Replicas,
				Selector: &metav1.LabelSelector{MatchLabels: p.Labels},
				Strategy: appsv1.DeploymentStrategy{
					Type:          appsv1.RollingUpdateDeploymentStrategyType,
					RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one},
				},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: map[string]string{drainAnnotation: p.Drain.String()}},
					Spec:       p.spec(),
				},
			},
		},
		&policyv1.PodDisruptionBudget{
			TypeMeta: metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"}, ObjectMeta: p.Meta(p.Name),
			Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: p.Labels},
			},
		},
	}
}

// spec meets the restricted Pod Security Standard and has a read-only root file system.
func (p *Pods) spec() corev1.PodSpec {
	yes, no, user := true, false, int64(65532)
	grace := int64((p.Drain + atWork + max(apiTimeout, p.Timeout)).Seconds())
	get := func(path, port string, scheme corev1.URIScheme) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port), Scheme: scheme}}
	}
	ports := []corev1.ContainerPort{{Name: WebhooksPort, ContainerPort: p.SecurePort, Protocol: corev1.ProtocolTCP}}
	live := get("/livez", WebhooksPort, corev1.URISchemeHTTPS)
	if p.MetricsPort != 0 {
		ports = append(ports, corev1.ContainerPort{Name: MetricsPort, ContainerPort: p.MetricsPort, Protocol: corev1.ProtocolTCP})
		live = get("/livez", MetricsPort, corev1.URISchemeHTTP)
		if p.MetricsTLS {
			live.HTTPGet.Scheme = corev1.URISchemeHTTPS
		}
	}
	spread := func(topology string) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}
	}
	spec := corev1.PodSpec{
		ServiceAccountName:            p.ServiceAccount,
		PriorityClassName:             p.PriorityClass,
		TerminationGracePeriodSeconds: &grace,
		TopologySpreadConstraints:     []corev1.TopologySpreadConstraint{spread(corev1.LabelHostname), spread(corev1.LabelTopologyZone)},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:           p.Container,
			Image:          p.Image,
			Args:           p.Args,
			Ports:          ports,
			ReadinessProbe: &corev1.Probe{ProbeHandler: get("/readyz", WebhooksPort, corev1.URISchemeHTTPS), PeriodSeconds: 2},
			LivenessProbe:  &corev1.Probe{ProbeHandler: live, PeriodSeconds: 10, TimeoutSeconds: 5},
			Resources:      p.Resources,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
	mounts := p.Mounts
	if p.TLSSecret != "" {
		source := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: p.TLSSecret}}
		mounts = append(mounts[:len(mounts):len(mounts)], Mount{Name: "tls", Folder: TLSFolder(p.Folder), Source: source})
	}
	for _, mount := range mounts {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: mount.Name, VolumeSource: mount.Source})
		container := &spec.Containers[0]
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: mount.Name, MountPath: mount.Folder, ReadOnly: true})
	}
	return spec
}

// PodLabels returns the label by which webhooks recognize the server's own pods, "key=value".
// Without one, it returns a label with the server's name.
func PodLabels(ownPods, name string) map[string]string {
	key, value, ok := strings.Cut(ownPods, "=")
	if !ok {
		key, value = "app.kubernetes.io/name", name
	}
	return map[string]string{key: value}
}

// TLSFolder returns the folder of the certificate files, below a folder of the server.
func TLSFolder(folder string) string { return path.Join(folder, "tls") }

// TLSArgs returns the flags that name the certificate files in that folder.
func TLSArgs(folder string) []string {
	folder = TLSFolder(folder)
	return []string{
		"--tls-cert-file=" + path.Join(folder, certificateFile), "--tls-private-key-file=" + path.Join(folder, privateKeyFile),
		"--tls-ca-file=" + path.Join(folder, caFile),
	}
}

// Namespace returns a namespace that admits only restricted pods.
func Namespace(name string) runtime.Object {
	meta := managed("", name)
	meta.Labels["pod-security.kubernetes.io/enforce"], meta.Labels["pod-security.kubernetes.io/enforce-version"] = "restricted", "latest"
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: meta}
}
