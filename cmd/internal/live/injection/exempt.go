// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/drift"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// readExemptions returns the exemptions that count, by namespace. None do unless the
// cluster has the webhook for them.
func readExemptions(ctx context.Context, c *cluster.Cluster, namespaces []*manifest.Object, notes io.Writer) (map[string][]exempt.Exemption, error) {
	out := map[string][]exempt.Exemption{}
	for _, n := range namespaces {
		list, err := exempt.ParseExemptions(n.Annotations[exempt.ExemptAnnotation])
		if err != nil {
			manifest.Note(notes, "note: namespace %s: annotation %s cannot be read, so nothing is exempt: %s",
				n.Name, exempt.ExemptAnnotation, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		if len(list) > 0 {
			out[n.Name] = list
		}
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
		manifest.Note(notes, "note: the annotation %s does not count: no webhook %s is registered, see maxExemption in the server's configuration",
			exempt.ExemptAnnotation, author.ExemptName)
		return nil, nil
	}
	return out, nil
}

// exemption returns what exempts a pod from d now, or nil.
func (k *Defaults) exemption(d *Default, pod *manifest.Object) *exempt.Exemption {
	return exempt.ExemptionFrom(d.compiled.Decision(), k.exemptions, time.Now(), meta.WorkloadOf(&pod.ObjectMeta))
}

// exemptUntil describes an exemption.
func exemptUntil(e *exempt.Exemption) string {
	return "exempt until " + e.Until.Format(time.RFC3339) + " (" + e.Reason + ")"
}

// exemptedBy returns what exempts a pod from objects that it does not carry, each once.
func exemptedBy(findings []drift.Finding) (out []*exempt.Exemption) {
	for _, f := range findings {
		if f.State == drift.Exempt && !slices.Contains(out, f.By) {
			out = append(out, f.By)
		}
	}
	return out
}

// A DriftExemption is an exemption that has not ended, with the pods that do not carry a
// PodDefault because of it.
type DriftExemption struct {
	Namespace string `json:"namespace"`
	*exempt.Exemption
	Pods int `json:"pods"`
}

// inForce returns the exemptions of the namespaces that were read, in order of their end.
func (f *fleet) inForce(pods map[*exempt.Exemption]int) []DriftExemption {
	out, now := []DriftExemption{}, time.Now()
	for namespace, known := range f.known {
		for i := range known.exemptions {
			if e := &known.exemptions[i]; now.Before(e.Until) {
				out = append(out, DriftExemption{namespace, e, pods[e]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b DriftExemption) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), a.Until.Compare(b.Until), slices.Compare(a.Objects, b.Objects), strings.Compare(a.Workload, b.Workload))
	})
	return out
}
