// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting/staticmanifests"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// printConfigurations prints what would be registered, without the caBundle of an
// authority, which is not created for that.
func (s *settings) printConfigurations(out io.Writer, webhooks []*Webhook) error {
	if len(s.definitions(webhooks)) == 0 {
		return fmt.Errorf("--print-webhook-configuration: --webhooks enables none that this program registers")
	}
	problems := slices.DeleteFunc(s.complete().hosting().Validate(), func(err *field.Error) bool { return !strings.HasPrefix(err.Field, "registration.") })
	if len(problems) > 0 {
		return setting.Join(problems)
	}
	caBundle, err := cli.ReadCABundle("webhook-tls-ca-file", s.Certificate.CAFile)
	if err != nil {
		return err
	}
	manifests := registration.Manifests
	if s.Registration.Mode == registration.ModeManifest {
		manifests = staticmanifests.Manifests
	}
	var objects []runtime.Object
	if objects, err = manifests(s.config(), s.definitions(webhooks), caBundle); err != nil {
		return err
	}
	return cli.PrintYAML(out, objects)
}
