// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// A format checks a text. The schema expresses only its pattern and length.
type format struct {
	check   func(string) []string
	pattern string
	length  int64
}

var (
	dnsLabel     = &format{validation.IsDNS1123Label, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, 63}
	dnsSubdomain = &format{validation.IsDNS1123Subdomain, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, 253}
	// The API server treats a trailing dash as the end of a name prefix.
	dnsPrefix    = &format{check: func(name string) []string { return validation.IsDNS1123Subdomain(maskTrailingDash(name)) }, length: 253}
	variableName = &format{validation.IsRelaxedEnvVarName, `^[ -<>-~]+$`, 0}
	configKey    = &format{validation.IsConfigMapKey, `^[-._a-zA-Z0-9]+$`, 253}
	portName     = &format{validation.IsValidPortName, `^[-a-z0-9]+$`, 15}
	headerName   = &format{validation.IsHTTPHeaderName, `^[-A-Za-z0-9]+$`, 0}
	labelKey     = &format{check: validation.IsQualifiedName, length: 317}
	labelValue   = &format{validation.IsValidLabelValue, `^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`, 63}
	sysctlName   = written(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`, 253)
	absolutePath = written(`^/`, 4096)
	ascending    = &format{check: noBacksteps}
	descending   = &format{check: func(text string) []string {
		if path.IsAbs(text) {
			return []string{"must be a relative path"}
		}
		return noBacksteps(text)
	}}
	// Paths that begin with two dots are reserved for the kubelet.
	fileInVolume = &format{check: func(text string) []string {
		if strings.HasPrefix(text, "..") && !strings.HasPrefix(text, "../") && text != ".." {
			return []string{"must not start with '..'"}
		}
		return descending.check(text)
	}}
	iscsiName = written(`^(iqn\.[0-9]{4}-[0-9]{2}\.[-.a-zA-Z0-9]+:[^,;*&$|\s]+|(eui.[a-zA-Z0-9]{16})|(naa.[a-zA-Z0-9]{32}))$`, 223)
	csiDriver = written(`^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?)*$`, 63)
)

func maskTrailingDash(name string) string {
	if len(name) > 1 && strings.HasSuffix(name, "-") {
		return name[:len(name)-2] + "a"
	}
	return name
}

// compiledOnce compiles a pattern when it is first used. Few servers see a PodDefault with such
// a field, and together the patterns take a quarter of a MiB.
func compiledOnce(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// written returns a format that a pattern and a length define.
func written(pattern string, length int) *format {
	compiled := compiledOnce(pattern)
	check := func(text string) []string {
		if len(text) <= length && compiled().MatchString(text) {
			return nil
		}
		return []string{fmt.Sprintf("must have at most %d characters and match %s", length, pattern)}
	}
	return &format{check, pattern, int64(length)}
}

func noBacksteps(text string) []string {
	if slices.Contains(strings.Split(text, "/"), "..") {
		return []string{"must not contain '..'"}
	}
	return nil
}
