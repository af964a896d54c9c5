// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// Together reads several kinds at the same time. The notes are in the order of the kinds, and so is the error.
func Together(ctx context.Context, notes io.Writer, reads ...func(context.Context, io.Writer) error) error {
	said, errs := make([]bytes.Buffer, len(reads)), make([]error, len(reads))
	var running sync.WaitGroup
	for i, read := range reads {
		running.Go(func() { errs[i] = read(ctx, &said[i]) })
	}
	running.Wait()
	for i := range reads {
		_, _ = said[i].WriteTo(notes) // as any note
		if errs[i] != nil {
			return errs[i]
		}
	}
	return nil
}
