// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime is for projects that stand on controller-runtime.
//
// [NewServer] gives a manager another webhook server: the webhooks stay as they are,
// the TLS listener is that of package serving, with its limits, deadlines, metrics,
// and an end that loses no call.
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		WebhookServer: controllerruntime.NewServer(webhook.Options{CertDir: certDir}),
//	})
//
// [Handler], [Defaulter] and [Validator] go the other way: they take what was written
// for controller-runtime's webhooks into an application of package sallyport.
package controllerruntime
