// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// findings are what is wrong with a spec, and what is likely not intended.
type findings struct {
	errs     field.ErrorList
	warnings []string
}

func (f *findings) invalid(path *field.Path, value any, format string, args ...any) {
	f.errs = append(f.errs, field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

func (f *findings) invalidEach(path *field.Path, value any, problems []string) {
	for _, problem := range problems {
		f.invalid(path, value, "%s", problem)
	}
}

func (f *findings) required(path *field.Path, detail string) {
	f.errs = append(f.errs, field.Required(path, detail))
}

func (f *findings) warn(path *field.Path, format string, args ...any) {
	f.warnings = append(f.warnings, path.String()+": "+fmt.Sprintf(format, args...))
}

// oneOf reports a value that is set but is not a choice.
func (f *findings) oneOf(path *field.Path, value string, choices ...string) {
	if value != "" && !slices.Contains(choices, value) {
		f.errs = append(f.errs, field.NotSupported(path, value, choices))
	}
}
