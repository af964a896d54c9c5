// SPDX-License-Identifier: Apache-2.0

package serverdoctor

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/definition"
	"github.com/sallyport-io/sallyport/config/crd"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// checkDefinitions compares the served definitions of PodDefaults with those of this
// program. It reports nothing if there is no injection.
func checkDefinitions(ctx context.Context, of *doctor.Installation, report *doctor.Report) {
	const check = "definitions"
	if !slices.ContainsFunc(of.Webhooks, func(w cluster.Webhook) bool { return w.Name == poddefault.Name }) {
		return
	}
	own, err := crd.All()
	if err != nil {
		report.Skip(check, "%v", err)
		return
	}
	client, err := crdclient.NewForConfig(of.Cluster.Config)
	if err != nil {
		report.Skip(check, "%v", err)
		return
	}
	complete := true
	for _, want := range own {
		served, err := client.Get(ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			complete = false
			report.Fix(check, "apply the output of 'sallyport manifests --part crd'", "there is no definition %s", want.Name)
		case err != nil:
			report.Unread(check, "get customresourcedefinitions", err)
			return
		default:
			if missing := definition.Missing(want, served); len(missing) > 0 {
				complete = false
				report.Fix(check, "apply the output of 'sallyport manifests --part crd', with --server-side --force-conflicts, and stop applying the other definition, for example from Kubeflow's manifests; "+
					"then write the lost fields again: docs/kubeflow-migration.md", "%s", definition.Describe(want.Name, missing))
			}
		}
	}
	if complete {
		report.OK(check, "the served definitions have every field of this version")
	}
}
