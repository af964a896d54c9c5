// SPDX-License-Identifier: Apache-2.0

package exempt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

// written returns an Exemption as users write it.
func written(until string, objects, workloads []string, reason string) *sallyportv1alpha1.Exemption {
	e := &sallyportv1alpha1.Exemption{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "e"}}
	e.Spec = sallyportv1alpha1.ExemptionSpec{PodDefaults: objects, Workloads: workloads, Reason: reason}
	if until != "" {
		at, err := time.Parse(time.RFC3339, until)
		if err != nil {
			panic(err)
		}
		e.Spec.Until = metav1.Time{Time: at}
	}
	return e
}

func TestWhatExemptionsMayHave(t *testing.T) {
	const until = "2026-12-31T00:00:00Z"
	one, all := []string{"a"}, []string{"*"}
	e, err := New(written(until, []string{"a", "cluster/b.c"}, []string{"Deployment/web", "CronJob/backup", "PyTorchJob/gpt"}, "breaks rsync ü"))
	if err != nil || !slices.Equal(e.units, []string{"ReplicaSet/web", "Job/backup", "PyTorchJob/gpt"}) {
		t.Fatalf("%+v, %v", e, err)
	}
	var seventeen []string
	for i := range 17 {
		seventeen = append(seventeen, fmt.Sprint("a", i))
	}
	for says, from := range map[string]*sallyportv1alpha1.Exemption{
		"spec.until is missing":                                     written("", one, all, "x"),
		"spec.podDefaults must have 1 to 16 names":                  written(until, nil, all, "x"),
		"spec.podDefaults must have 1 to":                           written(until, seventeen, all, "x"),
		"spec.podDefaults[1] must be the name of a PodDefault":      written(until, []string{"a", "secret/a"}, all, "x"),
		"spec.podDefaults[0] must be the name":                      written(until, []string{"cluster/"}, all, "x"),
		"spec.podDefaults[0] must be the name of a PodDefault, or ": written(until, []string{"*"}, all, "x"),
		"spec.podDefaults[1] is there twice":                        written(until, []string{"a", "a"}, all, "x"),
		"spec.workloads must have 1 to 16":                          written(until, one, nil, "x"),
		"spec.workloads[0] must be * or KIND/NAME":                  written(until, one, []string{"secret"}, "x"),
		"spec.workloads[1] must be * or":                            written(until, one, []string{"Deployment/web", "deployment/secret"}, "x"),
		"spec.workloads[0] must be * or KIND/NAME, such":            written(until, one, []string{"Deployment/web/secret"}, "x"),
		"* is every workload and must be alone":                     written(until, one, []string{"*", "Deployment/web"}, "x"),
		"spec.reason must be printable text of at most 256":         written(until, one, all, strings.Repeat("x", 257)),
		"spec.reason must be printable":                             written(until, one, all, "secret\n"),
		"spec.reason must be printable text":                        written(until, one, all, " "),
		"spec.reason must be printable text of":                     written(until, one, all, "\xff"),
	} {
		e, err := New(from)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %q", err, says)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the value: %v", err)
		}
		for _, unit := range []string{"ReplicaSet/web", "Pod/x"} {
			if by := From("a", []*Exemption{e}, time.Time{}, unit); by != nil {
				t.Errorf("%s: an exemption with a problem exempts", says)
			}
		}
	}
}

func TestWider(t *testing.T) {
	const at13, at14 = "2026-06-01T13:00:00Z", "2026-06-01T14:00:00Z"
	spec := func(until, objects, workloads, reason string) *Exemption {
		e, err := New(written(until, strings.Split(objects, ","), strings.Split(workloads, ","), reason))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for name, tc := range map[string]struct {
		now, before *Exemption
		want        string
	}{
		"a new one":                    {spec(at13, "a,b", "*", "x"), nil, "a,b"},
		"one that stays":               {spec(at13, "a,b", "*", "x"), spec(at13, "b,a", "*", "x"), ""},
		"an earlier end":               {spec(at13, "a", "*", "x"), spec(at14, "a", "*", "x"), ""},
		"a later end":                  {spec(at14, "a,b", "*", "x"), spec(at13, "a,b", "*", "x"), "a,b"},
		"one workload instead of all":  {spec(at13, "a", "Deployment/w", "x"), spec(at13, "a", "*", "x"), ""},
		"all instead of one":           {spec(at13, "a", "*", "x"), spec(at13, "a", "Deployment/w", "x"), "a"},
		"one workload less":            {spec(at13, "a", "Job/w", "x"), spec(at13, "a", "Deployment/w,Job/w", "x"), ""},
		"one workload more":            {spec(at13, "a", "Deployment/w,Job/w", "x"), spec(at13, "a", "Job/w", "x"), "a"},
		"another object":               {spec(at13, "a,c", "*", "x"), spec(at13, "a,b", "*", "x"), "c"},
		"another reason":               {spec(at13, "a", "*", "y"), spec(at13, "a", "*", "x"), "a"},
		"another object, but earlier":  {spec(at13, "c", "*", "x"), spec(at14, "a", "*", "x"), "c"},
		"a cluster's of the same name": {spec(at13, "cluster/a", "*", "x"), spec(at13, "a", "*", "x"), "cluster/a"},
	} {
		if got := strings.Join(tc.now.Wider(tc.before), ","); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// FuzzNew checks that nothing with a problem exempts, and that an exemption is no wider than
// itself.
func FuzzNew(f *testing.F) {
	f.Add("a,cluster/b", "Deployment/web,Job/x", "breaks rsync")
	f.Add("a", "Job/backup-29384756", "x")
	f.Fuzz(func(t *testing.T, objects, workloads, reason string) {
		e, err := New(written("2026-12-31T00:00:00Z", strings.Split(objects, ","), strings.Split(workloads, ","), reason))
		if err != nil && len(e.units) > 0 {
			t.Fatalf("a problem and workloads: %+v, %v", e, err)
		}
		if err == nil && (len(e.Wider(e)) > 0 || len(e.units) != len(e.Workloads)) {
			t.Fatalf("%+v", e)
		}
	})
}

func TestNamesOfWorkloads(t *testing.T) {
	owned := func(kind, name, hash string) *metav1.ObjectMeta {
		md := &metav1.ObjectMeta{Name: "p", OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "o"}, {Kind: kind, Name: name, Controller: new(true)}}}
		if hash != "" {
			md.Labels = map[string]string{"pod-template-hash": hash}
		}
		return md
	}
	for want, pods := range map[string][]*metav1.ObjectMeta{
		"ReplicaSet/web":  {owned("ReplicaSet", "web-5d4f", "5d4f"), owned("ReplicaSet", "web", "")},
		"Job/backup":      {owned("Job", "backup-29384756", "")},
		"Job/train-7":     {owned("Job", "train-7", "")},
		"StatefulSet/nb":  {owned("StatefulSet", "nb", "")},
		"PyTorchJob/gpt":  {owned("PyTorchJob", "gpt", "")},
		"Pod/alone":       {{Name: "alone"}, {Name: "alone", OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "x"}}}},
		"Pod/generated-":  {{GenerateName: "generated-"}},
		"ReplicaSet/we-b": {owned("ReplicaSet", "we-b-x", "x")},
	} {
		for _, pod := range pods {
			if got := meta.WorkloadOf(pod); got != want {
				t.Errorf("%+v: %s, want %s", pod, got, want)
			}
			raw, err := json.Marshal(&corev1.Pod{ObjectMeta: *pod})
			if err != nil {
				t.Fatal(err)
			}
			md, ok := meta.ReadMetadata(raw)
			b := meta.NewBudget(t.Context())
			if got := meta.OfPod(&md, &b).Unit; !ok || got != want {
				t.Errorf("%s: %s, want %s", raw, got, want)
			}
		}
	}
}
