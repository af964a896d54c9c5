// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/sallyport-io/sallyport/admission"
)

// MissingClass reports whether a class does not exist in a cluster; false if that is not known.
type MissingClass func(ctx context.Context, resource schema.GroupVersionResource, name string) bool

// Resources of classes that a spec can name.
var (
	PriorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
	RuntimeClasses  = schema.GroupVersionResource{Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"}
)

// classTime limits the question for a class, which only leads to a warning.
const classTime = time.Second

// WarnOfClasses lets a handler of [New] warn of classes that do not exist: the API server
// refuses pods that name one. They may be created later, so it is not an error.
func WarnOfClasses(handler admission.Handler, missing MissingClass) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		resp, err := handler.Handle(ctx, req)
		if err != nil || !resp.Allowed {
			return resp, err
		}
		now, before := classesOf(req.Object.Raw), classesOf(req.OldObject.Raw)
		for _, class := range []struct {
			resource    schema.GroupVersionResource
			field, kind string
			name, old   string
		}{
			{PriorityClasses, "priorityClassName", "PriorityClass", now.PriorityClassName, before.PriorityClassName},
			{RuntimeClasses, "runtimeClassName", "RuntimeClass", now.RuntimeClassName, before.RuntimeClassName},
		} {
			if class.name == "" || class.name == class.old {
				continue
			}
			limited, cancel := context.WithTimeout(ctx, classTime)
			if missing(limited, class.resource, class.name) {
				resp.Warn("spec." + class.field + ": there is no " + class.kind + " of this name: until there is, the API server refuses pods that get it")
			}
			cancel()
		}
		return resp, nil
	})
}

type classNames struct {
	PriorityClassName string `json:"priorityClassName"`
	RuntimeClassName  string `json:"runtimeClassName"`
}

// classesOf returns the names in an object, which the handler has read before.
func classesOf(raw []byte) classNames {
	var object struct {
		Spec classNames `json:"spec"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &object) != nil {
		return classNames{}
	}
	return object.Spec
}

// MissingByGet asks the API server for the metadata of a class.
func MissingByGet(client metadata.Interface) MissingClass {
	return func(ctx context.Context, resource schema.GroupVersionResource, name string) bool {
		_, err := client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
}
