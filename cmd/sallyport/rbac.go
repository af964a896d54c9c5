// SPDX-License-Identifier: Apache-2.0

package main

import frontdoor "github.com/sallyport-io/sallyport"

// rights are those of the server with these settings, and no more.
func (o *manifestsOptions) rights() frontdoor.Rights {
	return frontdoor.Rights{
		Registration: o.registration, Certificate: o.certificates, LeaderElection: o.election, ServiceAccount: o.serviceAccount,
		Rules: o.webhooks.rights(&o.builtin),
	}
}
