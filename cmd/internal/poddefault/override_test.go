// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/podtest"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/test/cases"
)

// objectsOf returns PodDefaults a, b, c, ... of specs, for every pod.
func objectsOf(t *testing.T, specs ...string) *source.Index {
	t.Helper()
	var all []string
	for i, spec := range specs {
		all = append(all, fmt.Sprintf("{metadata: {name: %c, generation: 1}, spec: {selector: {}, %s}}", 'a'+i, spec))
	}
	return indexOf(podtest.PodDefaults(t, []byte(strings.Join(all, "\n---\n")))...)
}

// admitted returns what the API server would store, after a second call that must change
// nothing.
func admitted(t *testing.T, raw []byte, index *source.Index) []byte {
	t.Helper()
	resp := handleFrom(t, raw, index)
	if !resp.Allowed {
		t.Fatalf("denied: %s", resp.Status.Message)
	}
	after := cases.Apply(t, raw, resp)
	if again := handleFrom(t, after, index); !again.Allowed || len(again.Patch) > 0 {
		t.Errorf("the second pass is not empty: %+v %s", again.Status, again.Patch.AppendJSON(nil))
	}
	return after
}

// TestOverrideReplacesInPlace is about what the specification does not know: unknown fields, the bytes of what
// objects add, and pods that come back with what they have got.
func TestOverrideReplacesInPlace(t *testing.T) {
	const main = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"main","image":"x"}]}}`
	const override = "conflictPolicy: Override, "
	for _, tc := range []struct {
		what    string
		pod     string
		objects []string
		want    string // part of the pod
	}{
		{"a variable of the pod that is overridden twice", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"main","env":[{"name":"HOST","value":"one"},{"name":"URL","value":"http://$(HOST)/"}]}]}}`,
			[]string{override + "env: [{name: HOST, value: two}]", override + "env: [{name: HOST, value: three}]"},
			`"env":[{"name":"HOST","value":"three"},{"name":"URL","value":"http://$(HOST)/"}]`},
		{"a variable that comes back to what the pod has, with what is unknown in it", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"main","env":[{"name":"HOST","value":"one","future":1},{"name":"URL"}]}]}}`,
			[]string{override + "env: [{name: HOST, value: two}]", override + "env: [{name: HOST, value: one}]"},
			`"env":[{"name":"HOST","value":"one","future":1},{"name":"URL"}]`},
		{"tolerations of the pod", `{"metadata":{"name":"p"},"spec":{"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"b"}],"containers":[{"name":"main"}]}}`,
			[]string{"tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]", override + "tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 2}]"},
			`"tolerations":[{"effect":"NoExecute","key":"a","operator":"Exists","tolerationSeconds":2},{"key":"b"}]`},
		{"init containers, with what others add to them", main,
			[]string{"initContainers: [{name: one, image: a}, {name: two, image: a}], containerSelector: {names: [one]}, env: [{name: A, value: x}]", override + "initContainers: [{name: one, image: b}]"},
			`{"env":[{"name":"A","value":"x"}],"image":"b","name":"one"},{"name":"two","image":"a"}`},
		{"annotations", main, []string{"annotations: {note: one}", override + "annotations: {note: two}"}, `"note":"two"`},
		{"single values", main, []string{"terminationGracePeriodSeconds: 1", override + "terminationGracePeriodSeconds: 2"}, `"terminationGracePeriodSeconds":2`},
	} {
		t.Run(tc.what, func(t *testing.T) {
			index := objectsOf(t, tc.objects...)
			after := admitted(t, []byte(tc.pod), index)
			if !strings.Contains(strings.ReplaceAll(string(after), `,"resources":{}`, ""), strings.ReplaceAll(tc.want, `,"resources":{}`, "")) {
				t.Errorf("want %s in %s", tc.want, after)
			}
			// Sent again, as a backup is, also with managedFields that say so.
			again := strings.Replace(string(after), `"metadata":{`, `"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:annotations":{"f:`+meta.Mark("a")+`":{},"f:`+meta.Mark("b")+`":{}}}}}],`, 1)
			if resp := handleFrom(t, []byte(again), index); !resp.Allowed || len(resp.Patch) > 0 {
				t.Errorf("sent again: %+v %s", resp.Status, resp.Patch.AppendJSON(nil))
			}
		})
	}
}

// A Deny before an Override denies, although the Override would have replaced both values: also with forged marks, and
// the message names both objects and the place.
func TestDenyAlwaysDenies(t *testing.T) {
	const plain = `{"metadata":{"name":"p","annotations":{}},"spec":{"containers":[{"name":"main"}]}}`
	const last = "conflictPolicy: Override, "
	for _, tc := range []struct {
		what, pod string
		objects   []string
		want      string // part of the message; empty: admitted
	}{
		{"a variable of two objects", plain, []string{"env: [{name: HOST, value: one}]", "env: [{name: HOST, value: two}]", last + "env: [{name: HOST, value: three}]"}, "PodDefaults a and b both set env HOST"},
		{"a forged mark only lets pass what the Override stores either way", `{"metadata":{"name":"p","annotations":{"` + meta.Mark("a") + `":"7"}},"spec":{"containers":[{"name":"main","env":[{"name":"HOST","value":"two"}]}]}}`,
			[]string{"env: [{name: HOST, value: one}]", last + "env: [{name: HOST, value: two}]"}, ""},
		{"a forged mark beside an object that overrides something else", `{"metadata":{"name":"p","annotations":{"` + meta.Mark("a") + `":"7"}},"spec":{"containers":[{"name":"main","env":[{"name":"HOST","value":"pod"}]}]}}`,
			[]string{"env: [{name: HOST, value: one}]", last + "env: [{name: PORT, value: two}]"}, "PodDefault team-a/a: env HOST"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			index := objectsOf(t, tc.objects...)
			if tc.want == "" {
				got := &corev1.Pod{}
				if err := json.Unmarshal(admitted(t, []byte(tc.pod), index), got); err != nil {
					t.Fatal(err)
				}
				if env := got.Spec.Containers[0].Env; len(env) != 1 || env[0].Value != "two" {
					t.Errorf("the pod keeps what it came with: %v", env)
				}
				return
			}
			resp := handleFrom(t, []byte(tc.pod), index)
			if resp.Allowed || !strings.Contains(resp.Status.Message, tc.want) {
				t.Errorf("allowed %v: %+v", resp.Allowed, resp.Status)
			}
		})
	}
}

// What another webhook has added to a container that two objects override survives the next call.
func TestAContainerThatIsOverriddenTwiceIsReplacedOnce(t *testing.T) {
	index := objectsOf(t, "conflictPolicy: Override, sidecars: [{name: s, image: a}]", "conflictPolicy: Override, sidecars: [{name: s, image: b}]")
	after := admitted(t, []byte(`{"metadata":{"name":"p"},"spec":{"containers":[{"name":"main"}]}}`), index)
	changed := strings.Replace(string(after), `"image":"b"`, `"image":"b","env":[{"name":"OTHER"}],"imagePullPolicy":"Always"`, 1)
	if changed == string(after) {
		t.Fatal(changed)
	}
	if resp := handleFrom(t, []byte(changed), index); !resp.Allowed || len(resp.Patch) > 0 {
		t.Errorf("%+v %s", resp.Status, resp.Patch.AppendJSON(nil))
	}
}
