// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// workload is an object that creates pods.
type workload struct {
	*Object
	replicas int32 // 1 by default
	scaler   *scaler
	every    bool // one pod per node
	template corev1.PodTemplateSpec
	path     string // JSON pointer to the pod spec
}

func (in *Inventory) addDeployment(o *Object) error {
	t, err := read[appsv1.Deployment](o)
	if err != nil {
		return err
	}
	in.workloads = append(in.workloads, &workload{Object: o, replicas: number(t.value.Spec.Replicas), template: t.value.Spec.Template, path: "/spec/template/spec"})
	return nil
}

func (in *Inventory) addStatefulSet(o *Object) error {
	t, err := read[appsv1.StatefulSet](o)
	if err != nil {
		return err
	}
	in.workloads = append(in.workloads, &workload{Object: o, replicas: number(t.value.Spec.Replicas), template: t.value.Spec.Template, path: "/spec/template/spec"})
	return nil
}

func (in *Inventory) addDaemonSet(o *Object) error {
	t, err := read[appsv1.DaemonSet](o)
	if err != nil {
		return err
	}
	in.workloads = append(in.workloads, &workload{Object: o, every: true, template: t.value.Spec.Template, path: "/spec/template/spec"})
	return nil
}

func number(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// namespace defaults to default.
func (w *workload) namespace() string {
	if w.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return w.Namespace
}

// behind returns the workloads whose pods a Service selects.
func (in *Inventory) behind(s *typed[corev1.Service]) []*workload {
	if len(s.value.Spec.Selector) == 0 {
		return nil
	}
	if known, ok := in.behindService[s]; ok {
		return known
	}
	var out []*workload
	selector := labels.SelectorFromSet(s.value.Spec.Selector)
	for _, w := range in.workloadsByNamespace[s.Namespace] {
		if selector.Matches(labels.Set(w.template.Labels)) {
			out = append(out, w)
		}
	}
	in.behindService[s] = out
	return out
}

// backend is a webhook server: a Service, one of its ports, and a workload.
type backend struct {
	service  *typed[corev1.Service]
	workload *workload
	port     int32      // of the Service
	webhooks []*webhook // served webhooks; none for a server that registers itself later
	converts []string   // names of the CRDs that it converts
}

// seconds returns the longest timeout of a caller.
func (b *backend) seconds() int32 {
	longest := int32(0)
	for _, w := range b.webhooks {
		longest = max(longest, w.seconds())
	}
	if len(b.converts) > 0 {
		longest = max(longest, 30)
	}
	if longest > 0 {
		return longest
	}
	for _, c := range b.workload.template.Spec.Containers {
		if !serves(c) {
			continue
		}
		longest = 5 // the default of registration.timeoutSeconds
		if text, ok := argument(c, "webhook-timeout"); ok {
			if n, err := strconv.ParseInt(text, 10, 32); err == nil {
				longest = int32(n)
			}
		}
		return longest
	}
	return 10 // the API's default
}

// backends returns the servers of all webhooks and conversions, and Sallyport servers,
// which register their webhooks at run time.
func (in *Inventory) backends() []*backend {
	if in.allBackends == nil {
		in.allBackends = in.findBackends()
	}
	return in.allBackends
}

func (in *Inventory) findBackends() []*backend {
	out := []*backend{}
	type key struct {
		service  *typed[corev1.Service]
		workload *workload
		port     int32
	}
	known := map[key]*backend{}
	at := func(namespace, name string, port *int32) []*backend {
		s := in.serviceOf(namespace, name)
		if s == nil {
			return nil
		}
		number := int32(443)
		if port != nil {
			number = *port
		}
		var found []*backend
		for _, w := range in.behind(s) {
			k := key{s, w, number}
			if known[k] == nil {
				known[k] = &backend{service: s, workload: w, port: number}
				out = append(out, known[k])
			}
			found = append(found, known[k])
		}
		return found
	}
	for _, w := range in.webhooks {
		if s := w.ClientConfig.Service; s != nil {
			for _, b := range at(s.Namespace, s.Name, s.Port) {
				b.webhooks = append(b.webhooks, w)
			}
		}
	}
	for _, d := range in.definitions {
		if c := conversionClient(d); c != nil && c.Service != nil {
			for _, b := range at(c.Service.Namespace, c.Service.Name, c.Service.Port) {
				b.converts = append(b.converts, d.Name)
			}
		}
	}
	for _, w := range in.workloads {
		service, ok := sallyportService(w)
		if !ok {
			continue
		}
		namespace, rest, _ := strings.Cut(service, "/")
		name, text, _ := strings.Cut(rest, ":")
		port := int32(443)
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			port = int32(n)
		}
		at(namespace, name, &port)
	}
	return out
}

// sallyportService returns the configured Service of a Sallyport server.
func sallyportService(w *workload) (string, bool) {
	for _, c := range w.template.Spec.Containers {
		if service, ok := argument(c, "service"); ok && serves(c) {
			return service, true
		}
	}
	return "", false
}

// serves reports whether a container runs sallyport serve.
func serves(c corev1.Container) bool {
	return len(c.Args) > 0 && c.Args[0] == "serve" && slices.ContainsFunc(c.Args, func(a string) bool {
		return strings.HasPrefix(a, "--service") || strings.HasPrefix(a, "--url")
	})
}

// argument returns the value of a flag in a container's arguments.
func argument(c corev1.Container, name string) (string, bool) {
	for i, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value, true
		}
		if arg == "--"+name && i+1 < len(c.Args) {
			return c.Args[i+1], true
		}
	}
	return "", false
}

// targetPort returns the container and port behind a port of the Service. The port is 0 if the Service has no such port, or
// no container has one of its target's name. The container is nil if it is not known: it need not declare the port's number.
func (b *backend) targetPort() (*corev1.Container, int32) {
	ports := b.service.value.Spec.Ports
	i := slices.IndexFunc(ports, func(p corev1.ServicePort) bool { return p.Port == b.port })
	if i < 0 {
		return nil, 0
	}
	target := ports[i].TargetPort
	if target == (intstr.IntOrString{}) {
		target = intstr.FromInt32(ports[i].Port)
	}
	containers := b.workload.template.Spec.Containers
	for c := range containers {
		for _, port := range containers[c].Ports {
			if target.Type == intstr.String && port.Name == target.StrVal || target.Type == intstr.Int && port.ContainerPort == target.IntVal {
				return &containers[c], port.ContainerPort
			}
		}
	}
	if target.Type == intstr.Int {
		if len(containers) == 1 {
			return &containers[0], target.IntVal
		}
		return nil, target.IntVal
	}
	return nil, 0
}

// drain returns how long the server keeps answering after SIGTERM, and whether that is
// known.
func (b *backend) drain() (time.Duration, bool) {
	container, _ := b.targetPort()
	if container == nil {
		return 0, false
	}
	if serves(*container) {
		if text, ok := argument(*container, "drain-timeout"); ok {
			if d, err := time.ParseDuration(text); err == nil {
				return d, true
			}
		}
	}
	if said, ok := b.workload.template.Annotations[drainAnnotation]; ok {
		if d, err := time.ParseDuration(said); err == nil {
			return d, true
		}
	}
	if serves(*container) {
		return 95 * time.Second, true // the default of serving.drainTimeout
	}
	if container.Lifecycle == nil || container.Lifecycle.PreStop == nil {
		return 0, false
	}
	stop := container.Lifecycle.PreStop
	if stop.Sleep != nil {
		return time.Duration(stop.Sleep.Seconds) * time.Second, true
	}
	if stop.Exec != nil {
		words := strings.Fields(strings.Join(stop.Exec.Command, " "))
		for i, word := range words {
			if (word == "sleep" || strings.HasSuffix(word, "/sleep")) && i+1 < len(words) {
				if n, err := strconv.ParseFloat(strings.TrimSuffix(words[i+1], "s"), 64); err == nil {
					return time.Duration(n * float64(time.Second)), true
				}
			}
		}
	}
	return 0, true // something runs, for an unknown time
}

// drainAnnotation on a pod template says how long a server without a preStop hook keeps
// answering after SIGTERM, as a Go duration.
const drainAnnotation = "lint.sallyport.io/drain"

// name returns "Deployment namespace/name".
func (w *workload) name() string { return w.Kind + " " + w.namespace() + "/" + w.Name }
