// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// checkStatic checks static admission manifests.
func (d *doctor) checkStatic(ctx context.Context) {
	const check = "static-manifests"
	if len(d.Static) == 0 {
		d.Skip(check, "they are files on the hosts of API servers: '%s doctor --static-manifests-dir DIRECTORY' reads them there", d.Program)
		return
	}
	report, err := inspect.LintFiles(nil, d.Static, nil, lint.Options{})
	if err != nil {
		for _, e := range manifest.SplitErrors(err) {
			d.Fix(check, "kube-apiserver continues with the last valid set of files: correct it", "%v", e)
		}
		return
	}
	before := len(d.Checks)
	for _, f := range report.Findings {
		if f.Severity == lint.Error {
			d.Fix(check, f.Fix, "%s:%d: %s", f.File, f.Line, f.Message)
		}
	}
	// The API server has this metric only if it reads such files.
	body, err := d.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	reads := err == nil && bytes.Contains(body, []byte("apiserver_manifest_admission_config_controller_"))
	if n := report.Checked["MutatingWebhookConfiguration"] + report.Checked["ValidatingWebhookConfiguration"]; len(d.Checks) == before {
		text := fmt.Sprintf("%s in %s", cli.Count(n, "configuration", "configurations"), strings.Join(d.Static, ", "))
		if !reads && err == nil {
			text += "; whether the API server reads them is unknown: it has not reloaded any"
		}
		d.OK(check, "%s", text)
	}
}
