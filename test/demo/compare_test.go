// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const sentPod = `
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {ask: "true"}}
spec:
  containers:
  - {name: main, image: m, env: [{name: A, value: a}]}
  - {name: helper, image: h}
`

const alonePod = `
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {ask: "true"}, annotations: {poddefault.admission.kubeflow.org/exclude: "true"}, uid: u-1}
spec:
  containers:
  - name: main
    image: m
    imagePullPolicy: Always
    env: [{name: A, value: a}]
    volumeMounts: [{name: kube-api-access-abcde, mountPath: /token}]
  - name: helper
    image: h
    imagePullPolicy: Always
    volumeMounts: [{name: kube-api-access-abcde, mountPath: /token}]
  dnsPolicy: ClusterFirst
  volumes: [{name: kube-api-access-abcde, projected: {}}]
status: {phase: Pending}
`

const storedPod = `
apiVersion: v1
kind: Pod
metadata:
  name: p
  uid: u-2
  labels: {ask: "true"}
  annotations: {poddefault.admission.kubeflow.org/poddefault-creds: "7"}
spec:
  containers:
  - name: main
    image: m
    imagePullPolicy: Always
    env: [{name: A, value: a}, {name: KEY, value: /creds}]
    volumeMounts: [{name: kube-api-access-fghij, mountPath: /token}, {name: creds, mountPath: /creds}]
  - name: helper
    image: h
    imagePullPolicy: Always
    env: [{name: KEY, value: /creds}]
    volumeMounts: [{name: kube-api-access-fghij, mountPath: /token}, {name: creds, mountPath: /creds}]
  dnsPolicy: ClusterFirst
  volumes: [{name: kube-api-access-fghij, projected: {}}, {name: creds, secret: {secretName: s, defaultMode: 420}}]
status: {phase: Pending}
`

const credsPodDefault = `
metadata: {name: creds}
spec:
  env: [{name: KEY, value: /creds}]
  volumeMounts: [{name: creds, mountPath: /creds}]
  volumes: [{name: creds, secret: {secretName: s}}]
`

func TestPodIsShownAsADiffFromAsSentToAsStored(t *testing.T) {
	c := compare(decode(t, sentPod), decode(t, alonePod), decode(t, storedPod), []map[string]any{decode(t, credsPodDefault)})
	var out bytes.Buffer
	(&screen{out: &out}).pod(c.lines)

	want := strings.TrimPrefix(`
  ⋮
  metadata:
    name: p
+   annotations:
+     poddefault.admission.kubeflow.org/poddefault-creds: "7"  ← creds
    labels:
      ask: "true"
  spec:
    containers:
      - name: main
        env:
          - name: A
            value: a
+         - name: KEY  ← creds
+           value: /creds
        image: m
+       volumeMounts:
+         - name: creds  ← creds
+           mountPath: /creds
        ⋮ 3 lines that the API server fills in
      - name: helper
+       env:
+         - name: KEY  ← creds
+           value: /creds
        image: h
+       volumeMounts:
+         - name: creds  ← creds
+           mountPath: /creds
        ⋮ 3 lines that the API server fills in
+   volumes:
+     - name: creds  ← creds
+       secret:
+         defaultMode: 420
+         secretName: s
    ⋮ 3 lines that the API server fills in
`, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(c.unexplained) > 0 {
		t.Errorf("unexplained: %q", c.unexplained)
	}
}

func TestEveryAdditionNamesItsPodDefault(t *testing.T) {
	c := compare(decode(t, sentPod), decode(t, alonePod), decode(t, storedPod), []map[string]any{decode(t, credsPodDefault)})
	var got []string
	for _, a := range c.additions {
		got = append(got, a.where+": "+a.what+" from "+strings.Join(a.sources, ","))
	}
	slices.Sort(got)
	want := []string{
		"helper: env KEY from creds",
		"helper: mount /creds from creds",
		"main: env KEY from creds",
		"main: mount /creds from creds",
		"pod: mark from creds",
		"pod: volume creds from creds",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestChangesThatNoPodDefaultAskedForAreFound(t *testing.T) {
	for name, test := range map[string]struct {
		change func(stored map[string]any)
		want   string
	}{
		"an added field": {
			func(stored map[string]any) { object(stored["spec"])["hostNetwork"] = true },
			"pod: spec.hostNetwork was added",
		},
		"another value of the user's": {
			func(stored map[string]any) { firstContainer(stored)["image"] = "other" },
			"main: spec.containers.image was added",
		},
		"a removed field": {
			func(stored map[string]any) { delete(firstContainer(stored), "image") },
			"spec.containers.image was removed",
		},
		"a removed element": {
			func(stored map[string]any) { firstContainer(stored)["env"] = []any{} },
			"an element of spec.containers.env was removed",
		},
		"a volume that differs from that of the PodDefault": {
			func(stored map[string]any) {
				object(object(list(object(stored["spec"])["volumes"])[1])["secret"])["secretName"] = "another"
			},
			"pod: volume creds was added",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stored := decode(t, storedPod)
			test.change(stored)
			c := compare(decode(t, sentPod), decode(t, alonePod), stored, []map[string]any{decode(t, credsPodDefault)})
			if !slices.Contains(c.unexplained, test.want) {
				t.Errorf("got %q, want %q among them", c.unexplained, test.want)
			}
			if c.changedBy(webhook) == 0 {
				t.Error("no line is said to be the webhook's")
			}
		})
	}
}

func TestNothingIsTheWebhooksIfThePodIsAsTheAPIServerMakesIt(t *testing.T) {
	stored := decode(t, strings.ReplaceAll(alonePod, "kube-api-access-abcde", "kube-api-access-vwxyz"))
	c := compare(decode(t, sentPod), decode(t, alonePod), stored, nil)
	if n := c.changedBy(webhook); n != 0 {
		t.Errorf("%d lines are said to be the webhook's: %+v", n, c.lines)
	}
	if n := c.changedBy(apiServer); n == 0 {
		t.Error("no line is said to be the API server's")
	}
}

func TestCallsAreSummedOverTheSeriesOfAHistogram(t *testing.T) {
	const text = `# TYPE h histogram
h_bucket{type="admit",name="a",le="+Inf"} 2
h_sum{type="admit",name="a"} 0.004
h_count{type="admit",name="a"} 2
h_bucket{type="admit",name="b",le="+Inf"} 1
h_sum{type="admit",name="b"} 0.002
h_count{type="admit",name="b"} 1
h_bucket{type="validating",name="a",le="+Inf"} 9
h_sum{type="validating",name="a"} 9
h_count{type="validating",name="a"} 9
`
	got, err := sum([]byte(text), "h", "type", "admit")
	if err != nil {
		t.Fatal(err)
	}
	if want := (calls{3, 6 * time.Millisecond}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got.mean() != 2*time.Millisecond {
		t.Errorf("the mean is %s", got.mean())
	}
	if absent, err := sum([]byte(text), "other", "type", "admit"); err != nil || absent.mean() != 0 {
		t.Errorf("an absent histogram gives %v, %v", absent, err)
	}
}

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func firstContainer(pod map[string]any) map[string]any {
	return object(list(object(pod["spec"])["containers"])[0])
}
