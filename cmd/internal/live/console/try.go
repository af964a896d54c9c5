// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/sidebyside"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// maxChanges limits the changed pods of a preview that a page shows.
const maxChanges = 50

var errManyPods = fmt.Errorf("the objects make more than %d pods, and only as many are shown: try fewer objects at a time", maxObjects)

// A tried is the outcome of the page Try it.
type tried struct {
	text string // what is in the form, empty if it is too long to be repeated
	long int    // bytes of the text that is not repeated
	// problems of the text.
	problems []string
	// pods are those of the workloads in the text.
	pods []*admitted
	// effect and changes are what PodDefaults in the text would change; effect is nil if there are
	// none.
	effect  *injection.Effect
	changes []changed
	listed  int // changes before equal ones are put together
	// command applies the text.
	command string
}

// A changed is a pod that a PodDefault would change.
type changed struct {
	*injection.Change
	rows []sidebyside.Row
	more int
	// equals are further workloads with the same change, by title.
	equals []string
}

// showTry shows the form and, after a POST, what the text in it would do.
func showTry(ctx context.Context, v *visit) (templ.Component, error) {
	t := &tried{}
	var err error
	if v.Method == http.MethodPost {
		var text string
		if text, err = v.text(); err == nil {
			err = v.try(ctx, t, text)
		}
	} else {
		t.text, err = v.given(ctx)
	}
	if errors.Is(err, injection.ErrNoPodDefaults) {
		return nothing(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	t.listed = len(t.changes)
	t.changes, t.pods = groupChanges(t.changes), groupPods(t.pods)
	v.data = t.document()
	return tryPage(v, t), nil
}

// document is the outcome for those who ask for JSON.
func (t *tried) document() any {
	type effect struct {
		Workload string   `json:"workload"`
		Effect   string   `json:"effect"`
		Equals   []string `json:"equals,omitempty"`
	}
	out := struct {
		Problems []string          `json:"problems,omitempty"`
		Pods     []*admitted       `json:"pods,omitempty"`
		Summary  *injection.Effect `json:"summary,omitempty"`
		Changes  []effect          `json:"changes,omitempty"`
	}{Problems: t.problems, Pods: t.pods, Summary: t.effect}
	for _, c := range t.changes {
		out.Changes = append(out.Changes, effect{c.Workload.Title(), c.Verdict(), c.equals})
	}
	return out
}

// unknown reports whether the API server's answer about a pod is not known.
func (t *tried) unknown() bool {
	return t.effect != nil && t.effect.Unknown > 0 || slices.ContainsFunc(t.pods, func(p *admitted) bool { return p.Unknown != "" })
}

// text returns the uploaded file or, if there is none, the text of the form.
func (v *visit) text() (string, error) {
	file, _, err := v.FormFile("file")
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return v.FormValue("manifest"), nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", explain.ErrBadInput, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(file)
	if len(data) == 0 && err == nil {
		return v.FormValue("manifest"), nil
	}
	return string(data), err
}

// given returns the PodDefault or ClusterPodDefault that the parameters name, to edit it.
func (v *visit) given(ctx context.Context) (string, error) {
	name, err := v.value("name")
	if name == "" || err != nil {
		return "", err
	}
	for _, kind := range injection.Kinds() {
		if !slices.Contains(kind.Words, strings.ToLower(v.FormValue("type"))) {
			continue
		}
		object, err := v.cluster.Get(ctx, kind.Path(v.cluster.Namespace)+"/"+name)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", kind.Words[0], name, err)
		}
		raw, err := injection.Authored(object)
		if err != nil {
			return "", err
		}
		text, err := manifest.YAML(raw)
		return string(text), err
	}
	return "", fmt.Errorf("%w: the type is %q: choose poddefault or clusterpoddefault", explain.ErrBadInput, manifest.Printable(v.FormValue("type")))
}

// try evaluates the text. Problems of the text are not an error.
func (v *visit) try(ctx context.Context, t *tried, text string) error {
	if t.text = text; len(text) > maxRepeated {
		t.text, t.long = "", len(text)
	}
	simulator := newSimulator(v, fieldcheck.Strict)
	server, err := dryrun.New(v.config, nil)
	if err != nil {
		return err
	}
	simulator.Server = &dryrun.Pods{Server: server, Limit: maxAsked, Until: time.Now().Add(maxAsking)}
	objects, err := injection.Parse(ctx, "manifest", []byte(text), maxObjects, simulator.Checker, "try")
	for _, problem := range manifest.SplitErrors(err) {
		t.problems = append(t.problems, problem.Error())
	}
	if err != nil {
		return nil //nolint:nilerr // it is on the page
	}
	var defaults, workloads []*manifest.Object
	for _, o := range objects {
		if strings.HasSuffix(o.Kind, "PodDefault") {
			defaults = append(defaults, o)
		} else {
			workloads = append(workloads, o)
		}
	}
	if t.long == 0 {
		t.command = v.apply(text)
	}
	if len(defaults) > 0 {
		preview := injection.Preview{Simulator: simulator, Show: func(c *injection.Change) error {
			if len(t.changes) >= maxChanges {
				return nil
			}
			shown := changed{Change: c}
			if c.Changes() {
				lines, err := c.Lines(v.showsValues())
				if err != nil {
					return err
				}
				if shown.rows, shown.more, err = v.sideBySide(lines); err != nil {
					return err
				}
			}
			t.changes = append(t.changes, shown)
			return nil
		}}
		if t.effect, err = preview.Files(ctx, defaults); err != nil {
			return err
		}
	}
	_, err = simulator.Explain(ctx, workloads, v.Dataset, func(e *injection.Explanation) error {
		if len(t.pods) == maxObjects {
			return errManyPods
		}
		pod, err := v.admitted(e)
		t.pods = append(t.pods, pod)
		return err
	})
	if errors.Is(err, errManyPods) {
		t.problems = append(t.problems, err.Error())
		return nil
	}
	var problem *manifest.Error
	if errors.As(err, &problem) { // an object that makes no pods
		t.problems = append(t.problems, problem.Error())
		return nil
	}
	return err
}

// apply returns a command that applies a text.
func (v *visit) apply(text string) string {
	end := "END"
	for slices.Contains(strings.Split(text, "\n"), end) {
		end += "_"
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "kubectl apply --namespace %s -f - <<'%s'\n%s\n%s\n", v.cluster.Namespace, end, strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), end)
	return out.String()
}
