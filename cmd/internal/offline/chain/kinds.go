// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/defaults"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
)

// kinds knows kinds as the API server does: how they are decoded, defaulted and merged. Kinds of
// Kubernetes are typed, others are unstructured. It implements [apiserveradmission.ObjectInterfaces].
type kinds struct {
	definitions *fieldcheck.Definitions
	equivalents runtime.EquivalentResourceRegistry
	builtin     managedfields.TypeConverter
	// unconvertible is set if an object had to be converted to another version.
	unconvertible error
}

func newKinds(r *Run) (*kinds, error) {
	resource := schema.GroupResource{Group: r.Request.Resource.Group, Resource: r.Request.Resource.Resource}
	k := &kinds{equivalents: r.Resources.Equivalents(resource, r.Request.SubResource, schema.GroupVersionKind(r.Request.Kind)), builtin: applyconfigurations.NewTypeConverter(scheme.Scheme)}
	var err error
	k.definitions, err = fieldcheck.ReadDefinitions(r.Objects)
	return k, err
}

// decode decodes and defaults an object; nil stays nil.
func (k *kinds) decode(gvk schema.GroupVersionKind, raw []byte, namespace string) (runtime.Object, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	object, err := k.New(gvk)
	if err != nil {
		return nil, err
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		err = utiljson.Unmarshal(raw, &u.Object) // integers stay integers
	} else {
		err = runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), raw, object)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", gvk.Kind, err)
	}
	object.GetObjectKind().SetGroupVersionKind(gvk)
	if accessor, ok := object.(interface{ SetNamespace(string) }); ok && gvk != corev1.SchemeGroupVersion.WithKind("Namespace") {
		accessor.SetNamespace(namespace)
	}
	k.Default(object)
	defaults.AsInternal(object)
	return object, nil
}

// content returns an object as maps and slices; nil for no object.
func content(object runtime.Object) (any, error) {
	if object == nil {
		return nil, nil
	}
	if u, ok := object.(*unstructured.Unstructured); ok {
		return runtime.DeepCopyJSON(u.Object), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

// New implements [runtime.ObjectCreater].
func (k *kinds) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if scheme.Scheme.Recognizes(gvk) {
		object, err := scheme.Scheme.New(gvk)
		if err == nil {
			object.GetObjectKind().SetGroupVersionKind(gvk)
		}
		return object, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// Convert implements [runtime.ObjectConvertor] between objects of one type. The API server converts
// to its internal version instead.
func (k *kinds) Convert(in, out, _ any) error {
	from, to := reflect.ValueOf(in), reflect.ValueOf(out)
	if from.Type() != to.Type() || in.(runtime.Object).GetObjectKind().GroupVersionKind() != out.(runtime.Object).GetObjectKind().GroupVersionKind() {
		return k.cannotConvert(in.(runtime.Object).GetObjectKind().GroupVersionKind(), out.(runtime.Object).GetObjectKind().GroupVersionKind())
	}
	to.Elem().Set(from.Elem())
	defaults.AsInternal(out.(runtime.Object))
	return nil
}

// ConvertToVersion implements [runtime.ObjectConvertor].
func (k *kinds) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	gvk := in.GetObjectKind().GroupVersionKind()
	target, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if !ok || target != gvk {
		return nil, k.cannotConvert(gvk, target)
	}
	return scheme.Scheme.ConvertToVersion(in, to)
}

// ConvertFieldLabel implements [runtime.ObjectConvertor].
func (k *kinds) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return scheme.Scheme.ConvertFieldLabel(gvk, label, value)
}

func (k *kinds) cannotConvert(from, to schema.GroupVersionKind) error {
	k.unconvertible = fmt.Errorf("the API server would convert the %s from %s to %s, which cannot be done here: give it in that version", from.Kind, from.GroupVersion(), to.GroupVersion())
	return k.unconvertible
}

// Default implements [runtime.ObjectDefaulter].
func (k *kinds) Default(object runtime.Object) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		k.definitions.Default(u.GroupVersionKind(), u.Object)
		return
	}
	defaults.Set(object)
}

// notes say which of the API server's doings are left out for a kind.
func (k *kinds) notes(gvk schema.GroupVersionKind) []string {
	switch {
	case !k.partial(gvk):
		return nil
	case scheme.Scheme.Recognizes(gvk):
		return []string{"not all of the API server's defaults for " + gvk.Kind + " are applied: give the object as 'kubectl create --dry-run=server -o yaml' prints it"}
	}
	return []string{"there is no CustomResourceDefinition of " + gvk.Kind + " among the objects: its defaults are not applied, and ApplyConfigurations replace lists"}
}

// GetTypeConverter implements the API server's patch.TypeConverterManager.
func (k *kinds) GetTypeConverter(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	if scheme.Scheme.Recognizes(gvk) {
		return k.builtin
	}
	if converter, err := k.definitions.TypeConverter(gvk); err == nil && converter != nil {
		return converter
	}
	return managedfields.NewDeducedTypeConverter()
}

// Run implements the API server's patch.TypeConverterManager.
func (k *kinds) Run(context.Context) {}

// The rest of [apiserveradmission.ObjectInterfaces].
func (k *kinds) GetObjectCreater() runtime.ObjectCreater     { return k }
func (k *kinds) GetObjectTyper() runtime.ObjectTyper         { return scheme.Scheme }
func (k *kinds) GetObjectDefaulter() runtime.ObjectDefaulter { return k }
func (k *kinds) GetObjectConvertor() runtime.ObjectConvertor { return k }
func (k *kinds) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return k.equivalents
}

var _ apiserveradmission.ObjectInterfaces = &kinds{}
