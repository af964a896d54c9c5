// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/hosting"
)

// ClientConfig says how to reach the API server: by a kubeconfig file, or as a pod
// does. $KUBECONFIG is not asked: a server that writes webhook configurations must
// not choose a cluster by chance.
func ClientConfig(path, userAgent string) (*rest.Config, error) {
	return hosting.ClientConfig(path, userAgent)
}
