// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/sallyport-io/sallyport/internal/cli/setting"
)

// ClientConfig returns the client configuration from a kubeconfig file or, without one, from
// the pod's environment. It ignores $KUBECONFIG: a server that writes webhook configurations
// must not pick a cluster by accident.
func ClientConfig(path, userAgent string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if path == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, &setting.Problem{Field: "kubeconfig", Err: fmt.Errorf("not in a cluster (%w): set it to the path of a kubeconfig file", err)}
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", path); err != nil {
		return nil, &setting.Problem{Field: "kubeconfig", Err: err}
	}
	config.UserAgent = userAgent
	config.QPS = -1 // API priority and fairness limits us
	return config, nil
}
