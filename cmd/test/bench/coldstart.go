// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// measureColdStart returns how long `sallyport version` takes from its start to its end, in
// milliseconds: what each call of the plugin for kubectl costs before it does anything. It
// is the median of the runs; the binary's file is in memory after the first.
func measureColdStart(ctx context.Context, binary string, runs int) (float64, error) {
	var took []float64
	for range runs {
		began := time.Now()
		if out, err := exec.CommandContext(ctx, binary, "version").CombinedOutput(); err != nil {
			return 0, fmt.Errorf("%s version: %w\n%s", binary, err, out)
		}
		took = append(took, millis(time.Since(began)))
	}
	return median(took), nil
}
