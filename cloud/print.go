// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/registration"
)

// printConfigurations prints what would be registered, without the caBundle of an
// authority, which is not created for that.
func (s *settings) printConfigurations(out io.Writer, webhooks []*Webhook) error {
	if len(s.definitions(webhooks)) == 0 {
		return fmt.Errorf("--print-webhook-configuration: --webhooks enables none that this program registers")
	}
	if err := s.validateRegistration(); err != nil {
		return err
	}
	config, err := s.config()
	if err != nil {
		return err
	}
	caBundle, err := cli.ReadCABundle("webhook-tls-ca-file", s.caFile)
	if err != nil {
		return err
	}
	manifests := registration.Manifests
	if s.registration == registration.ModeManifest {
		manifests = registration.StaticManifests
	}
	var objects []runtime.Object
	if objects, err = manifests(config, s.definitions(webhooks), caBundle); err != nil {
		return err
	}
	return cli.PrintYAML(out, objects)
}
