// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/internal/doctor"
)

// showOverview shows what doctor says.
func showOverview(ctx context.Context, v *visit) (templ.Component, error) {
	options := v.Doctor
	options.Window = 0 // a page does not wait for further failures
	report, err := doctor.Run(ctx, v.config, options)
	if err != nil {
		return nil, err
	}
	return overview(report), nil
}
