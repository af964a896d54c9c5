// SPDX-License-Identifier: Apache-2.0

// Package logging makes the logger of a process, and has Kubernetes' client libraries use it.
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

// Settings say what is logged, and how.
type Settings struct {
	// Level is debug, info, warn or error. Default info.
	Level string
	// Format is text or json. Default text.
	Format string
	// Verbosity is the level of detail of Kubernetes' client libraries, 0 to 10. Above
	// 0 it implies debug.
	Verbosity int
}

// AddFlags binds the settings to flags. The values they have now are the defaults.
func (s *Settings) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.Level, "log-level", cmp.Or(s.Level, "info"), "`level` of the least important messages to log: "+cli.OneOf(levelNames))
	flags.StringVar(&s.Format, "log-format", cmp.Or(s.Format, "text"), "`format` of the log: "+cli.OneOf(logFormats))
	flags.IntVarP(&s.Verbosity, "verbosity", "v", s.Verbosity,
		"`level` of detail of Kubernetes' client libraries, 0 to 10; above 0 implies --log-level debug")
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

// Logger returns a logger that writes to out, and makes it the default of slog and of Kubernetes'
// client libraries. The settings are valid.
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
	var verbosity klog.Level // of the messages that klog itself holds back
	_ = verbosity.Set(strconv.Itoa(max(0, int(-level))))
	slog.SetDefault(logger)
	return logger
}
