// SPDX-License-Identifier: Apache-2.0

// Package cloud hosts webhooks in a cloud controller manager, as KEP-2699 describes it,
// without a fork of k8s.io/cloud-provider: [Registry.Command] takes what
// app.NewCloudControllerManagerCommand takes, and gives a command that serves the
// webhooks of the registry too.
//
//	webhooks, err := cloud.New(cloud.PersistentVolumeLabel("gce"))
//	…
//	command, err := webhooks.Command(ccmOptions, cloudInitializer, controllerInitializers(),
//		names.CCMControllerAliases(), fss, wait.NeverStop)
//
// The flags --webhooks and --webhook-* are this package's then, with the meaning they have
// upstream and some more. Webhooks are served if they are enabled by --webhooks, and one
// of the feature gates CloudControllerManagerWebhook and [WebhookServer] is on; otherwise
// no port is opened. They are served by every replica, whoever leads.
//
// Without controllers (--controllers=-*) the same program is a webhook manager: it neither
// elects a leader nor waits for the API server, which may be the one that waits for it.
package cloud
