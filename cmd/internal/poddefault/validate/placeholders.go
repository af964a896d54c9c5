// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// placeholders checks the texts with substitution.
func (c *checker) placeholders(path *field.Path) {
	check := func(path *field.Path, text string) {
		found, odd := meta.PlaceholdersIn(text)
		switch {
		case c.spec.Substitute && len(odd) > 0:
			c.warn(path, "${%s} stays as it is: only ${namespace} and ${pod.labels['key']} are replaced", odd[0])
		case !c.spec.Substitute && len(found) > 0:
			c.warn(path, "the placeholder stays as it is: only with substitute: true is it replaced")
		}
	}
	meta.Texts(c.spec, path, func(path *field.Path, text *string) { check(path, *text) })
}
