// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime is for projects that use controller-runtime.
//
// [NewServer] replaces the webhook server of a manager: the webhooks stay unchanged, and
// package serving provides the TLS listener, with limits, deadlines, metrics, and a
// shutdown that loses no call.
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		WebhookServer: controllerruntime.NewServer(webhook.Options{CertDir: certDir}),
//	})
//
// [Handler], [Defaulter] and [Validator] go the other way: they adapt code written for
// controller-runtime's webhooks to an application of package sallyport.
package controllerruntime
