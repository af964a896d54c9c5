// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/sallyport-io/sallyport/internal/wire/reviewversion"

// What tests send besides admissionV1.
const (
	admissionV1beta1  = admissionGroup + "/" + reviewversion.V1beta1
	conversionV1      = conversionGroup + "/" + reviewversion.V1
	conversionV1beta1 = conversionGroup + "/" + reviewversion.V1beta1
)
