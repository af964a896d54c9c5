// SPDX-License-Identifier: Apache-2.0

package exempt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

func TestParseExemptions(t *testing.T) {
	got, err := ParseExemptions("\n  2026-12-31T00:00:00Z a,cluster/b.c  *   breaks  rsync\n2026-12-24T12:00:00+01:00 a Deployment/web x\r\n2026-12-24T12:00:00Z a CronJob/backup ü\n")
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	text := fmt.Sprint(got)
	for _, want := range []string{"[a cluster/b.c] * breaks rsync *", "12:00:00 +0100", "[a] Deployment/web x ReplicaSet/web", "[a] CronJob/backup ü Job/backup"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s does not have %q", text, want)
		}
	}
	if got, err := ParseExemptions(" \n"); len(got) > 0 || err != nil {
		t.Errorf("a blank value: %v, %v", got, err)
	}
	const until = "2026-12-31T00:00:00Z "
	for value, says := range map[string]string{
		"secret-value":                                "line 1: it needs UNTIL OBJECTS WORKLOAD REASON",
		until + "a *":                                 "it needs UNTIL OBJECTS WORKLOAD REASON",
		"\n2026-12-31 a * x":                          "line 2: UNTIL must be a time as in RFC 3339",
		"2026-12-31T00:00:00 a * x":                   "UNTIL must be",
		"tomorrow a * x\n" + until + "A * x":          "line 2: OBJECTS must be names",
		until + "a, * x":                              "OBJECTS must be names",
		until + "other/a * x":                         "OBJECTS must be names",
		until + "cluster/ * x":                        "OBJECTS must be names",
		until + "* * x":                               "OBJECTS must be names",
		until + "a,a * x":                             "OBJECTS has a twice",
		until + "a web x":                             "WORKLOAD must be * or KIND/NAME",
		until + "a deployment/web x":                  "WORKLOAD must be",
		until + "a Deployment/ x":                     "WORKLOAD must be",
		until + "a Deployment/web/x x":                "WORKLOAD must be",
		until + "a * " + strings.Repeat("x", 257):     "REASON must be printable text of at most 256 bytes",
		until + "a * x\x00":                           "REASON must be printable",
		until + "a * \xff":                            "REASON must be printable",
		strings.Repeat(until+"a * x\n", 65):           "line 65: there are more than 64 PodDefaults",
		until + strings.Repeat("a,", 1000) + "b * x":  "there are more than 64 PodDefaults",
		strings.Repeat("secret-value secret\n", 1000): "line 65: there are more than 64",
	} {
		got, err := ParseExemptions(value)
		if err == nil || !strings.Contains(err.Error(), says) || len(got) > 0 {
			t.Errorf("%.60q: %v, %v; want %q", value, got, err, says)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%.60q: the error has the value: %v", value, err)
		}
	}
}

// FuzzParseExemptions checks the limits, and that an exemption covers itself.
func FuzzParseExemptions(f *testing.F) {
	f.Add("2026-12-31T00:00:00Z a,cluster/b * breaks rsync\n\n2026-12-31T00:00:00+01:00 a Deployment/web x")
	f.Add("2026-12-31T00:00:00Z a Job/backup-29384756 x")
	f.Fuzz(func(t *testing.T, value string) {
		list, err := ParseExemptions(value)
		if err != nil && len(list) > 0 {
			t.Fatalf("an error and exemptions: %v, %v", list, err)
		}
		objects := 0
		for i := range list {
			e := &list[i]
			objects += len(e.Objects)
			if e.Until.IsZero() && e.Until.Location() == nil || e.Reason == "" || len(e.Reason) > maxReasonBytes || !strings.Contains(e.unit, "/") && e.unit != allWorkloads {
				t.Fatalf("%+v", e)
			}
			for _, name := range e.Objects {
				if !e.Covers(e, name) {
					t.Fatalf("%+v does not cover itself", e)
				}
			}
		}
		if objects > maxExemptions {
			t.Fatalf("%d objects", objects)
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
