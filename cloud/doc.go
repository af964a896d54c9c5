// SPDX-License-Identifier: Apache-2.0

// Package cloud hosts webhooks in a cloud controller manager, as KEP-2699 describes it,
// without a fork of k8s.io/cloud-provider: [Registry.Command] has the parameters of
// app.NewCloudControllerManagerCommand, and returns a command that also serves the webhooks
// of the registry.
//
//	webhooks, err := cloud.New(cloud.PersistentVolumeLabel("gce"))
//	…
//	command, err := webhooks.Command(ccmOptions, cloudInitializer, controllerInitializers(),
//		names.CCMControllerAliases(), fss, wait.NeverStop)
//
// This package then defines the flags --webhooks and --webhook-*, with the meaning they
// have upstream, and further ones. Webhooks are served if --webhooks enables them and one
// of the feature gates CloudControllerManagerWebhook and [WebhookServer] is on; otherwise
// no port is opened. Every replica serves them, not only the leader.
//
// Without controllers (--controllers=-*) the same program is a webhook manager: it does not
// elect a leader or wait for the API server, which may be waiting for it.
package cloud
