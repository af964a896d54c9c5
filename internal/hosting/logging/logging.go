// SPDX-License-Identifier: Apache-2.0

// Package logging creates the logger of a process and makes Kubernetes' client libraries
// use it.
package logging

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/internal/cli"
)

var (
	logLevels  = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	levelNames = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

// Settings configure logging.
type Settings struct {
	// Level is debug, info, warn or error. Default info.
	Level string
	// Format is text or json. Default text.
	Format string
	// Verbosity is the log verbosity of Kubernetes' client libraries, 0 to 10. A value
	// above 0 implies debug.
	Verbosity int
}

// AddFlags binds the settings to flags. Their current values are the defaults.
func (s *Settings) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Level, "log-level", cmp.Or(s.Level, "info"), "minimum `level` of messages to log: "+cli.OneOf(levelNames))
	flags.StringVar(&s.Format, "log-format", cmp.Or(s.Format, "text"), "`format` of the log: "+cli.OneOf(logFormats))
	flags.IntVarP(&s.Verbosity, "verbosity", "v", s.Verbosity,
		"log `verbosity` of Kubernetes' client libraries, 0 to 10; above 0 implies --log-level debug")
	cli.CompleteChoices(cmd, "log-level", levelNames)
	cli.CompleteChoices(cmd, "log-format", logFormats)
}

// Validate reports all problems, by the names of the flags.
func (s *Settings) Validate() error {
	errs := []error{cli.Choice("log-level", s.Level, levelNames), cli.Choice("log-format", s.Format, logFormats)}
	if s.Verbosity < 0 {
		errs = append(errs, fmt.Errorf("--verbosity %d: must be 0 or more", s.Verbosity))
	}
	return errors.Join(errs...)
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
