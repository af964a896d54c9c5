// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ClientConfig says how to reach the API server: by a kubeconfig file, or as a pod
// does. $KUBECONFIG is not asked: a server that writes webhook configurations must
// not choose a cluster by chance.
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
	config.QPS = -1 // the API server's own fairness decides
	return config, nil
}
