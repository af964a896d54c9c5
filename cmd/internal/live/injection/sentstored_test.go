// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/test/golden"
)

var code = regexp.MustCompile(`hidden [0-9a-f]{6}`)

// side prints lines with their origins.
func side(lines []review.Line) string {
	var out strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&out, "%s%s", map[udiff.OpKind]string{udiff.Delete: "-", udiff.Insert: "+", udiff.Equal: " "}[line.Kind], line.Text)
		if line.Kind != udiff.Equal {
			fmt.Fprintf(&out, "   # %q, part of %q", line.Source, line.Cause)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// The API server's own plugins change a pod before webhooks do, and other webhooks after them.
func TestThePodAsStoredHasTheOriginOfEachChange(t *testing.T) {
	known := defaultsOf(t, labels.Set{},
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: creds, namespace: team-a, resourceVersion: '7'}, spec: {selector: {matchLabels: {use: 'true'}}, "+
			"env: [{name: TOKEN, value: verysecret}], volumes: [{name: creds, secret: {secretName: token}}], volumeMounts: [{name: creds, mountPath: /creds}]}}")
	pod := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, labels: {use: 'true'}}, spec: {containers: [{name: main, image: x, env: [{name: MINE, value: alsosecret}]}]}}")
	stored := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, uid: u, resourceVersion: '9', labels: {use: 'true'}, managedFields: [{manager: kubectl}], "+
		"annotations: {poddefault.admission.kubeflow.org/poddefault-creds: '7', sallyport.io/poddefaults: creds, kubectl.kubernetes.io/last-applied-configuration: '{alsosecret}'}}, "+
		"spec: {nodeName: node-1, containers: [{name: mesh, image: m}, {name: main, image: x, volumeMounts: [{name: api, mountPath: /api}, {name: creds, mountPath: /creds}], "+
		"env: [{name: MINE, value: alsosecret}, {name: TOKEN, value: verysecret}]}], volumes: [{name: api, emptyDir: {}}, {name: creds, secret: {secretName: token, defaultMode: 420}}]}, status: {phase: Running}}")
	out, err := simulator().try(t.Context(), pod, known)
	if err != nil {
		t.Fatal(err)
	}
	e := &Explanation{}
	if err := e.compare(pod, out, stored); err != nil {
		t.Fatal(err)
	}
	lines, err := e.Lines(false)
	if err != nil {
		t.Fatal(err)
	}
	text := side(lines)
	if strings.Contains(text, "secret\n") || strings.Contains(text, "alsosecret") || strings.Contains(text, "verysecret") {
		t.Error("a value is shown")
	}
	golden.Equal(t, "testdata/stored.txt", code.ReplaceAllString(text, "hidden CODE"))
	if lines, err = e.Lines(true); err != nil || !strings.Contains(side(lines), "value: verysecret") {
		t.Errorf("%v\n%s", err, side(lines))
	}
}

// Nothing says how this pod was sent: what is not from a PodDefault may have been there.
func TestAPodOfItsOwnIsComparedWithItselfWithoutWhatPodDefaultsAdded(t *testing.T) {
	known := defaultsOf(t, labels.Set{},
		"{apiVersion: kubeflow.org/v1alpha1, kind: PodDefault, metadata: {name: creds, namespace: team-a, resourceVersion: '7'}, spec: {selector: {matchLabels: {use: 'true'}}, "+
			"env: [{name: A, value: a}, {name: B, value: b}], volumes: [{name: creds, secret: {secretName: token}}], volumeMounts: [{name: creds, mountPath: /creds}]}}")
	stored := one(t, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team-a, uid: u, labels: {use: 'true'}, annotations: {poddefault.admission.kubeflow.org/poddefault-creds: '7', sallyport.io/poddefaults: creds}}, "+
		"spec: {containers: [{name: main, image: x, volumeMounts: [{name: creds, mountPath: /creds}], env: [{name: MINE, value: c}, {name: A, value: a}, {name: B, value: b}]}], "+
		"volumes: [{name: api, emptyDir: {}}, {name: creds, secret: {secretName: token, defaultMode: 420}}]}}")
	pod, err := skeleton(stored, known)
	if err != nil {
		t.Fatal(err)
	}
	out, err := simulator().try(t.Context(), pod, known)
	if err != nil {
		t.Fatal(err)
	}
	e := &Explanation{Basis: containersAlone}
	if err := e.compare(pod, out, stored); err != nil {
		t.Fatal(err)
	}
	lines, err := e.Lines(true)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/storedalone.txt", side(lines))
}

func TestHiddenValuesDifferIfTheValuesDo(t *testing.T) {
	env := func(value string) []byte {
		return fmt.Appendf(nil, `{"spec":{"env":[{"name":"A","value":%q}]}}`, value)
	}
	for name, tc := range map[string]struct {
		after   string
		changed bool
	}{"another value": {"b", true}, "the same": {"a", false}} {
		lines, err := lines(env("a"), env(tc.after), nil, nil, false)
		changed := false
		for _, line := range lines {
			changed = changed || line.Kind != udiff.Equal
		}
		if err != nil || changed != tc.changed || len(lines) == 0 {
			t.Errorf("%s: %v, %s", name, err, side(lines))
		}
	}
}
