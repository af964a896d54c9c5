// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"k8s.io/client-go/kubernetes"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/hosting/delegated"
)

// AuthenticationDelegated authenticates callers through the API server.
const AuthenticationDelegated = "Delegated"

func delegatedAuthentication(env frontdoor.Environment) (frontdoor.Authentication, error) {
	client, err := kubernetes.NewForConfig(env.Client)
	if err != nil {
		return frontdoor.Authentication{}, err
	}
	authenticator, err := delegated.New(client)
	if err != nil {
		return frontdoor.Authentication{}, err
	}
	authenticator.WhenKnown(env.Changed)
	return frontdoor.Authentication{
		Authenticate: authenticator.Authenticate, Ready: authenticator.Ready, Run: authenticator.Run,
	}, nil
}
