// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

func TestExplainStopsAtTheDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	notes := &strings.Builder{}
	checker := fieldcheck.New(fieldcheck.Warn, notes, &fieldcheck.Definitions{})
	c, err := cluster.New(&rest.Config{Host: "https://127.0.0.1:1"}, "team-a")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d, namespace: team-a}\nspec: {containers: [{name: c, image: x}]}\n", i)
	}
	objects, err := Parse(ctx, "pods.yaml", []byte(text.String()), 20, checker, "try")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	simulator := &Simulator{Cluster: c, Checker: checker, Notes: notes, Webhooks: func(source match.Source) ([]admission.Webhook, error) {
		webhook, err := poddefault.New(source, poddefault.DefaultSettings())
		webhook.Handler = admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
			if calls++; calls == 3 {
				cancel()
			}
			return admission.Allowed(), nil
		})
		return []admission.Webhook{webhook}, err
	}}
	simulator.keep("team-a", &Defaults{namespace: "team-a"})
	told := 0
	if _, err := simulator.Explain(ctx, objects, dataset.DefaultSettings(), func(*Explanation) error { told++; return nil }); !errors.Is(err, context.Canceled) || calls != 3 || told > 3 {
		t.Errorf("%d calls, %d explanations, %v", calls, told, err)
	}
	if _, err := Parse(t.Context(), "pods.yaml", []byte(text.String()), 19, checker, "try"); err == nil || err.Error() != "pods.yaml: it has 20 objects: try at most 19 at a time" {
		t.Errorf("20 of at most 19 objects: %v", err)
	}
}
