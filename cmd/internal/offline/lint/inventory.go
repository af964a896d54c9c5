// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "sigs.k8s.io/json"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
)

// Object is an object that was read.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	Labels, Annotations               map[string]string
	// Raw is the object as JSON.
	Raw []byte
	// At returns the file and line of the value at a JSON pointer. It is nil for
	// objects of a cluster.
	At func(pointer string) (file string, line int)
	// Static is set for objects in a directory of static admission manifests
	// (KEP-5793).
	Static bool

	problems []error // unknown or duplicate fields
}

// title names the object: "Kind/namespace/name".
func (o *Object) title() string {
	name := o.Name
	if name == "" {
		name = "(without a name)"
	}
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return o.Kind + "/" + name
}

func (o *Object) at(pointer string) (string, int) {
	if o.At == nil {
		return "", 0
	}
	return o.At(pointer)
}

// staticSuffix is the suffix of names of static configurations.
const staticSuffix = ".static.k8s.io"

// static reports whether kube-apiserver reads the object from a file. The suffix has no
// other use, so a manifest outside the directory is recognized too.
func (o *Object) static() bool {
	return o.Static || o.At != nil && strings.HasSuffix(o.Name, staticSuffix)
}

// Inventory holds all objects by kind.
type Inventory struct {
	// cluster is set if the objects come from a cluster.
	cluster bool
	// complete has the kinds of which all objects were read.
	complete map[string]bool
	checked  map[string]int
	unread   []Skipped

	misspelt       []*Object // with unknown fields
	configurations []*configuration
	webhooks       []*webhook // of all configurations
	policies       []*policy
	bindings       []*policyBinding

	services         []*typed[corev1.Service]
	endpointSlices   []*typed[discoveryv1.EndpointSlice]
	workloads        []*workload
	scalers          []*scaler
	budgets          []*typed[policyv1.PodDisruptionBudget]
	networkPolicies  []*typed[networkingv1.NetworkPolicy]
	definitions      []*typed[apiextensionsv1.CustomResourceDefinition]
	namespaces       []*typed[corev1.Namespace]
	secrets          []*typed[corev1.Secret]
	roles            []*role
	roleBindings     []*roleBinding
	podDefaults      []*Object
	byKind           map[schema.GroupVersionKind][]*Object // all, for parameters of policies
	servicesByName   map[string]*typed[corev1.Service]
	namespacesByName map[string]*typed[corev1.Namespace]

	// Caches.
	conditions           matcher.Conditions
	workloadsByNamespace map[string][]*workload
	behindService        map[*typed[corev1.Service]][]*workload
	allBackends          []*backend
}

// typed is an object with its decoded value.
type typed[T any] struct {
	*Object
	value T
}

// Kinds returns the kinds that rules use, each with the one version that is read.
func Kinds() []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, 0, len(kinds))
	for _, k := range kinds {
		out = append(out, k.gvk)
	}
	return out
}

// Older returns an older version of a kind with the same fields, which rules read too. API servers that do not serve the version of
// [Kinds] may serve it: those of 1.34 and 1.35, mutating policies.
func Older(gvk schema.GroupVersionKind) (older schema.GroupVersionKind, ok bool) {
	older = gvk
	older.Version = "v1beta1"
	return older, gvk.Group == admissionregistrationv1.GroupName && strings.HasPrefix(gvk.Kind, "MutatingAdmissionPolicy")
}

type kind struct {
	gvk schema.GroupVersionKind
	add func(*Inventory, *Object) error
}

var kinds = []kind{
	{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"), (*Inventory).addMutating},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), (*Inventory).addValidating},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"), (*Inventory).addMutatingPolicy},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"), (*Inventory).addMutatingBinding},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), (*Inventory).addValidatingPolicy},
	{admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"), (*Inventory).addValidatingBinding},
	{apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), adder(func(in *Inventory) *[]*typed[apiextensionsv1.CustomResourceDefinition] { return &in.definitions })},
	{corev1.SchemeGroupVersion.WithKind("Service"), adder(func(in *Inventory) *[]*typed[corev1.Service] { return &in.services })},
	{discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), adder(func(in *Inventory) *[]*typed[discoveryv1.EndpointSlice] { return &in.endpointSlices })},
	{appsv1.SchemeGroupVersion.WithKind("Deployment"), (*Inventory).addDeployment},
	{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), (*Inventory).addStatefulSet},
	{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), (*Inventory).addDaemonSet},
	{autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), adder(func(in *Inventory) *[]*scaler { return &in.scalers })},
	{policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), adder(func(in *Inventory) *[]*typed[policyv1.PodDisruptionBudget] { return &in.budgets })},
	{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), adder(func(in *Inventory) *[]*typed[networkingv1.NetworkPolicy] { return &in.networkPolicies })},
	{corev1.SchemeGroupVersion.WithKind("Namespace"), adder(func(in *Inventory) *[]*typed[corev1.Namespace] { return &in.namespaces })},
	{corev1.SchemeGroupVersion.WithKind("Secret"), adder(func(in *Inventory) *[]*typed[corev1.Secret] { return &in.secrets })},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), (*Inventory).addRole},
	{rbacv1.SchemeGroupVersion.WithKind("Role"), (*Inventory).addRole},
	{rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), (*Inventory).addRoleBinding},
	{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), (*Inventory).addRoleBinding},
	{kindsOfPodDefaults[0], (*Inventory).addPodDefault},
	{kindsOfPodDefaults[1], (*Inventory).addPodDefault},
}

// adder appends to the list of a kind.
func adder[T any](list func(*Inventory) *[]*typed[T]) func(*Inventory, *Object) error {
	return func(in *Inventory, o *Object) error {
		t, err := read[T](o)
		if err != nil {
			return err
		}
		l := list(in)
		*l = append(*l, t)
		return nil
	}
}

// read decodes an object like the API server: names are case-sensitive, unknown ones
// are ignored and recorded.
func read[T any](o *Object) (*typed[T], error) {
	t := &typed[T]{Object: o}
	problems, err := kubejson.UnmarshalStrict(o.Raw, &t.value)
	if err != nil {
		return nil, o.errorf(err)
	}
	o.problems = problems
	return t, nil
}

// errorf names the object that cannot be read, without its values.
func (o *Object) errorf(err error) error {
	var wrong *json.UnmarshalTypeError
	text := err.Error()
	if errors.As(err, &wrong) {
		text = fmt.Sprintf("%s: want %s, got %s", wrong.Field, wrong.Type, wrong.Value)
		if wrong.Type.Kind() == reflect.String && (wrong.Value == "bool" || strings.HasPrefix(wrong.Value, "number")) {
			text += ": put it in quotes"
		}
	}
	text = o.title() + " cannot be read: " + text
	if file, line := o.at(""); file != "" {
		return fmt.Errorf("%s:%d: %s", file, line, text)
	}
	return errors.New(text)
}

// ReadFiles reads an incomplete set of objects: others may exist. The error names each
// unreadable object; the inventory has the others.
func ReadFiles(objects []Object) (*Inventory, error) { return readAll(objects, false, nil) }

// ReadCluster reads the objects of a cluster. Missing has the reason for each kind that
// could not be listed.
func ReadCluster(objects []Object, missing map[schema.GroupVersionKind]string) (*Inventory, error) {
	return readAll(objects, true, missing)
}

func readAll(objects []Object, cluster bool, missing map[schema.GroupVersionKind]string) (*Inventory, error) {
	in := &Inventory{cluster: cluster, complete: map[string]bool{}, checked: map[string]int{}, byKind: map[schema.GroupVersionKind][]*Object{}}
	var errs []error
	for i := range objects {
		errs = append(errs, in.add(&objects[i]))
	}
	for _, k := range kinds {
		if reason, ok := missing[k.gvk]; ok {
			in.unread = append(in.unread, Skipped{Rule: "*", Reason: "objects of kind " + k.gvk.Kind + ": " + reason})
		} else if cluster {
			in.complete[k.gvk.Kind] = true
		}
	}
	in.index()
	return in, errors.Join(errs...)
}

func (in *Inventory) add(o *Object) error {
	version, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return o.errorf(err)
	}
	gvk := version.WithKind(o.Kind)
	in.byKind[gvk] = append(in.byKind[gvk], o)
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.gvk.Kind == o.Kind && k.gvk.Group == version.Group })
	if i < 0 {
		in.checked["other kinds"]++
		return nil
	}
	k := kinds[i]
	if older, ok := Older(k.gvk); version.Version != k.gvk.Version && (!ok || gvk != older) {
		in.unread = append(in.unread, Skipped{Rule: "*", Objects: []string{o.title()},
			Reason: fmt.Sprintf("%s is not read in version %s: convert it to %s", o.Kind, o.APIVersion, k.gvk.GroupVersion())})
		return nil
	}
	if err := k.add(in, o); err != nil {
		return err
	}
	in.checked[o.Kind]++
	if len(o.problems) > 0 {
		in.misspelt = append(in.misspelt, o)
	}
	return nil
}

func (in *Inventory) index() {
	in.servicesByName, in.namespacesByName = map[string]*typed[corev1.Service]{}, map[string]*typed[corev1.Namespace]{}
	for _, s := range in.services {
		in.servicesByName[s.Namespace+"/"+s.Name] = s
	}
	for _, n := range in.namespaces {
		in.namespacesByName[n.Name] = n
	}
	in.workloadsByNamespace, in.behindService = map[string][]*workload{}, map[*typed[corev1.Service]][]*workload{}
	for _, w := range in.workloads {
		in.workloadsByNamespace[w.Namespace] = append(in.workloadsByNamespace[w.Namespace], w)
	}
	in.scale()
	for _, c := range in.configurations {
		in.webhooks = append(in.webhooks, c.webhooks...)
	}
}

// Unread returns what could not be read, with reasons.
func (in *Inventory) Unread() []Skipped { return in.unread }
