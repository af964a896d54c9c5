// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/projectlimit"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// loadProjects counts the Namespaces among the objects by requester. Rest holds the objects for
// other webhooks. It includes the Namespaces, which ClusterPodDefaults need. The error reports
// all problems.
func loadProjects(objects []*manifest.Object, projects *projectlimit.Index) (rest []*manifest.Object, err error) {
	var errs []error
	for _, object := range objects {
		switch {
		case object.GVK() != schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}:
			rest = append(rest, object)
		case object.Name == "":
			errs = append(errs, object.ErrorAt("/metadata", "the Namespace has no metadata.name"))
		default:
			rest = append(rest, object)
			projects.Set(projectlimit.ProjectOf(&object.ObjectMeta))
		}
	}
	return rest, errors.Join(errs...)
}
