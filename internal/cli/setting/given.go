// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// Given has the flags that were passed to a command. A nil Given has no flags.
type Given struct{ flags *pflag.FlagSet }

// GivenTo returns the parsed flags of a command.
func GivenTo(flags *pflag.FlagSet) *Given { return &Given{flags} }

// Changed reports whether a flag was set.
func (g *Given) Changed(name string) bool { return g != nil && g.flags.Changed(name) }

// Name returns the name of the flag that sets the field or contains it, or "". It looks at the flags that
// were set, or at all of them.
func (g *Given) Name(field string, all bool) string {
	if g == nil {
		return ""
	}
	if flag := Set(g.flags, field, all); flag != nil {
		return flag.Name
	}
	return ""
}

// ByFlags is [ByFlags], or the error itself if there are no flags.
func (g *Given) ByFlags(err error) error {
	if g == nil {
		return err
	}
	return ByFlags(g.flags, err)
}

// Override sets the fields of the settings, a pointer to a struct, for which flags of the table
// were set. It returns the paths of these fields.
func (g *Given) Override(settings any, table []Flag) (map[string]bool, error) {
	fields := map[string]bool{}
	if g == nil {
		return fields, nil
	}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, f := range table {
		AddTo(own, settings, f)
	}
	var errs []error
	g.flags.Visit(func(flag *pflag.Flag) {
		field := FieldOf(flag)
		if field == "" {
			return
		}
		fields[field] = true
		to := own.Lookup(flag.Name).Value
		if list, ok := flag.Value.(SliceValue); ok {
			errs = append(errs, to.(SliceValue).Replace(list.GetSlice()))
			return
		}
		errs = append(errs, to.Set(flag.Value.String()))
	})
	return fields, errors.Join(errs...)
}

// Args returns the flags that were set and set fields, as arguments for another command.
func (g *Given) Args() []string {
	if g == nil {
		return nil
	}
	return cli.Given(g.flags, func(flag *pflag.Flag) bool { return FieldOf(flag) != "" })
}
