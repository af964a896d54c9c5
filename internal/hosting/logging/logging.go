// SPDX-License-Identifier: Apache-2.0

// Package logging creates the logger of a process and makes Kubernetes' client libraries
// use it.
package logging

import (
	"io"
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Settings configure logging. Start from [DefaultSettings].
type Settings struct {
	// level is the minimum level of messages to log: debug, info, warn or error. Default
	// info.
	Level string `json:"level" flag:"log-level" value:"level" group:"Log" enum:"debug,info,warn,error"`
	// format is the format of the log: text or json. Default text.
	Format string `json:"format" flag:"log-format" value:"format" group:"Log" enum:"text,json"`
	// verbosity is the log verbosity of Kubernetes' client libraries, 0 to 10. Above 0 it
	// implies the level debug. Default 0.
	Verbosity int32 `json:"verbosity" flag:"verbosity" short:"v" value:"verbosity" group:"Log" min:"0"`
}

// DefaultSettings returns the documented defaults.
func DefaultSettings() Settings { return Settings{Level: "info", Format: "text"} }

// Logger returns a logger that writes to out, and makes it the default of slog and of
// Kubernetes' client libraries. The settings must be valid.
func (s *Settings) Logger(out io.Writer) *slog.Logger {
	level := logLevels[s.Level]
	if s.Verbosity > 0 {
		// logr's level n is slog's level -n.
		level = min(slog.LevelDebug, slog.Level(-s.Verbosity))
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if s.Format == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	logger := slog.New(handler)
	klog.SetLoggerWithOptions(logr.FromSlogHandler(handler), klog.ContextualLogger(true))
	var verbosity klog.Level // klog drops more verbose messages itself
	_ = verbosity.Set(strconv.Itoa(max(0, int(-level))))
	slog.SetDefault(logger)
	return logger
}
