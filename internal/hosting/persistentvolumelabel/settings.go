// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Settings say which volumes are labelled.
type Settings struct {
	// Sources are the volume sources that the cloud provider is asked for, by the names
	// that fields of a volume's spec have; see [SourceOf]. Volumes of others are left
	// alone. Default all; a provider wants its own only, since some panic for others.
	Sources []Source `json:"sources"`
	// RememberSeconds is for how long the labels of a volume are remembered, 0 to 3600.
	// Default 30.
	RememberSeconds int32 `json:"rememberSeconds"`
	// CallSeconds is how long the cloud may take for an answer, 1 to 300. Default 30. It may be
	// more than the webhook's timeout: who asks again then finds the answer.
	CallSeconds int32 `json:"callSeconds"`
	// MaxCalls bounds the calls to the cloud that are under way, those included that
	// do not come back, 1 to 10,000. Default 512.
	MaxCalls int32 `json:"maxCalls"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{Sources: slices.Clone(sources), RememberSeconds: 30, CallSeconds: 30, MaxCalls: 512}
}

// Validate reports all problems, by the names of the fields in a file.
func (s Settings) Validate() error {
	var errs []error
	if len(s.Sources) == 0 {
		errs = append(errs, fmt.Errorf("sources: it is empty: name the cloud's own, of %s", oneOf()))
	}
	for i, source := range s.Sources {
		if !slices.Contains(sources, source) {
			errs = append(errs, fmt.Errorf("sources[%d]: %q: choose of %s", i, source, oneOf()))
		}
		if slices.Contains(s.Sources[:i], source) {
			errs = append(errs, fmt.Errorf("sources[%d]: duplicate %s", i, source))
		}
	}
	for _, bounded := range []struct {
		name            string
		value, from, to int32
	}{
		{"rememberSeconds", s.RememberSeconds, 0, 3600}, {"callSeconds", s.CallSeconds, 1, 300}, {"maxCalls", s.MaxCalls, 1, 10_000},
	} {
		if bounded.value < bounded.from || bounded.value > bounded.to {
			errs = append(errs, fmt.Errorf("%s: %d: choose from %d to %d", bounded.name, bounded.value, bounded.from, bounded.to))
		}
	}
	return errors.Join(errs...)
}

func oneOf() string {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = string(source)
	}
	return strings.Join(names, ", ")
}
