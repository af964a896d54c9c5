// SPDX-License-Identifier: Apache-2.0

// Package console serves web pages about admission in a cluster: which webhooks change objects, what
// PodDefaults do to pods, and what is wrong. It reads with the rights of the user who looks, computes
// nothing of its own, and changes nothing.
//
// Pages are rendered on the server, and work without scripts. With them, an open page follows the
// cluster. There are no cookies.
package console

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/early"
	"github.com/sallyport-io/sallyport/cmd/internal/live/doctor"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
)

// Options configure a console.
type Options struct {
	// Config accesses the cluster, for a local user with that user's rights.
	Config *rest.Config
	// Namespace is shown if the user chooses none.
	Namespace string
	// Doctor configures the checks of the overview.
	Doctor doctor.Options
	// Webhooks defines the PodDefault webhooks that evaluate the PodDefaults of a source.
	Webhooks func(match.Source) ([]admission.Webhook, error)
	// Dataset are the settings of the webhook dataset.
	Dataset dataset.Settings
	// Clusters are the names of the clusters that the user can choose, and Connect returns the configuration of one and
	// the namespace to show first. Only a local user chooses; without Clusters there is just the one of Config.
	Clusters []string
	Connect  func(name string) (config *rest.Config, namespace string, err error)
	// Version is the version of this program.
	Version string

	ending <-chan struct{} // closed when the console ends
	blank  time.Duration   // how long a browser shows nothing
}

// A page of the console.
//
// To add one: write its show function in a file NAME.go, its component in NAME.templ (run `make
// templates` afterwards), and add a row to pages.
type page struct {
	// path is one segment below the console's root, empty for the first page. Links between pages are
	// relative ("poddefaults?namespace=a"), so they work below any prefix.
	path string
	// title is the heading, and the name in the menu.
	title string
	// group is the heading in the menu above it; empty for the first page. A page with the group hidden is not in
	// the menu.
	group string
	// filter reports whether the rows of its tables can be filtered by a text.
	filter bool
	// posts reports whether the page also takes POST with a form. Nothing may change the cluster.
	posts bool
	// live reports whether an open page is read again. Its show function must not take a form.
	live bool
	// show reads what the user may read, and returns the content below the heading. It sets visit.data for those who
	// ask for JSON: the same, without values of variables, annotations and Secrets. It handles a kind
	// that the user may not read with [visit.hide], so that the rest of the page is shown. Errors
	// replace the content: see explain.
	show func(ctx context.Context, v *visit) (templ.Component, error)
}

// pages are the pages in the order of the menu.
func pages() []page {
	return []page{
		{path: "", title: "Overview", live: true, show: showOverview},
		{path: "pod", title: "Pods and workloads", group: "Pods", live: true, filter: true, show: showPod},
		{path: "try", title: "Try a change", group: "Pods", posts: true, show: showTry},
		{path: "who", title: "Who gets it", group: "Pods", show: showWho},
		{path: "poddefaults", title: "PodDefaults", group: "PodDefaults", live: true, filter: true, show: showPodDefaults},
		{path: "rollouts", title: "Rollouts", group: "PodDefaults", live: true, filter: true, show: showRollouts},
		{path: "drift", title: "Drift", group: "PodDefaults", live: true, filter: true, show: showDrift},
		{path: "exemptions", title: "Exemptions", group: "PodDefaults", live: true, filter: true, show: showExemptions},
		{path: "webhooks", title: "Webhooks and policies", group: "Admission", live: true, filter: true, show: showWebhooks},
		{path: "latency", title: "Latency", group: "Admission", live: true, filter: true, show: showLatency},
		{path: "upgrade", title: "Before an upgrade", group: "Admission", live: true, show: showUpgrade},
		{path: clustersPath, title: "All clusters", group: "Admission", show: showClusters},
		{path: "search", title: "Search", group: hiddenGroup, show: showSearch},
	}
}

// clustersPath is of a page that is in the menu of those who have several.
const clustersPath = "clusters"

// hiddenGroup is the group of pages that are not in the menu.
const hiddenGroup = "hidden"

// menu are the pages of the menu by group, in order.
func menu() [][]page {
	var out [][]page
	for _, p := range pages() {
		switch {
		case p.group == hiddenGroup:
		case len(out) > 0 && out[len(out)-1][0].group == p.group:
			out[len(out)-1] = append(out[len(out)-1], p)
		default:
			out = append(out, []page{p})
		}
	}
	return out
}

const (
	// maxTime limits how long a page takes.
	maxTime = 30 * time.Second
	// maxBytes limits the body of a request: a manifest is at most 1.5 MiB in etcd.
	maxBytes = 4 << 20
)

// handler returns the console for users that identify recognizes.
func (o *Options) handler(identify access.Identifier) http.Handler {
	o.blank = cmp.Or(o.blank, early.MaxBlank)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /style.css", serveFile("text/css", style))
	mux.HandleFunc("GET /live.js", serveFile("text/javascript", live))
	renderings, streams := renderings(), streams()
	for _, p := range pages() {
		pattern := "/" + p.path
		if p.path == "" {
			pattern = "/{$}"
		}
		handler := o.pageHandler(p, identify, renderings, streams)
		mux.Handle("GET "+pattern, handler)
		if p.posts {
			mux.Handle("POST "+pattern, handler)
		}
	}
	return access.Secure(mux, maxBytes)
}
