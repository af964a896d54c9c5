// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"runtime/debug"
	"strings"
)

// BuildVersion returns the version in Go's build info.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && !strings.HasPrefix(v, "(") {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
			return "devel-" + setting.Value[:12]
		}
	}
	return "devel"
}
