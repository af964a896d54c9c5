// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/sallyport-io/sallyport/conversion"
)

// Converter adapts a converter for controller-runtime's builder (WithConverter,
// conversion.NewHubSpokeConverter) to an application: the function that creates the
// converter, for a kind and the scheme with its versions. Types that convert themselves do
// not need it, see [conversion.HubAndSpokes]. [conversion.Converter.Problems] reports what is wrong.
func Converter(scheme *runtime.Scheme, kind schema.GroupKind, construct func(*runtime.Scheme) (ctrlconversion.Converter, error)) conversion.Converter {
	fail := func(err error) conversion.Converter {
		return conversion.Objects(scheme, kind, nil).WithProblem(err)
	}
	if construct == nil || scheme == nil {
		return fail(errors.New("the scheme and the function that makes the converter are needed"))
	}
	converter, err := construct(scheme)
	if err != nil {
		return fail(err)
	}
	return conversion.Objects(scheme, kind, func(ctx context.Context, src, dst runtime.Object) error {
		return converter.ConvertObject(ctx, src, dst)
	})
}
