// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
)

// WithLogger is for servers: [Logger] returns the logger to handlers, and so do logr.FromContext
// and controller-runtime's log.FromContext.
func WithLogger(ctx context.Context, logger *slog.Logger) context.Context {
	return logr.NewContextWithSlogLogger(ctx, logger)
}

// Logger returns the logger for a call. It is that of the server, with the name of the webhook;
// in a typed handler each record also has the request's UID ("requestID"), operation, resource,
// object ("namespace/name") and user. Outside of a server it is slog.Default().
func Logger(ctx context.Context) *slog.Logger {
	if logger := logr.FromContextAsSlogLogger(ctx); logger != nil {
		return logger
	}
	return slog.Default()
}

// loggerKey is the key of loggers in contexts, which logr keeps to itself.
var loggerKey = func() any {
	var asked keyRecorder
	_ = logr.FromContextAsSlogLogger(&asked)
	return asked.key
}()

// A keyRecorder is a context that remembers the last key that it was asked for.
type keyRecorder struct {
	context.Context
	key any
}

func (r *keyRecorder) Value(key any) any {
	r.key = key
	return nil
}

// logger is the logger of the server with what is known of the request. It is made when a
// handler asks for it: most log nothing.
func (c *call) logger() any {
	var server *slog.Logger
	switch of := c.Context.Value(loggerKey).(type) {
	case *slog.Logger:
		server = of
	case logr.Logger:
		server = slog.New(logr.ToSlogHandler(of))
	default:
		server = slog.Default()
	}
	resource := c.req.Resource.Resource
	if c.req.SubResource != "" {
		resource += "/" + c.req.SubResource
	}
	return server.With("requestID", string(c.req.UID), "operation", string(c.req.Operation), "resource", resource,
		"object", types.NamespacedName{Namespace: c.req.Namespace, Name: c.req.Name}.String(), "user", c.req.UserInfo.Username)
}
