// SPDX-License-Identifier: Apache-2.0

// Package logging creates the logger of a process and makes Kubernetes' client libraries
// use it.
package logging

import (
	"io"
	"log/slog"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
)

var (
	logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	// Levels are the accepted values of [Settings].Level.
	Levels = []string{"debug", "info", "warn", "error"}
	// Formats are the accepted values of [Settings].Format.
	Formats = []string{"text", "json"}
)

// Settings configure logging. Start from [DefaultSettings].
type Settings struct {
	// level is the minimum level of messages to log: debug, info, warn or error. Default
	// info.
	Level string `json:"level"`
	// format is text or json. Default text.
	Format string `json:"format"`
	// verbosity is the log verbosity of Kubernetes' client libraries, 0 to 10. A value
	// above 0 implies level debug. Default 0.
	Verbosity int32 `json:"verbosity"`
}

// DefaultSettings returns the documented defaults.
func DefaultSettings() Settings { return Settings{Level: "info", Format: "text"} }

// Validate reports every problem below a path.
func (s *Settings) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(Levels, s.Level) {
		errs = append(errs, field.NotSupported(path.Child("level"), s.Level, Levels))
	}
	if !slices.Contains(Formats, s.Format) {
		errs = append(errs, field.NotSupported(path.Child("format"), s.Format, Formats))
	}
	if s.Verbosity < 0 {
		errs = append(errs, field.Invalid(path.Child("verbosity"), s.Verbosity, "must not be negative"))
	}
	return errs
}

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
