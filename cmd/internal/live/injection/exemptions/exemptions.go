// SPDX-License-Identifier: Apache-2.0

// Package exemptions reads the Exemptions of a cluster with the user's rights.
package exemptions

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// CollectionOf is the path of the Exemptions of a namespace, or of all if it is empty.
func CollectionOf(namespace string) string {
	resource := sallyportv1alpha1.ExemptionResource
	if namespace != "" {
		resource = "namespaces/" + namespace + "/" + resource
	}
	return "/apis/" + sallyportv1alpha1.GroupVersion.String() + "/" + resource
}

// Read returns the exemptions of a namespace that count, or of all if it is empty,
// by namespace. None do unless the cluster has the webhook for them.
func Read(ctx context.Context, c *cluster.Cluster, namespace string, notes io.Writer) (map[string][]*exempt.Exemption, error) {
	objects, _, err := c.ListIfAllowed(ctx, "Exemptions", CollectionOf(namespace), notes)
	if err != nil {
		return nil, err
	}
	out := map[string][]*exempt.Exemption{}
	for _, o := range objects {
		from := &sallyportv1alpha1.Exemption{}
		if err := o.Decode(from); err != nil {
			return nil, err
		}
		e, err := exempt.New(from)
		if err != nil {
			manifest.Note(notes, "note: Exemption %s/%s exempts from nothing: %s", e.Namespace, e.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		out[e.Namespace] = append(out[e.Namespace], e)
	}
	for _, list := range out {
		slices.SortFunc(list, exempt.Compare)
	}
	if len(out) == 0 {
		return nil, nil
	}
	// Whether it is registered is assumed of a user who may not look.
	configurations, registered, err := c.ListIfAllowed(ctx, "ValidatingWebhookConfigurations",
		"/apis/"+admissionregistrationv1.SchemeGroupVersion.String()+"/validatingwebhookconfigurations", notes)
	if err != nil {
		return nil, err
	}
	for _, o := range configurations {
		var configuration struct {
			Webhooks []struct{ Name string }
		}
		if err := json.Unmarshal(o.Raw, &configuration, json.MatchCaseInsensitiveNames(true)); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Title(), err)
		}
		for _, w := range configuration.Webhooks {
			registered = registered || w.Name == author.ExemptName
		}
	}
	if !registered {
		manifest.Note(notes, "note: Exemptions exempt from nothing: no webhook %s is registered, see maxExemption in the server's configuration", author.ExemptName)
		return nil, nil
	}
	return out, nil
}
