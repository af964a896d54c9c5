// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"cmp"
	"errors"

	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// Clients are the clients of a host. Each is of one API group: a kubernetes.Interface would
// link the types of all groups, 1 MB in each program.
type Clients struct {
	Config         *rest.Config
	Secrets        coreclient.SecretsGetter
	Leases         coordinationclient.LeasesGetter
	Events         eventsclient.EventsV1Interface
	Configurations admissionregistrationclient.AdmissionregistrationV1Interface
	Definitions    crdclient.Interface
}

// NewClients returns clients that share their connections. It calls nobody.
func NewClients(config *rest.Config) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	secrets, err1 := coreclient.NewForConfigAndClient(config, shared)
	leases, err2 := coordinationclient.NewForConfigAndClient(config, shared)
	events, err3 := eventsclient.NewForConfigAndClient(config, shared)
	configurations, err4 := admissionregistrationclient.NewForConfigAndClient(config, shared)
	definitions, err5 := crdclient.NewForConfigAndClient(config, shared)
	return &Clients{config, secrets, leases, events, configurations, definitions}, errors.Join(err1, err2, err3, err4, err5)
}
