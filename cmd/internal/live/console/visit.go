// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/early"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/once"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A visit is the request of a user for a page.
type visit struct {
	*http.Request
	*Options
	page page
	// User is empty for a local user.
	user string
	// config and cluster read with the user's rights. The namespace of the cluster is the one that the
	// user chose.
	config  *rest.Config
	cluster *cluster.Cluster
	// hidden are the kinds that the user may not read.
	hidden []string
	// notes are remarks of the packages that are asked.
	notes bytes.Buffer
	// rows are the bytes of all rows of changes, at most maxAnswer.
	rows int
	// heading is the object that the page is about; empty for the page itself.
	heading string
	// data is what the page shows, as JSON.
	data any
	// namespaces are those that the user can choose.
	names []string
	// problem replaces the content.
	problem *explain.Problem
}

// hide notes that the user may not read something, such as "list clusterpoddefaults", if err says so.
// It returns any other error.
func (v *visit) hide(what string, err error) error {
	if apierrors.IsForbidden(err) {
		if !slices.Contains(v.hidden, what) {
			v.hidden = append(v.hidden, what)
		}
		return nil
	}
	return err
}

// inAll reads the chosen namespace or, if none is chosen, all of them. A user who may not read all sees the
// namespace of the cluster, and what is hidden.
func inAll[T any](v *visit, what string, read func(namespace string) (T, error)) (T, error) {
	found, err := read(v.chosen())
	if v.chosen() == "" && apierrors.IsForbidden(err) {
		v.hidden = append(v.hidden, what)
		return read(v.cluster.Namespace)
	}
	return found, err
}

// remarks returns the lines of notes, shortened.
func (v *visit) remarks() []string {
	const most = 20
	var out []string
	for line := range strings.Lines(v.notes.String()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "note: ")
		switch {
		case slices.Contains(out, line):
		case len(out) == most:
			return append(out, "There are more remarks.")
		default:
			out = append(out, line)
		}
	}
	return out
}

// link returns the relative URL of a page with parameters, pairs of key and value. It keeps the
// namespace unless the pairs have one.
func (v *visit) link(path string, pairs ...string) string {
	query := url.Values{}
	if v.chosen() != "" && v.cluster != nil {
		query.Set("namespace", v.cluster.Namespace)
	}
	if name := v.connected(); name != "" {
		query.Set("cluster", name)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	if path == "" {
		path = "./"
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// chosen returns the namespace in the request. Kubeflow's central dashboard calls the parameter ns.
func (v *visit) chosen() string {
	return cmp.Or(v.FormValue("namespace"), v.URL.Query().Get("ns"))
}

// connected returns the cluster that the user chose; empty for the one of the options.
func (v *visit) connected() string {
	if name := v.URL.Query().Get("cluster"); v.user == "" && slices.Contains(v.Clusters, name) {
		return name
	}
	return ""
}

// value returns a parameter that is the name of an object or a type. It is empty if the request has
// none. Names go into paths of the API.
func (v *visit) value(parameter string) (string, error) {
	value := v.FormValue(parameter)
	if value == "" {
		return "", nil
	}
	if problems := content.IsPathSegmentName(value); len(problems) > 0 {
		return "", fmt.Errorf("%w: %s %q: %s", explain.ErrBadInput, parameter, manifest.Printable(value), strings.Join(problems, "; "))
	}
	return value, nil
}

// open checks the parameters and prepares the reader.
func (v *visit) open() error {
	err := v.ParseForm()
	if err == nil {
		err = v.ParseMultipartForm(maxBytes)
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return fmt.Errorf("%w: the form has more than %d MiB", explain.ErrBadInput, large.Limit>>20)
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return fmt.Errorf("%w: %w", explain.ErrBadInput, err)
	}
	preset := v.Namespace
	if name := v.URL.Query().Get("cluster"); name != "" && v.user == "" && len(v.Clusters) > 0 {
		if v.connected() == "" {
			return fmt.Errorf("%w: there is no cluster %q in your kubeconfig: choose one of the list", explain.ErrBadInput, manifest.Printable(name))
		}
		if v.config, preset, err = v.Connect(name); err != nil {
			return fmt.Errorf("%w: cluster %q: %w", explain.ErrBadInput, manifest.Printable(name), err)
		}
	}
	namespace := v.chosen()
	if namespace != "" {
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("%w: namespace %q: %s", explain.ErrBadInput, manifest.Printable(namespace), strings.Join(problems, "; "))
		}
	}
	v.config = once.Sharing(v.config)
	v.cluster, err = cluster.New(v.config, cmp.Or(namespace, preset, "default"))
	return err
}

// shownNamespace is the namespace in the picker: empty for all, where a page can show all.
func shownNamespace(v *visit) string {
	if v.cluster == nil || v.chosen() == "" && slices.Contains([]string{"", "poddefaults", "who", "webhooks", "latency", "upgrade", "rollouts", "drift", "exemptions", "search"}, v.page.path) {
		return ""
	}
	return v.cluster.Namespace
}

// searchedText is the text in the field for a search.
func searchedText(v *visit) string {
	if v.page.path == "search" {
		return v.URL.Query().Get("text")
	}
	return ""
}

// rights says whose rights the page was read with.
func (v *visit) rights() string {
	if v.user == "" {
		return "your own rights"
	}
	return "the rights of " + manifest.Printable(v.user)
}

// content reads the page. An error becomes its content.
func (v *visit) content(ctx context.Context) (content templ.Component, status int) {
	err := v.open()
	if err == nil {
		content, err = v.page.show(ctx, v)
	}
	if err == nil {
		return content, http.StatusOK
	}
	explained := explain.Error(err)
	v.problem, v.data = &explained, nil
	if explained.Status == http.StatusInternalServerError {
		slog.ErrorContext(ctx, "a page of the console failed", slog.String("page", v.page.title), slog.Any("error", err))
	}
	return problemContent(explained), explained.Status
}

// pageHandler answers requests for a page, and for the changes of an open one, within limits.
func (o *Options) pageHandler(p page, identify access.Identifier, renderings, streams *access.Seats) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, config, err := identify(r, o.Config)
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		v := visit{Request: r, Options: o, page: p, user: user, config: config}
		if p.live && r.Header.Get("Accept") == "text/event-stream" {
			v.stream(w, renderings, streams)
			return
		}
		answer := early.Answer{MediaType: "text/html", Blank: o.blank, Render: func() ([]byte, int, error) { return v.render(renderings, asPage) }}
		switch {
		case access.ForPeople(r):
			frame := v
			frame.Request = r.Clone(r.Context()) // each parses its own
			answer.Frame = frame.frame
		case access.ForPrograms(r):
			answer.MediaType, answer.Render = "application/json", func() ([]byte, int, error) { return v.render(renderings, asJSON) }
		}
		answer.Write(w)
	})
}

// frame is the page without content, or with an error instead of it; nil if the request is invalid.
func (v *visit) frame(instead error) []byte {
	if v.open() != nil {
		return nil
	}
	var content templ.Component = templ.NopComponent
	if instead != nil {
		v.problem = &explain.Problem{Title: "This page cannot be shown", Text: instead.Error(), Help: "Load the page again in a few seconds."}
		content = problemContent(*v.problem)
	}
	var out bytes.Buffer
	if layout(v, content, time.Now().UTC()).Render(context.WithoutCancel(v.Context()), &out) != nil {
		return nil
	}
	return out.Bytes()
}

// asPage is the frame of a page, with the namespaces to choose from. Neither JSON nor an open page needs them again.
func asPage(v *visit, content templ.Component) templ.Component {
	if v.problem == nil {
		v.names = v.listNamespaces(v.Context())
	}
	return layout(v, content, time.Now().UTC())
}

// render reads the page for a new visit and renders it in a frame, when the limits allow it.
func (v visit) render(renderings *access.Seats, frame func(*visit, templ.Component) templ.Component) (shown []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(v.Context(), maxTime)
	defer cancel()
	leave, err := renderings.Take(ctx, v.user)
	switch {
	case errors.Is(err, access.ErrUser) && ctx.Err() == nil:
		return nil, http.StatusTooManyRequests, fmt.Errorf("%d pages of yours are waiting already: wait until they are shown", maxWaiting)
	case errors.Is(err, access.ErrUser):
		return nil, http.StatusServiceUnavailable, errors.New("other pages of yours are still being rendered: try again when they are shown")
	case err != nil:
		return nil, http.StatusServiceUnavailable, errors.New("too many pages are being rendered: try again")
	}
	defer leave()
	v.Request = v.WithContext(ctx)
	content, status := v.content(ctx)
	out := &answer{}
	err = frame(&v, content).Render(ctx, out)
	if out.tooLarge {
		explained := explain.Error(explain.ErrTooLarge)
		v.problem, v.data = &explained, nil
		out, status = &answer{}, explained.Status
		err = frame(&v, problemContent(explained)).Render(ctx, out)
	}
	if err != nil && ctx.Err() != nil {
		return nil, http.StatusServiceUnavailable, fmt.Errorf("the page takes longer than %s: show less of the cluster", maxTime)
	}
	if err != nil {
		slog.ErrorContext(ctx, "a page of the console cannot be rendered", slog.String("page", v.page.title), slog.Any("error", err))
		return nil, http.StatusInternalServerError, errors.New("the page cannot be rendered: see the log of the console")
	}
	return out.bytes.Bytes(), status, nil
}

// menuLink returns the relative URL of a page in the menu.
func (v *visit) menuLink(p page) string {
	return v.link(p.path)
}
