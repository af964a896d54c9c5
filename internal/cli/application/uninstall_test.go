// SPDX-License-Identifier: Apache-2.0

package application

import (
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestUninstallAsksBeforeItRemoves(t *testing.T) {
	deleted := []registration.Removal{{Object: "secret/a", Action: registration.Deleted}, {Object: "b", Action: registration.Left, Why: "not ours"}}
	for _, tc := range []struct {
		name    string
		planned []registration.Removal
		answer  string
		want    bool
		says    string
	}{
		{"yes", deleted, "y\n", true, "secret/a deleted (dry run)\nb left: not ours\nContinue? [y/N] "},
		{"yes in full", deleted, "Yes\n", true, "Continue?"},
		{"only return", deleted, "\n", false, "nothing was removed"},
		{"no answer", deleted, "", false, "nothing was removed"},
		{"something else", deleted, "maybe\n", false, "nothing was removed"},
		{"nothing to remove", deleted[1:], "", true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			got, err := confirm(tc.planned, strings.NewReader(tc.answer), &out)
			if err != nil || got != tc.want || !strings.Contains(out.String(), tc.says) || (tc.says == "" && out.String() != "") {
				t.Errorf("got %v, %v, %q", got, err, out.String())
			}
		})
	}
}
