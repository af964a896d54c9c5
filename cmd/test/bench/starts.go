// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/sallyport-io/sallyport/test/lab"
)

// measureStarts starts a server several times, and notes how long it takes to be ready and
// the memory that takes at its peak.
func (s *site) measureStarts(ctx context.Context, stage stage, results *results, progress progress) error {
	progress.sayf("starting %s, %d times", stage.starter, stage.starts)
	var seconds []float64
	peak, anonymous := 0.0, 0.0
	for range stage.starts {
		srv, err := s.start(ctx, stage.starter)
		if err != nil {
			return err
		}
		rss, err := peakRSS(srv.PID())
		files, errFiles := fileRSS(srv.PID())
		srv.stop()
		if err := errors.Join(err, errFiles); err != nil {
			return err
		}
		seconds = append(seconds, srv.ready.Seconds())
		peak, anonymous = max(peak, mebibytes(rss)), max(anonymous, mebibytes(rss-files))
	}
	if stage.starter == datasetsName {
		results.DatasetStartSeconds = median(seconds)
		return nil
	}
	results.StartSeconds, results.Starts, results.StartPeakRSSMiB = median(seconds), seconds, peak
	results.StartPeakAnonymousMiB = anonymous
	return nil
}

// measureIdle notes the resident memory of sallyport so long after it has become ready, when
// nothing calls it.
func (s *site) measureIdle(ctx context.Context, after time.Duration, results *results) error {
	srv, err := s.start(ctx, sallyportName)
	if err != nil {
		return err
	}
	defer srv.stop()
	if !lab.Sleep(ctx, after) {
		return ctx.Err()
	}
	rss, err := currentRSS(srv.PID())
	if err != nil {
		return err
	}
	anonymous, err := anonymousRSS(srv.PID())
	results.IdleRSSMiB, results.IdleAnonymousMiB = mebibytes(rss), mebibytes(anonymous)
	return err
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
