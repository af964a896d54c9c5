// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"fmt"

	"github.com/sallyport-io/sallyport/serving/certificate"
)

// Cert-manager renews the certificate in files that the pod mounts.
func ExampleSettings() {
	settings := certificate.DefaultSettings("shop")
	fmt.Println(settings.Source, settings.Lifetime)
	settings.Source, settings.CertFile, settings.PrivateKeyFile = certificate.SourceFiles, "/certs/tls.crt", "/certs/tls.key"
	fmt.Println(settings.Source, settings.CertFile)
	// Output:
	// Authority 48h0m0s
	// Files /certs/tls.crt
}
