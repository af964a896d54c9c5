// SPDX-License-Identifier: Apache-2.0

package rawjson_test

import (
	"fmt"

	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

func ExampleReader() {
	pod := []byte(`{"metadata":{"labels":{"app":"a","team":"b"}},"spec":{"containers":[{"name":"main"},{"name":"proxy"}]}}`)

	containers, _ := rawjson.Lookup(pod, "spec", "containers")
	r := rawjson.NewReader(containers)
	r.Array(func(index int) {
		r.Object(func(member []byte) {
			if string(member) == "name" {
				name, _ := r.String()
				fmt.Printf("%d %s\n", index, name)
			}
		})
	})
	// Output:
	// 0 main
	// 1 proxy
}
