// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/draw"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
	"github.com/sallyport-io/sallyport/cmd/internal/live/rollouts"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// showRollouts lists changes of PodDefaults, the latest first, or shows the revisions and the rollout of one.
func showRollouts(ctx context.Context, v *visit) (templ.Component, error) {
	name, err := v.value("name")
	if err != nil {
		return nil, err
	}
	if name != "" {
		return showRollout(ctx, v, name)
	}
	changes, err := inAll(v, "list revisions of all namespaces; those of "+v.cluster.Namespace+" are shown", func(namespace string) ([]rollouts.Change, error) {
		return rollouts.Recent(ctx, v.cluster, namespace)
	})
	if err = v.hide("list revisions of the namespace "+v.cluster.Namespace, err); err != nil {
		return nil, err
	}
	v.data = changes
	var rows [][]cell
	for _, c := range changes {
		kind, title := "clusterpoddefault", "ClusterPodDefault "+c.Name
		pairs := []string{"type", kind, "name", c.Name}
		if c.Namespace != "" {
			title, pairs = "PodDefault "+c.Namespace+"/"+c.Name, []string{"type", "poddefault", "name", c.Name, "namespace", c.Namespace}
		}
		var state cell
		if c.RollsOut {
			state = append(state, badge("note", "being replaced"))
		} else if c.Stable {
			state = append(state, badge("ok", "stable"))
		}
		if thisWeek(c.Created) {
			state = append(state, badge("quiet", "last 7 days"))
		}
		rows = append(rows, []cell{{{text: title, href: v.link("rollouts", pairs...)}}, number(int(c.Number)), text(c.Created.Format(timeFormat)), text(c.Revision), state})
	}
	return blocks(v, []block{{
		heading: "Changes", text: "Revisions of PodDefaults, the latest first. Open one to see what it changed, which pods carry it, and how to go back.",
		columns: []string{"Object", "Revision", "Written", "Name", "State"}, rows: rows,
		empty: "There are no revisions here. The server writes one for each change of a PodDefault, with its controller poddefault-status.",
	}}), nil
}

func showRollout(ctx context.Context, v *visit, name string) (templ.Component, error) {
	kind := strings.ToLower(v.FormValue("type"))
	if !slices.Contains([]string{"", "poddefault", "clusterpoddefault"}, kind) {
		return nil, fmt.Errorf("%w: the type is %q: choose poddefault or clusterpoddefault", explain.ErrBadInput, manifest.Printable(kind))
	}
	s, err := rollouts.Read(ctx, v.cluster, name, kind == "clusterpoddefault", &v.notes)
	if err != nil {
		return nil, err
	}
	if v.heading, v.data = s.Title(), s; s.PodsHidden {
		v.hidden = append(v.hidden, "list pods: which ones carry it")
	}
	var list []block
	if len(s.Steps) > 0 {
		list = append(list, stepsOf(s))
	}
	list = append(list, carriersOf(v, s), revisionsOf(s))
	if commands := commandsOf(s); len(commands) > 0 {
		list = append(list, block{heading: "What you can do", text: "These commands change the cluster, with your own rights.", columns: []string{"To", "Command"}, rows: commands})
	}
	return blocks(v, list), nil
}

// stepsOf is the rollout with its steps.
func stepsOf(s *rollouts.State) block {
	b := block{heading: "Rollout", columns: []string{"Step", "Share of workloads", "Selects, and lasts", "State"}}
	var steps []draw.Step
	for i, step := range s.Steps {
		class, state := "later", badge("quiet", "to come")
		switch {
		case !s.InProgress(), i+1 < int(s.Step):
			class, state = "done", badge("ok", "done")
		case s.Aborted:
			class, state = "fix", badge("fix", "aborted")
		case i+1 == int(s.Step):
			class, state = "now", badge("note", "now")
		}
		steps = append(steps, draw.Step{Text: "Step " + strconv.Itoa(i+1), Percent: int(step.Percent), Class: class})
		b.rows = append(b.rows, []cell{text(strconv.Itoa(i + 1)), text(strconv.Itoa(int(step.Percent)) + " %"), text(step.Text), {state}})
	}
	switch {
	case s.Failing != "":
		b.text = "Pods with the new revision fail: " + s.Failing
	case s.Aborted:
		b.text = "The rollout is aborted: new pods get the stable revision " + s.Stable + "."
	case !s.InProgress():
		b.text = "No rollout is in progress: new pods get the revision " + s.Current + "."
	case s.Paused:
		b.text = fmt.Sprintf("Paused at step %d of %d: %s replaces %s.", s.Step, len(s.Steps), s.Current, s.Stable)
	default:
		b.text = fmt.Sprintf("At step %d of %d: %s replaces %s.", s.Step, len(s.Steps), s.Current, s.Stable)
	}
	b.picture = draw.Steps("Steps of the rollout: "+b.text, steps)
	return b
}

// colorsOf are the classes of the revisions that pods carry.
func colorsOf(s *rollouts.State) map[string]string {
	out := map[string]string{"": "quiet"}
	for i, r := range s.Revisions {
		out[r.Name] = draw.OriginClass(i)
	}
	return out
}

// carriersOf are the pods by revision: how many, and when they were created.
func carriersOf(v *visit, s *rollouts.State) block {
	b := block{
		heading: "Pods by revision", columns: []string{"Pod", "Revision", "Created"},
		empty: "No running pod that you may read carries it.",
	}
	colors := colorsOf(s)
	var parts []draw.Part
	var spans []draw.Span
	var names, classes []string
	for _, r := range s.Revisions {
		parts = append(parts, draw.Part{Text: "revision " + r.Title(), Count: r.Pods, Class: colors[r.Name]})
		if r.Pods > 0 {
			names, classes = append(names, r.Title()), append(classes, colors[r.Name])
		}
	}
	other := 0
	for _, p := range s.Pods {
		class, known := colors[p.Revision]
		if !known || p.Revision == "" {
			other++
		}
		spans = append(spans, draw.Span{At: p.Created, Class: class})
		b.rows = append(b.rows, []cell{
			{{text: p.Namespace + "/" + p.Name, href: v.link("pod", "namespace", p.Namespace, "type", "pod", "name", p.Name)}}, text(p.Revision), text(p.Created.Format(timeFormat)),
		})
	}
	if len(s.Pods) > 0 {
		parts = append(parts, draw.Part{Text: "a revision that is gone or not recorded", Count: other, Class: "quiet"})
		b.picture = draw.Parts("Pods by revision", parts) + draw.Timeline("When pods were created, by revision", names, classes, spans)
	}
	return b
}

// revisionsOf says what each revision changed.
func revisionsOf(s *rollouts.State) block {
	b := block{
		heading: "Revisions", text: "What each changed in the one before. Values are not shown.", columns: []string{"Revision", "Written", "State", "Pods", "Changed"},
		empty: "There are no revisions of it. The server's controller poddefault-status writes them.",
	}
	for _, r := range s.Revisions {
		var state cell
		switch {
		case r.Name == s.Current && s.InProgress():
			state = cell{badge("note", "being rolled out")}
		case r.Name == s.Current:
			state = cell{badge("ok", "current")}
		case r.Name == s.Stable:
			state = cell{badge("ok", "stable")}
		}
		var changes cell
		for _, c := range r.Changes {
			changes = append(changes, piece{class: "code", text: c})
		}
		b.rows = append(b.rows, []cell{text(r.Title()), text(r.Created.Format(timeFormat)), state, number(r.Pods), changes})
	}
	return b
}

// commandsOf are the commands for a rollout and for going back.
func commandsOf(s *rollouts.State) [][]cell {
	object := strings.ToLower(s.Kind) + "/" + s.Name
	if s.Namespace != "" {
		object += " --namespace " + s.Namespace
	}
	var out [][]cell
	add := func(what, command string) {
		out = append(out, []cell{text(what), {{text: "kubectl sallyport rollout " + command + " " + object, copied: true}}})
	}
	if s.InProgress() && !s.Aborted {
		add("promote the rollout to its next step", "promote")
		add("complete the rollout", "promote --full")
		add("abort the rollout", "abort")
	}
	if len(s.Revisions) > 1 {
		add("see the difference with values", "diff --revision "+strconv.FormatInt(s.Revisions[1].Number, 10))
		add("go back to the revision before", "undo --to-revision "+strconv.FormatInt(s.Revisions[1].Number, 10))
	}
	return out
}

const week = 7 * 24 * time.Hour

// thisWeek reports whether something happened in the last seven days.
func thisWeek(at time.Time) bool { return time.Since(at) < week }

// endsSoon reports whether something ends within seven days.
func endsSoon(at time.Time) bool { return time.Until(at) < week }
