// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/internal/certificate"
)

func TestStorageMigrationIsChecked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		crds []string
		want string
	}{
		"a name without a group": {[]string{"hats"}, `"hats": want PLURAL.GROUP`},
		"an invalid name":        {[]string{"Hats.example.com"}, `"Hats.example.com": want PLURAL.GROUP`},
		"one given twice":        {[]string{"hats.hats.example.com", "hats.hats.example.com"}, "hats.hats.example.com is given twice"},
		"two":                    {[]string{"hats.hats.example.com", "caps.hats.example.com"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New("hatter", WithStorageMigration(test.crds...))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("New: %v, want %q", err, test.want)
			}
		})
	}
}

// The rights for a migration are printed, and no more. The webhooks are still known
// without running.
func TestManifestsHaveTheRightsOfAStorageMigration(t *testing.T) {
	t.Parallel()
	app, err := New("hatter",
		WithConverters(conversion.HubAndSpokes[*hubHat](hats("v1", "v2"))),
		WithStorageMigration("hats.hats.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"API", "None"} {
		printed, err := manifests(t, app, "--service", "shop/hatter", "--registration", mode, "--certificate-source", certificate.SourceFiles)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"- customresourcedefinitions/status\n  verbs:\n  - patch\n", "  resources:\n  - storageversionmigrations\n  verbs:\n  - create\n", "  resourceNames:\n  - hats.hats.example.com\n  resources:\n  - storageversionmigrations\n  verbs:\n  - delete\n  - get\n",
			"name: hatter-components\n  namespace: shop\n", "- events\n",
		} {
			if !strings.Contains(printed, want) {
				t.Errorf("with --registration %s nothing says %q:\n%s", mode, want, printed)
			}
		}
		if strings.Contains(printed, "- hats\n") {
			t.Errorf("with --registration %s there are rights on the objects:\n%s", mode, printed)
		}
	}
}

// An application with converters checks objects with them.
func TestCommandChecksConversions(t *testing.T) {
	t.Parallel()
	app, err := New("hatter", WithConverters(conversion.HubAndSpokes[*hubHat](hats("v1", "v2"))))
	if err != nil {
		t.Fatal(err)
	}
	command := app.Command()
	command.SetIn(strings.NewReader(`{"apiVersion":"hats.example.com/v1","kind":"Hat","metadata":{"name":"bowler"},"size":"3"}`))
	var out, notes strings.Builder
	command.SetOut(&out)
	command.SetErr(&notes)
	command.SetArgs([]string{"convert", "-f", "-"})
	if err := command.ExecuteContext(t.Context()); err != nil || out.String() != "" || notes.String() != "checked 1 object\n" {
		t.Errorf("prints %q and %q: %v", out.String(), notes.String(), err)
	}
	app, err = New("hatter", WithWebhooks(hatter(t).Webhooks()...), WithScheme(hats("v1", "v2")))
	if err != nil {
		t.Fatal(err)
	}
	if found, _, err := app.Command().Find([]string{"convert"}); err == nil && found.Name() == "convert" {
		t.Error("without converters there is a command convert")
	}
}
