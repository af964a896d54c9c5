// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/test/lab"
)

func TestPodsAreAskedAboutWithinLimitsOnARealAPIServer(t *testing.T) {
	server, err := New(lab.APIServer(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(p *Pods, name string) *Answer {
		t.Helper()
		raw := jsontext.Value(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"containers": [{"name": "main", "image": "i"}]}}`, name))
		answer, err := p.Ask(t.Context(), Pod{Namespace: "default", Before: raw, After: raw})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	few := &Pods{Server: server, Limit: 1, Until: time.Now().Add(time.Minute)}
	for _, step := range []struct {
		pod  string
		want Verdict
	}{{"limits-first", Accepted}, {"limits-second", Unknown}, {"limits-first", Accepted}} {
		if got := ask(few, step.pod); got.Verdict != step.want || step.want == Unknown && !strings.Contains(got.Reason, "the first 1 pod only") {
			t.Errorf("%s: %+v, want %s", step.pod, got, step.want)
		}
	}
	late := &Pods{Server: server, Until: time.Now()}
	if got := ask(late, "limits-late"); got.Verdict != Unknown || got.Reason != "it did not answer in time" {
		t.Errorf("too late: %+v", got)
	}
}
