// SPDX-License-Identifier: Apache-2.0

package serverdoctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/revision"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// checkRevisions proves the revisions of PodDefaults and ClusterPodDefaults, and names those
// that are ignored because they are not what they say. It reports nothing if there is no
// injection.
func checkRevisions(ctx context.Context, of *doctor.Installation, report *doctor.Report) {
	const check = "revisions"
	if of.WebhooksErr == nil && !slices.ContainsFunc(of.Webhooks, func(w cluster.Webhook) bool { return w.Name == poddefault.Name }) {
		return
	}
	client := revision.NewClient(of.Cluster.Client.Discovery().RESTClient())
	proven, complete := 0, true
	refused := map[string]*refusals{}
	for _, scope := range []string{"", revision.AllNamespaces} {
		err := client.EachIn(ctx, scope, func(r *revision.Record) {
			if r.Problem == nil {
				proven++
				return
			}
			namespace := r.Identity().Namespace
			if refused[namespace] == nil {
				refused[namespace] = &refusals{}
			}
			refused[namespace].add(r)
		})
		switch resource := revision.Resource(scope); {
		case apierrors.IsNotFound(err):
			complete = false
			report.Skip(check, "there is no definition of %s", resource)
		case err != nil:
			complete = false
			report.Unread(check, "list "+resource, err)
		}
	}
	reportRefused(report, check, refused)
	if complete && len(refused) == 0 {
		report.OK(check, "%s", cli.Count(proven, "revision matches its name", "revisions match their names"))
	}
}

// maxRefused limits the revisions of one namespace that are named, and maxRefusing the
// namespaces: whoever may write revisions in one hides none of another.
const maxRefused, maxRefusing = 3, 5

// refusals are the unproven revisions of a namespace, or of ClusterPodDefaults.
type refusals struct {
	count  int
	names  []string // the first
	reason string   // of the first
}

func (f *refusals) add(r *revision.Record) {
	if f.count++; f.count > maxRefused {
		return
	}
	if f.count == 1 {
		f.reason = fmt.Sprintf("%s: %v", r, r.Problem)
	}
	f.names = append(f.names, r.Identity().Name)
}

// reportRefused prints a line for each namespace, that of ClusterPodDefaults first.
func reportRefused(report *doctor.Report, check string, refused map[string]*refusals) {
	more := 0
	for i, namespace := range slices.Sorted(maps.Keys(refused)) {
		f := refused[namespace]
		if i >= maxRefusing {
			more += f.count
			continue
		}
		command := "kubectl delete " + sallyportv1alpha1.Resource(revision.Resource(namespace)).GroupResource().String()
		if namespace != "" {
			command += " -n " + namespace
		}
		text, remedy := "1 revision is ignored, because its content does not match its name: "+f.reason, "if it is not needed, delete it: "
		if f.count > 1 {
			text = fmt.Sprintf("%d revisions are ignored, because their content does not match their names. The first is %s", f.count, f.reason)
			remedy = "if they are not needed, delete them: "
		}
		report.Fix(check, remedy+command+" "+strings.Join(f.names, " "), "%s", text)
	}
	if more > 0 {
		report.Fix(check, "see above", "in other namespaces %s", cli.Count(more, "more revision is ignored", "more revisions are ignored"))
	}
}
