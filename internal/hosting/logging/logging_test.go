// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestSettingsDecideWhatIsLogged(t *testing.T) {
	// The options that the test leaves behind are the usual ones.
	t.Cleanup(func() { (&Settings{Level: "info", Format: "text"}).Logger(&bytes.Buffer{}) })
	all := []string{"error", "warning", "info", "debug", "klog 0", "klog 4", "context 4", "klog 6", "context 6"}
	for name, tc := range map[string]struct {
		options Settings
		logged  int // of all, from the beginning
	}{
		"errors only":                {Settings{Level: "error", Format: "text"}, 1},
		"warnings":                   {Settings{Level: "warn", Format: "text"}, 2},
		"the default":                {Settings{Level: "info", Format: "text"}, 5},
		"debug":                      {Settings{Level: "debug", Format: "text"}, 7},
		"verbosity implies debug":    {Settings{Level: "info", Format: "text", Verbosity: 1}, 7},
		"verbosity 6":                {Settings{Level: "error", Format: "text", Verbosity: 6}, 9},
		"the same in another format": {Settings{Level: "debug", Format: "json"}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger := tc.options.Logger(&out)
			logger.Error("error")
			logger.Warn("warning")
			slog.Info("info") // the default logger is the same
			logger.Debug("debug")
			klog.InfoS("klog 0")
			klog.V(4).InfoS("klog 4")
			klog.FromContext(t.Context()).V(4).Info("context 4")
			klog.V(6).InfoS("klog 6")
			klog.FromContext(t.Context()).V(6).Info("context 6")

			for _, text := range all {
				want := false
				switch text {
				case "error":
					want = true
				case "warning":
					want = tc.logged >= 2
				case "info", "klog 0":
					want = tc.logged >= 5
				case "debug", "klog 4", "context 4":
					want = tc.logged >= 7
				default:
					want = tc.logged >= 9
				}
				if got := strings.Contains(out.String(), text); got != want {
					t.Errorf("%q is logged: %v, in\n%s", text, got, out.String())
				}
			}
			for line := range strings.Lines(out.String()) {
				var fields map[string]any
				if isJSON := json.Unmarshal([]byte(line), &fields) == nil; isJSON != (tc.options.Format == "json") {
					t.Errorf("format %s: %s", tc.options.Format, line)
				}
			}
		})
	}
}
