// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	certutil "k8s.io/client-go/util/cert"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// A Listing has the webhooks and policies of a cluster in the order in which the API server considers them,
// and what the rules find.
type Listing struct {
	Links []Listed
	// Findings are about other objects than those of Links.
	Findings []lint.Finding
	// Skipped are checks that could not run, one line for each reason.
	Skipped []string
}

// A Listed is a webhook or a policy of a [Listing].
type Listed struct {
	lint.Link
	// Configuration is the name of the webhook configuration or the policy. Entry is the name of the webhook
	// or the binding.
	Configuration, Entry string
	// CAExpires is when the last CA of a webhook's caBundle expires; zero without a bundle that parses.
	CAExpires time.Time
	Findings  []lint.Finding
}

// List reads a [Listing]. It contacts no webhook server, so the rules know nothing of their certificates.
func List(ctx context.Context, c *cluster.Cluster) (*Listing, error) {
	objects, inventory, options, err := readForLint(ctx, c, lint.Options{})
	if err != nil {
		return nil, err
	}
	report := lint.Run(inventory, options)
	out := &Listing{Skipped: skippedLines(report.Skipped)}
	expiry := objects.caExpiry()
	reported := make([]bool, len(report.Findings))
	for _, link := range inventory.Chain(ctx, matcher.Request{}) {
		listed := Listed{Link: link}
		listed.Configuration, listed.Entry, _ = strings.Cut(link.Name, "/")
		kind := kindOfPhase[link.Phase]
		listed.CAExpires = expiry[kind+"/"+link.Name]
		for i, f := range report.Findings {
			if f.Object == kind+"/"+listed.Configuration && (f.Webhook == "" || f.Webhook == listed.Entry) {
				listed.Findings, reported[i] = append(listed.Findings, f), true
			}
		}
		out.Links = append(out.Links, listed)
	}
	for i, f := range report.Findings {
		if !reported[i] {
			out.Findings = append(out.Findings, f)
		}
	}
	return out, nil
}

var kindOfPhase = map[lint.Phase]string{
	lint.MutatingPolicies: "MutatingAdmissionPolicy", lint.MutatingWebhooks: "MutatingWebhookConfiguration",
	lint.ValidatingPolicies: "ValidatingAdmissionPolicy", lint.ValidatingWebhooks: "ValidatingWebhookConfiguration",
}

// caExpiry returns when the last CA of each webhook expires, by kind/configuration/webhook.
func (o *Objects) caExpiry() map[string]time.Time {
	out := map[string]time.Time{}
	for _, object := range o.All {
		var body struct {
			Webhooks []struct {
				Name         string `json:"name"`
				ClientConfig struct {
					CABundle []byte `json:"caBundle"`
				} `json:"clientConfig"`
			} `json:"webhooks"`
		}
		if !strings.HasSuffix(object.Kind, "WebhookConfiguration") || json.Unmarshal(object.Raw, &body) != nil {
			continue
		}
		for _, w := range body.Webhooks {
			certificates, err := certutil.ParseCertsPEM(w.ClientConfig.CABundle)
			if err != nil {
				continue // a rule says so
			}
			key := object.Kind + "/" + object.Name + "/" + w.Name
			for _, certificate := range certificates {
				if certificate.NotAfter.After(out[key]) {
					out[key] = certificate.NotAfter.UTC()
				}
			}
		}
	}
	return out
}
