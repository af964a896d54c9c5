// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ClientConfig returns the client configuration from a kubeconfig file or, without one, from
// the pod's environment. It ignores $KUBECONFIG: a server that writes webhook configurations
// must not pick a cluster by accident.
func ClientConfig(path, userAgent string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if path == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, problemf("not in a cluster (%w): set %s", err, setting("kubeconfig"))
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", path); err != nil {
		return nil, problemf("%s: %w", setting("kubeconfig"), err)
	}
	config.UserAgent = userAgent
	config.QPS = -1 // API priority and fairness limits us
	return config, nil
}
