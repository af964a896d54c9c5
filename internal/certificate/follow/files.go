// SPDX-License-Identifier: Apache-2.0

// Package follow tells of files that change.
package follow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Files calls look at once, whenever something changes in the folder of one of the
// files, and after each interval, until ctx ends. Look finds out whether anything is new.
// Empty names are left out. What names the files in the log.
//
// Polling alone would do; being told is faster. Folders are watched, not files:
// Kubernetes changes a mounted Secret by turning a symbolic link.
func Files(ctx context.Context, log *slog.Logger, what string, interval time.Duration, look func(), files ...string) {
	var changes <-chan fsnotify.Event
	var failures <-chan error
	if watcher, err := watch(files); err != nil {
		log.WarnContext(ctx, "files are only polled", slog.String("files", what), slog.Any("error", err), slog.Duration("interval", interval))
	} else {
		defer func() { _ = watcher.Close() }()
		changes, failures = watcher.Events, watcher.Errors
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		look()
		select {
		case <-ctx.Done():
			return
		case <-changes:
		case err := <-failures:
			log.WarnContext(ctx, "watching files", slog.String("files", what), slog.Any("error", err))
		case <-ticker.C:
		}
	}
}

func watch(files []string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		if err := watcher.Add(filepath.Dir(file)); err != nil { // the same one twice is fine
			return nil, errors.Join(fmt.Errorf("watch the folder of %s: %w", file, err), watcher.Close())
		}
	}
	return watcher, nil
}
