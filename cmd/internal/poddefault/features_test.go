// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// observed returns what the webhook tells its observer about a pod, one line a finding.
func observed(t *testing.T, raw, objects string, dryRun bool) []string {
	t.Helper()
	var out []string
	decisions := 0
	webhook, err := New(parseIndex(t, []byte(objects), false), DefaultSettings(), WithFindings(func(namespace string, of meta.Workload, findings []merge.Finding) {
		for i := range findings {
			f := &findings[i]
			out = append(out, fmt.Sprintf("%s %s %s %s: %s %s: %s", namespace, of.APIVersion, of.Kind, of.Name, f.Verdict, f.DependsOn(), f.Text))
		}
	}), WithDecisions(func(namespace string, resp *admission.Response) {
		if decisions++; namespace != "team-a" || resp == nil {
			t.Errorf("a decision in %q: %+v", namespace, resp)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	req := createRequest([]byte(raw))
	req.DryRun = &dryRun
	if _, err := webhook.Handler.Handle(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if (decisions == 1) == dryRun || decisions > 1 {
		t.Errorf("%d decisions are observed, of a dry run: %t", decisions, dryRun)
	}
	return out
}

func TestFindingsAreObserved(t *testing.T) {
	const one = "metadata: {name: one, generation: 3}\nspec: {selector: {}, env: [{name: A, value: hidden-1}]}\n"
	const two = "---\nmetadata: {name: two, generation: 4}\nspec: {selector: {}, env: [{name: A, value: hidden-2}]}\n"
	const everywhere = "---\nkind: ClusterPodDefault\nmetadata: {name: everywhere, generation: 5}\nspec: {selector: {}, env: [{name: A, value: hidden-3}]}\n"
	audited := strings.Replace(two, "spec: {", "spec: {mode: Audit, ", 1)
	pod := `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"main"}]}}`
	deployed := `{"metadata":{"generateName":"web-5d8f-","labels":{"pod-template-hash":"5d8f"},` +
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d8f","uid":"1","controller":true}]},"spec":{"containers":[{"name":"main"}]}}`
	scheduled := `{"metadata":{"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"report-29384756","uid":"1","controller":true}]},"spec":{"containers":[{"name":"main"}]}}`
	withA := `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"main","env":[{"name":"A","value":"hidden-4"}]}]}}`
	for what, c := range map[string]struct {
		pod, objects string
		want         []string
	}{
		"a pod that gets an object":          {pod, one, nil},
		"a pod that no object selects":       {pod, strings.Replace(one, "selector: {}", "selector: {matchLabels: {a: b}}", 1), nil},
		"a refused pod, of two objects":      {pod, one + two, []string{"team-a v1 Pod p: Refused two@4,one@3: PodDefaults one and two both set env A of container main: they differ in value"}},
		"a refused pod of a Deployment":      {deployed, one + two, []string{"team-a apps/v1 Deployment web: Refused two@4,one@3: PodDefaults one and two both set env A of container main: they differ in value"}},
		"a refused pod, of a cluster object": {pod, everywhere + "---\n" + one, []string{"team-a v1 Pod p: Refused one@3,cluster/everywhere@5: ClusterPodDefault everywhere and PodDefault team-a/one both set env A of container main: they differ in value"}},
		"a refused pod with another value":   {withA, one, []string{"team-a v1 Pod p: Refused one@3: PodDefault team-a/one: env A of container main: the pod has a literal value, wanted is another (values hidden)"}},
		"an object in mode Audit that would be applied": {scheduled, audited, []string{
			"team-a batch/v1 CronJob report: WouldApply two@4: it is in mode Audit and was not applied: it would have been applied"}},
		"an object in mode Audit that would conflict": {pod, one + audited, []string{
			"team-a v1 Pod p: WouldNot two@4,one@3: it is in mode Audit and was not applied: there would have been a conflict: PodDefaults one and two both set env A of container main: they differ in value"}},
		"an object in mode Audit without its volume": {pod, "metadata: {name: one, generation: 3}\nspec: {mode: Audit, selector: {}, volumeMounts: [{name: gone, mountPath: /a}]}\n", []string{
			"team-a v1 Pod p: WouldNot one@3: it is in mode Audit and was not applied: it would have been left out: a volume that it mounts exists neither there nor in the pod"}},
	} {
		got := observed(t, c.pod, c.objects, false)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
		if strings.Contains(strings.Join(got, ""), "hidden-") {
			t.Errorf("%s: a finding has a value: %q", what, got)
		}
		if got := observed(t, c.pod, c.objects, true); got != nil {
			t.Errorf("%s, in a dry run: %q", what, got)
		}
	}
}

func TestFindingsOfOnePodAreBounded(t *testing.T) {
	pod := `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"main"}]}}`
	var many strings.Builder
	for i := range 3 * meta.MaxTold {
		fmt.Fprintf(&many, "---\nmetadata: {name: pd-%03d, generation: 1}\nspec: {selector: {}, env: [{name: A, value: hidden-%d}]}\n", i, i)
	}
	if got := observed(t, pod, many.String(), false); len(got) != meta.MaxTold {
		t.Errorf("conflicts: %d findings, want %d", len(got), meta.MaxTold)
	}
	many.Reset()
	for i := range meta.MaxObjects + 1 {
		fmt.Fprintf(&many, "---\nmetadata: {name: pd-%03d, generation: 1}\nspec: {selector: {}}\n", i)
	}
	got := observed(t, pod, many.String(), false)
	if len(got) != meta.MaxTold || !strings.Contains(got[0], "at most 500 may") {
		t.Errorf("too many objects: %d findings, the first is %q", len(got), got[:min(1, len(got))])
	}
}
