// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	frontdoor "github.com/sallyport-io/sallyport"
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

// workloadManifests are what runs the server in a cluster: a namespace, a Service, a
// Deployment and a PodDisruptionBudget.
type workloadManifests struct {
	image         string
	replicas      int32
	securePort    int32
	priorityClass string
	tlsSecret     string
}

func (w *workloadManifests) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.image, "image", "", "with --part workload: the `image` of the server")
	flags.Int32Var(&w.replicas, "replicas", 2, "with --part workload: `number` of servers")
	flags.Int32Var(&w.securePort, "secure-port", 8443,
		"with --part workload: `port` of the container; control planes outside of the cluster's network reach few others without a firewall rule")
	flags.StringVar(&w.priorityClass, "priority-class", "system-cluster-critical",
		"with --part workload: `name` of the pods' priority class; empty where a quota does not allow it, and by default where the failure policy is Ignore and so nothing waits for a server")
	flags.StringVar(&w.tlsSecret, "tls-secret", "",
		"with --part workload and --certificate-source files: `name` of the Secret with tls.crt, tls.key and ca.crt")
}

func (w *workloadManifests) validate(o *manifestsOptions) error {
	var errs []error
	if w.image == "" {
		errs = append(errs, errors.New("--part workload needs --image: nobody else can know which image the server has"))
	}
	if o.server.Registration.Service == "" {
		errs = append(errs, errors.New("--part workload needs --service: it is for a server in the cluster"))
	}
	if w.replicas < 1 {
		errs = append(errs, fmt.Errorf("--replicas %d: at least 1, and 2 or more for a server that is always there", w.replicas))
	}
	for _, problem := range validation.IsValidPortNum(int(w.securePort)) {
		errs = append(errs, fmt.Errorf("--secure-port %d: %s", w.securePort, problem))
	}
	if w.securePort == metricsPortNumber {
		errs = append(errs, fmt.Errorf("--secure-port %d is that of metrics and probes: choose another", w.securePort))
	}
	if o.server.Registration.Mode == string(registration.ModeManifest) {
		errs = append(errs, errors.New("--part workload: a server that writes static manifests runs beside kube-apiserver; see config/static"))
	}
	if o.server.Authentication.Mode == frontdoor.AuthenticationClientCA {
		errs = append(errs, errors.New("--part workload cannot give the pods the file of --client-ca-file: use the Helm chart, which can"))
	}
	if w.priorityClass != "" {
		for _, problem := range validation.IsDNS1123Subdomain(w.priorityClass) {
			errs = append(errs, fmt.Errorf("--priority-class %q: %s", w.priorityClass, problem))
		}
	}
	switch files := o.server.Certificate.Source == frontdoor.SourceFiles; {
	case files && w.tlsSecret == "":
		errs = append(errs, errors.New("--certificate-source files needs --tls-secret for --part workload: where the pods have the certificate from"))
	case !files && w.tlsSecret != "":
		errs = append(errs, errors.New("--tls-secret: of no use without --certificate-source files"))
	case files:
		for _, problem := range validation.IsDNS1123Subdomain(w.tlsSecret) {
			errs = append(errs, fmt.Errorf("--tls-secret %q: %s", w.tlsSecret, problem))
		}
	}
	return errors.Join(errs...)
}

// objects are in the order in which they must be there. given are the flags of the
// command, of which serve gets what it knows.
func (w *workloadManifests) objects(o *manifestsOptions, given *pflag.FlagSet) ([]runtime.Object, error) {
	config := o.registration()
	service := config.Endpoint.Service
	args := append([]string{"serve"}, server.Given(given)...)
	settings := o.server.AppServing()
	meta := metav1.ObjectMeta{Namespace: service.Namespace, Name: config.Name, Labels: w.labels(o)}
	pod := w.podLabels(o)
	var objects []runtime.Object
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: pod, Annotations: map[string]string{drainAnnotation: settings.DrainMax.String()}},
		Spec:       w.pod(o, settings, pod),
	}
	if !given.Changed("priority-class") && o.server.Registration.FailurePolicy == string(admissionregistrationv1.Ignore) && o.server.Settings.PodDefault.Guard != server.GuardBackstop {
		template.Spec.PriorityClassName = ""
	}
	container := &template.Spec.Containers[0]
	mount := func(name, folder string, source corev1.VolumeSource) {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: folder, ReadOnly: true})
	}
	if o.config != "" {
		data, err := os.ReadFile(o.config)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		const name = "sallyport.yaml"
		configMap := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{name: string(data)}}
		objects = append(objects, configMap)
		mount("config", configFolder, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: meta.Name}}})
		args = append(args, "--config="+path.Join(configFolder, name))
	}
	if w.tlsSecret != "" {
		mount("tls", tlsFolder, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: w.tlsSecret}})
		args = append(args, "--tls-cert-file="+path.Join(tlsFolder, certificateFile), "--tls-private-key-file="+path.Join(tlsFolder, privateKeyFile),
			"--tls-ca-file="+path.Join(tlsFolder, caFile))
	}
	args = append(args, "--secure-port="+strconv.Itoa(int(w.securePort)))
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
				Replicas: &w.replicas,
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

// pod is the smallest that Pod Security Standards call restricted, with a root that
// nothing can write to.
func (w *workloadManifests) pod(o *manifestsOptions, settings serving.Options, labels map[string]string) corev1.PodSpec {
	yes, no, user := true, false, int64(65532)
	grace := int64((settings.DrainMax + atWork + max(apiTimeout, time.Duration(o.server.Registration.TimeoutSeconds)*time.Second)).Seconds())
	get := func(path, port string, scheme corev1.URIScheme) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port), Scheme: scheme}}
	}
	metrics := corev1.URISchemeHTTP
	if o.server.Authentication.Metrics != frontdoor.AuthenticationNone {
		metrics = corev1.URISchemeHTTPS
	}
	return corev1.PodSpec{
		ServiceAccountName:            o.serviceAccount,
		PriorityClassName:             w.priorityClass,
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
			Image: w.image,
			Ports: []corev1.ContainerPort{
				{Name: webhooksPort, ContainerPort: w.securePort, Protocol: corev1.ProtocolTCP},
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

func (w *workloadManifests) labels(o *manifestsOptions) map[string]string {
	labels := w.podLabels(o)
	labels[registration.ManagedByLabel] = registration.ManagedByValue
	return labels
}

// podLabels is the label by which webhooks know the server's own pods, or one of its
// own if they do not.
func (w *workloadManifests) podLabels(o *manifestsOptions) map[string]string {
	key, value, ok := strings.Cut(o.server.Registration.OwnPods, "=")
	if !ok {
		key, value = "app.kubernetes.io/name", o.server.Registration.Name
	}
	return map[string]string{key: value}
}

// namespaceManifest is a namespace in which only such pods run.
func namespaceManifest(name string) runtime.Object {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			registration.ManagedByLabel:                  registration.ManagedByValue,
			"pod-security.kubernetes.io/enforce":         "restricted",
			"pod-security.kubernetes.io/enforce-version": "latest",
		}},
	}
}
