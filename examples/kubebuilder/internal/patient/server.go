// SPDX-License-Identifier: Apache-2.0

// Package patient has a webhook server that drains until the API server has no
// connection left.
package patient

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sallyport-io/sallyport/controllerruntime"
)

// NewServer takes what a kubebuilder project has for its webhook server. The manager
// must wait for longer than it drains: GracefulShutdownTimeout, and
// terminationGracePeriodSeconds of the pod.
func NewServer(options webhook.Options) (webhook.Server, error) {
	limits := controllerruntime.ServingOptions()
	limits.DrainTimeout = 95 * time.Second
	return controllerruntime.New(controllerruntime.Options{Options: options, Serving: &limits})
}
