// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// errNoName is about an object that cannot be kept.
var errNoName = errors.New("it is not a JSON object, or has no metadata.name")

// lean decodes only what the webhook needs of a Fluid object. The whole object never
// exists in memory, not even as one of thousands in a list.
type lean struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	ref    dataset.Ref
	object *dataset.Object // nil for a bookmark, which only has a resource version
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
		return errNoName
	}
	if l.Name == "" {
		return nil
	}
	var err error
	l.ref, l.object, err = dataset.Parse(kinds.Kind(l.Kind), raw)
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
	version := schema.GroupVersion{Group: kinds.Group, Version: kinds.Version}
	for _, kind := range kinds.OfFluid() {
		scheme.AddKnownTypeWithName(version.WithKind(string(kind)), &lean{})
		scheme.AddKnownTypeWithName(version.WithKind(string(kind)+"List"), &leanList{})
	}
	metav1.AddToGroupVersion(scheme, version)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return nil
}

func text(r *rawjson.Reader) string {
	out, _ := r.String()
	return string(out)
}
