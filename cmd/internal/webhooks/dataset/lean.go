// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// lean decodes only what the webhook needs of a Fluid object. The whole object never
// exists in memory, not even as one of thousands in a list.
type lean struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	ref    Ref
	object *Object // nil for a bookmark, which only has a resource version
}

// leanList is a list of them.
type leanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []lean `json:"items"`
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (l *lean) UnmarshalJSON(raw []byte) error {
	*l = lean{}
	r := rawjson.NewReader(raw)
	ok := r.Object(func(field []byte) {
		switch string(field) {
		case "apiVersion":
			l.APIVersion = text(&r)
		case "kind":
			l.Kind = text(&r)
		case "metadata":
			r.Object(func(field []byte) {
				switch string(field) {
				case "name":
					l.Name = text(&r)
				case "namespace":
					l.Namespace = text(&r)
				case "resourceVersion":
					l.ResourceVersion = text(&r)
				case "annotations":
					r.Object(func(key []byte) {
						if string(key) == metav1.InitialEventsAnnotationKey {
							l.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: text(&r)}
						}
					})
				}
			})
		}
	})
	if !ok {
		return errNoObject
	}
	if l.Name == "" {
		return nil
	}
	var err error
	l.ref, l.object, err = Parse(Kind(l.Kind), raw)
	return err
}

// DeepCopyObject implements [runtime.Object]. The content is immutable.
func (l *lean) DeepCopyObject() runtime.Object {
	out := *l
	out.ObjectMeta = *l.ObjectMeta.DeepCopy()
	return &out
}

// DeepCopyObject implements [runtime.Object].
func (l *leanList) DeepCopyObject() runtime.Object {
	out := &leanList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*lean))
	}
	return out
}

// addLean registers Fluid's kinds as lean ones.
func addLean(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: Group, Version: Version}
	for _, kind := range append([]runtimeKind{datasetResource}, sortedRuntimeKinds()...) {
		scheme.AddKnownTypeWithName(version.WithKind(string(kind.kind)), &lean{})
		scheme.AddKnownTypeWithName(version.WithKind(string(kind.kind)+"List"), &leanList{})
	}
	metav1.AddToGroupVersion(scheme, version)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return nil
}

var datasetResource = runtimeKind{kind: DatasetKind, resource: "datasets"}

func sortedRuntimeKinds() []runtimeKind {
	var out []runtimeKind
	for _, name := range RuntimeTypes() {
		out = append(out, runtimeKinds[name])
	}
	return out
}

// Resources returns the plural names of the Fluid resources that the webhook reads.
func Resources() []string {
	out := []string{datasetResource.resource}
	for _, kind := range sortedRuntimeKinds() {
		out = append(out, kind.resource)
	}
	return out
}

// Kinds returns the kinds that the webhook reads, with their API versions.
func Kinds() map[Kind]string {
	out := map[Kind]string{ClaimKind: "v1", VolumeKind: "v1", ProfileKind: "v1", DaemonSetKind: "apps/v1", DatasetKind: Group + "/" + Version}
	for _, kind := range runtimeKinds {
		out[kind.kind] = fmt.Sprintf("%s/%s", Group, Version)
	}
	return out
}
