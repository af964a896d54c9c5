// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	cmfeatures "k8s.io/controller-manager/pkg/features"
)

// WebhookServer is the name of the feature gate in KEP-2699. In Kubernetes it is
// CloudControllerManagerWebhook; either of them enables webhooks.
const WebhookServer featuregate.Feature = "CloudWebhookServer"

// addGate adds the gate to --feature-gates. The feature gates of a Kubernetes component are
// global to its process.
func addGate() error {
	if _, known := utilfeature.DefaultMutableFeatureGate.GetAll()[WebhookServer]; known {
		return nil
	}
	err := utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		WebhookServer: {Default: false, PreRelease: featuregate.Alpha},
	})
	if err != nil {
		return fmt.Errorf("feature gate %s: %w: make the command before flags are parsed", WebhookServer, err)
	}
	return nil
}

func gateOpen() bool {
	return utilfeature.DefaultFeatureGate.Enabled(WebhookServer) || utilfeature.DefaultFeatureGate.Enabled(cmfeatures.CloudControllerManagerWebhook)
}
