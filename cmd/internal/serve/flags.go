// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"strings"

	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
)

// Flags are the flags of serve. All other fields can only be set in the file.
func Flags() []setting.Flag {
	flags := hosting.Flags(new(configv1alpha1.SallyportConfiguration), Name, authenticationModes)
	flags = slices.DeleteFunc(flags, func(f setting.Flag) bool { return f.Group == "" })
	for i := range flags {
		switch f := &flags[i]; f.Name {
		case "webhooks":
			f.Choices = Names()
			f.Value = func(field any) setting.Value { return &selection{entries: field.(*[]configv1alpha1.Webhook)} }
		case "controllers":
			f.Choices = controllerNames()
		}
	}
	return flags
}

// selection enables the entries that --webhooks names, and no others.
type selection struct {
	entries *[]configv1alpha1.Webhook
	names   []string
	given   bool
}

// Set implements [setting.Value]. Repeating the flag appends to its list.
func (s *selection) Set(text string) error {
	var names []string
	if s.given {
		names = s.names
	}
	if text != "" {
		names = append(names, strings.Split(text, ",")...)
	}
	return s.Replace(names)
}

// Replace implements [setting.SliceValue].
func (s *selection) Replace(names []string) error {
	if err := hostedByOthers(names); err != nil {
		return err
	}
	if err := setting.Join(setting.ValidateSelection("webhooks", names, Names())); err != nil {
		return err
	}
	s.names, s.given = names, true
	*s.entries = slices.Clone(*s.entries)
	for _, name := range Names() {
		enabled := cli.Selects(names, name)
		i := slices.IndexFunc(*s.entries, func(w configv1alpha1.Webhook) bool { return w.Name == name })
		switch {
		case i >= 0:
			(*s.entries)[i].Enabled = &enabled
		case enabled:
			*s.entries = append(*s.entries, configv1alpha1.Webhook{Name: name})
		}
	}
	return nil
}

// Append implements [setting.SliceValue].
func (s *selection) Append(name string) error { return s.Replace(append(s.GetSlice(), name)) }

// GetSlice implements [setting.SliceValue].
func (s *selection) GetSlice() []string {
	if s.given {
		return s.names
	}
	var names []string
	for _, w := range *s.entries {
		if w.Enabled == nil || *w.Enabled {
			names = append(names, w.Name)
		}
	}
	return names
}

// Type implements [setting.Value].
func (s *selection) Type() string { return "stringSlice" }

func (s *selection) String() string { return "[" + strings.Join(s.GetSlice(), ",") + "]" }

// Select enables the named ready-made webhooks and disables all others.
func (c *Config) Select(names ...string) error {
	return (&selection{entries: &c.Webhooks}).Replace(names)
}
