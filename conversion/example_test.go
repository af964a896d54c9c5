// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
)

// In v1 a CronTab calls its field schedule, in v1beta1 spec.
func ExampleUnstructured() {
	kind := schema.GroupKind{Group: "stable.example.com", Kind: "CronTab"}
	names := map[string]string{"v1": "schedule", "v1beta1": "spec"}
	crontabs := conversion.Unstructured(kind, []string{"v1beta1", "v1"}, func(_ context.Context, object *unstructured.Unstructured, version string) error {
		is := names[object.GroupVersionKind().Version]
		object.Object[names[version]] = object.Object[is]
		delete(object.Object, is)
		return nil
	})
	converted, err := crontabs.Convert(context.Background(),
		[]byte(`{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"nightly"},"spec":"0 3 * * *"}`), "v1")
	fmt.Println(string(converted), err)
	// Output: {"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"nightly"},"schedule":"0 3 * * *"} <nil>
}

// Versions with the same fields need no function.
func ExampleAPIVersionOnly() {
	crontabs := conversion.APIVersionOnly(schema.GroupKind{Group: "stable.example.com", Kind: "CronTab"}, "v1beta1", "v1")
	converted, err := crontabs.Convert(context.Background(), []byte(`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{},"size":9007199254740993}`), "v1beta1")
	fmt.Println(string(converted), err)
	_, err = crontabs.Convert(context.Background(), converted, "v2")
	fmt.Println(err)
	// Output:
	// {"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{},"size":9007199254740993} <nil>
	// there is no converter to version "v2": there are v1beta1, v1
}
