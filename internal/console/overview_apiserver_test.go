// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/internal/doctor"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/test/lab"
)

func TestTheOverviewHasWhatDoctorSaysOnARealAPIServer(t *testing.T) {
	t.Parallel()
	o := &Options{Config: lab.APIServer(t), Doctor: doctor.Options{Program: "sallyport", Registration: hosting.RegistrationSettings{Name: "console-overview"}}}
	response, body := visitPage(t, o, localRequest(http.MethodGet, "/", nil))
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d:\n%s", response.StatusCode, body)
	}
	for _, want := range []string{"api-server", "there is no webhook configuration console-overview", `class="fix"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
}
