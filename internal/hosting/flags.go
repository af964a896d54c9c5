// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/wire/reviewversion"
	"github.com/sallyport-io/sallyport/internal/wire/tlsname"
	"github.com/sallyport-io/sallyport/serving"
)

// Flags are the flags of settings, a pointer to a struct that has some of the fields of [Settings],
// for an application of that name and with these modes of authentication.
func Flags(settings any, name string, modes []string) []setting.Flag {
	flags := setting.Flags(settings)
	for i := range flags {
		f := &flags[i]
		if known := Choices(f.Field, modes); known != nil {
			f.Choices = known
		}
		switch f.Field {
		case "serving.tlsMinVersion":
			f.Choices = tlsname.Versions()
		case "serving.tlsCipherSuites":
			f.Choices = tlsname.Suites()
		case "registration.service", "registration.conversionService":
			f.Value = serviceValue
		case "registration.namespaceSelector":
			f.Value = selectorValue
		case "certificate.authoritySecret":
			f.Usage = strings.ReplaceAll(strings.ReplaceAll(f.Usage, ", where NAME is the application's", ""), "NAME-authority", certificate.DefaultSettings(name).DefaultSecret)
		case "authentication.mode", "authentication.metrics":
			f.Usage = strings.Replace(f.Usage, ";", ": "+cli.OneOf(f.Choices)+";", 1)
		}
	}
	return flags
}

// Choices returns the accepted values of a field that the tags of its declaration cannot know; nil if
// it has none.
func Choices(path string, modes []string) []string {
	switch path {
	case "authentication.mode":
		return modes
	case "authentication.metrics": // scrapers authenticate with a token
		return slices.DeleteFunc(slices.Clone(modes), func(mode string) bool { return mode == serving.AuthenticationClientCA })
	case "registration.reviewVersions":
		return reviewversion.All()
	}
	return nil
}

// selector is the value of a flag for a label selector.
type selector struct{ field **metav1.LabelSelector }

func selectorValue(pointer any) setting.Value { return selector{pointer.(**metav1.LabelSelector)} }

// Set implements [setting.Value].
func (s selector) Set(text string) (err error) {
	*s.field = nil
	if text != "" {
		*s.field, err = metav1.ParseToLabelSelector(text)
	}
	return err
}

// String implements [setting.Value].
func (s selector) String() string {
	if s.field == nil || *s.field == nil {
		return ""
	}
	return metav1.FormatLabelSelector(*s.field)
}

// Type implements [setting.Value].
func (s selector) Type() string { return "string" }
