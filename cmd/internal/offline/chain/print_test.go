// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

const hostile = "x\nall is well\r\x1b[2K\u0085all is well\u2028\u202ea"

// What a webhook that was called answers, and what files have as names, prints no line of its own.
func TestAnswersPrintNoLinesOfTheirOwn(t *testing.T) {
	r := &Result{
		Denied: &metav1.Status{Message: hostile}, Warnings: []string{hostile}, AuditAnnotations: map[string]string{hostile: hostile},
		Unknown: []string{hostile}, Notes: []string{hostile},
		Steps: []*Step{{
			Phase: lint.MutatingWebhooks, Name: hostile, Param: hostile, Outcome: Outcome(hostile), Messages: []string{hostile},
			Changes: []Change{{Operation: jsonpatch.Operation{Op: jsonpatch.Add, Path: "/" + hostile, Value: []byte(`"x"`)}, Origin: hostile}},
		}},
	}
	var out strings.Builder
	if err := r.PrintText(&out, "CREATE "+hostile, true); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "all is well") || strings.ContainsAny(line, "\r\x1b\u0085\u2028\u202e") {
			t.Errorf("the line %q", line)
		}
	}
}
