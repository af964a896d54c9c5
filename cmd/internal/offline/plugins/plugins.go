// SPDX-License-Identifier: Apache-2.0

// Package plugins evaluates kube-apiserver's own admission plugins for a new pod, with the objects that are in
// files: NamespaceLifecycle, LimitRanger, ServiceAccount, Priority, RuntimeClass, ResourceQuota, and what
// the API server demands of mirror pods. It decides only what these objects make certain; the rest is unknown, or left
// to a cluster ([Open]). The plugins are in k8s.io/kubernetes/plugin/pkg/admission, which cannot be imported.
package plugins

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/limitranger"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Objects are the objects that the plugins read.
type Objects struct {
	namespaces      map[string]*corev1.Namespace
	accounts        map[[2]string]*corev1.ServiceAccount
	priorityClasses map[string]*schedulingv1.PriorityClass
	runtimeClasses  map[string]*nodev1.RuntimeClass
	limitRanges     map[string][]*corev1.LimitRange
	quotas          map[string][]*corev1.ResourceQuota
}

// Reads reports whether the plugins read objects of a kind.
func Reads(kind schema.GroupVersionKind) bool { return decoders[kind] != nil }

var decoders = map[schema.GroupVersionKind]func(*Objects, *manifest.Object, string) error{
	corev1.SchemeGroupVersion.WithKind("Namespace"): func(o *Objects, from *manifest.Object, _ string) error {
		return decode(from, func(n *corev1.Namespace) { o.namespaces[from.Name] = n })
	},
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"): func(o *Objects, from *manifest.Object, namespace string) error {
		return decode(from, func(a *corev1.ServiceAccount) { o.accounts[[2]string{namespace, from.Name}] = a })
	},
	schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"): func(o *Objects, from *manifest.Object, _ string) error {
		return decode(from, func(c *schedulingv1.PriorityClass) { o.priorityClasses[from.Name] = c })
	},
	nodev1.SchemeGroupVersion.WithKind("RuntimeClass"): func(o *Objects, from *manifest.Object, _ string) error {
		return decode(from, func(c *nodev1.RuntimeClass) { o.runtimeClasses[from.Name] = c })
	},
	corev1.SchemeGroupVersion.WithKind("LimitRange"): func(o *Objects, from *manifest.Object, namespace string) error {
		return decode(from, func(r *corev1.LimitRange) {
			limitranger.Default(r)
			o.limitRanges[namespace] = append(o.limitRanges[namespace], r)
		})
	},
	corev1.SchemeGroupVersion.WithKind("ResourceQuota"): func(o *Objects, from *manifest.Object, namespace string) error {
		return decode(from, func(q *corev1.ResourceQuota) { o.quotas[namespace] = append(o.quotas[namespace], q) })
	},
}

func decode[T any](from *manifest.Object, into func(*T)) error {
	value := new(T)
	if err := from.Decode(value); err != nil {
		return err
	}
	into(value)
	return nil
}

// Read reads the objects that plugins read. Those without a namespace are in the given one. The error reports
// all problems.
func Read(objects []*manifest.Object, namespace string) (*Objects, error) {
	out := &Objects{
		namespaces: map[string]*corev1.Namespace{}, accounts: map[[2]string]*corev1.ServiceAccount{},
		priorityClasses: map[string]*schedulingv1.PriorityClass{}, runtimeClasses: map[string]*nodev1.RuntimeClass{},
		limitRanges: map[string][]*corev1.LimitRange{}, quotas: map[string][]*corev1.ResourceQuota{},
	}
	type key struct {
		kind            schema.GroupVersionKind
		namespace, name string
	}
	seen := map[key]bool{}
	var errs []error
	for _, o := range objects {
		read := decoders[o.GVK()]
		of := cmp.Or(o.Namespace, namespace)
		if k := (key{o.GVK(), of, o.Name}); read != nil && o.Name != "" && !seen[k] {
			seen[k] = true
			errs = append(errs, read(out, o, of))
		}
	}
	return out, errors.Join(errs...)
}

// A Pod is a new pod.
type Pod struct {
	Namespace string
	// Sent is the pod as the user or controller sends it, Final as webhooks and policies leave it.
	Sent, Final *corev1.Pod
	// Origins say what sets fields of the final pod.
	Origins []admission.Origin
}

// An Answer is what the plugins say of a pod. What is unknown decides only if the pod is not denied.
type Answer struct {
	// Denied is the refusal of By; nil if none is certain.
	Denied *metav1.Status
	By     string
	// Unknown lists inputs of the answer that are not in the files.
	Unknown []string
	// Open is what only a cluster can tell of each pod.
	Open Open
}

// deny records the first refusal.
func (a *Answer) deny(by, format string, args ...any) {
	if a.Denied == nil {
		a.Denied, a.By = &metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: fmt.Sprintf(format, args...),
		}, by
	}
}

func (a *Answer) unknown(format string, args ...any) {
	a.Unknown = append(a.Unknown, fmt.Sprintf(format, args...))
}

// CheckPod evaluates the plugins but NamespaceLifecycle and LimitRanger, and adds what they say to an answer.
func (o *Objects) CheckPod(a *Answer, p Pod) {
	mirror := mirrorPod(a, p.Final)
	if !mirror {
		o.account(a, p)
	}
	o.priority(a, p)
	o.runtimeClass(a, p)
	pod := p.Final.DeepCopy()
	o.Default(p.Namespace, pod)
	if class := o.defaultClass(); class != nil && pod.Spec.PriorityClassName == "" {
		pod.Spec.PriorityClassName = class.Name
	}
	if !o.Ranged(p.Namespace) {
		a.Open.add(openLimits, p.Namespace)
	}
	o.quota(a, p.Namespace, pod)
}

// setBy returns what sets a field, as the end of a clause; empty if the pod came with it.
func (p Pod) setBy(pointer string) string {
	source := ""
	for _, origin := range p.Origins {
		if origin.Path == pointer {
			source = origin.Source
		}
	}
	if source == "" {
		return ""
	}
	return ", which " + source + " sets"
}

// both calls a function with the pod as sent, and as it is finally: plugins are called before webhooks and, as
// these change it, again.
func (p Pod) both(check func(*corev1.Pod)) {
	check(p.Sent)
	check(p.Final)
}
