// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/hosting"
)

// ClientConfig returns the client configuration from a kubeconfig file, or from the
// pod's service account if path is empty. It ignores $KUBECONFIG: a server that writes
// webhook configurations must not choose a cluster by accident.
func ClientConfig(path, userAgent string) (*rest.Config, error) {
	return hosting.ClientConfig(path, userAgent)
}
