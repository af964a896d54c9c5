// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

var (
	logLevels  = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	levelNames = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

type logOptions struct {
	level, format string
	verbosity     int
}

func (o *logOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.level, "log-level", "info", "`level` of the least important messages to log: "+oneOf(levelNames))
	flags.StringVar(&o.format, "log-format", "text", "`format` of the log: "+oneOf(logFormats))
	flags.IntVarP(&o.verbosity, "verbosity", "v", 0,
		"`level` of detail of Kubernetes' client libraries, 0 to 10; above 0 implies --log-level debug")
	completeChoices(cmd, "log-level", levelNames)
	completeChoices(cmd, "log-format", logFormats)
}

// validate reports every mistake at once.
func (o *logOptions) validate() error {
	errs := []error{choice("log-level", o.level, levelNames), choice("log-format", o.format, logFormats)}
	if o.verbosity < 0 {
		errs = append(errs, fmt.Errorf("--verbosity %d: must be 0 or more", o.verbosity))
	}
	return errors.Join(errs...)
}

// logger logs to out, and makes Kubernetes' client libraries do so too. The options
// were validated.
func (o *logOptions) logger(out io.Writer) *slog.Logger {
	level := logLevels[o.level]
	if o.verbosity > 0 {
		// logr's level n is slog's level -n.
		level = min(slog.LevelDebug, slog.Level(-o.verbosity))
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if o.format == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	logger := slog.New(handler)
	klog.SetLoggerWithOptions(logr.FromSlogHandler(handler), klog.ContextualLogger(true))
	var verbosity klog.Level // of the messages that klog itself holds back
	_ = verbosity.Set(strconv.Itoa(max(0, int(-level))))
	slog.SetDefault(logger)
	return logger
}
