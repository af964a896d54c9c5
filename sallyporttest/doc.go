// SPDX-License-Identifier: Apache-2.0

// Package sallyporttest helps to test webhooks: without a cluster, against the API server's
// rules for responses, and on a real API server.
//
// [Run] sends a handler a request of the API server, and reports everything that the API
// server would reject, or accept although it is wrong:
//
//	sallyporttest.Run(t, admission.Mutate(setDefaults), sallyporttest.Case{
//		Review: sallyporttest.Create(&v1.CronTab{...}, sallyporttest.InScheme(scheme)),
//		Want:   &v1.CronTab{...},
//	})
//
// [Start] runs an application on a real API server, [StartAPIServer] starts one alone.
package sallyporttest
