// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"context"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Quiet is a log handler that drops messages which Kubernetes libraries log as errors in every
// healthy start and shutdown: another replica created a lease first, and a stopped manager
// released its own lease.
type Quiet struct{ slog.Handler }

// Handle implements [slog.Handler].
func (h Quiet) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelError && expected(record) {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (h Quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return Quiet{h.Handler.WithAttrs(attrs)} }

// WithGroup implements [slog.Handler].
func (h Quiet) WithGroup(name string) slog.Handler { return Quiet{h.Handler.WithGroup(name)} }

func expected(record slog.Record) bool {
	var is func(error) bool
	switch record.Message {
	case "Error initially creating lease lock": // client-go/tools/leaderelection
		is = apierrors.IsAlreadyExists
	case "error received after stop sequence was engaged": // controller-runtime/pkg/manager
		is = func(err error) bool { return err.Error() == "leader election lost" }
	default:
		return false
	}
	found := false
	record.Attrs(func(attr slog.Attr) bool {
		err, ok := attr.Value.Any().(error)
		found = ok && is(err)
		return !found
	})
	return found
}
