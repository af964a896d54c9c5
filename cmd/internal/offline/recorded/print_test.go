// SPDX-License-Identifier: Apache-2.0

package recorded

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sallyport-io/sallyport/admission"
)

const hostile = "x\nall is well\r\x1b[2K\u0085all is well\u2028\u202ea"

// What a record has as names, messages and warnings prints no line of its own.
func TestRecordsPrintNoLinesOfTheirOwn(t *testing.T) {
	quoted, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	as := func(text string) string {
		return strings.ReplaceAll(text, "HOSTILE", strings.Trim(string(quoted), "`\""))
	}
	for name, text := range map[string]string{
		"the webhook": as(strings.Replace(recorded("a", "web-1", deniedResponse), "a.example.com", "HOSTILE", 1)),
		"the message": as(recorded("a", "web-1", `{"uid":"u","allowed":false,"status":{"message":"HOSTILE"}}`)),
		"a warning":   as(recorded("a", "web-1", `{"uid":"u","allowed":true,"warnings":["HOSTILE"]}`)),
		"the object":  as(strings.ReplaceAll(recorded("a", "web-1", deniedResponse), "web-1", "HOSTILE")),
		"the fault":   as(strings.Replace(recorded("a", "web-1", "FAULT"), "FAULT", "HOSTILE", 1)),
		"a field":     as(recorded("a", "web-1", patched(as(`[{"op":"add","path":"/metadata/HOSTILE","value":"x"}]`)))),
	} {
		result, err := replayed(t, text, by("a", func(string) (*admission.Response, error) { return admission.Allowed().Warn("now"), nil }), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var out strings.Builder
		if err := result.Print(&out); err != nil || len(result.Groups) == 0 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "all is well") || strings.ContainsAny(line, "\r\x1b\u0085\u2028\u202e") {
				t.Errorf("%s: the line %q", name, line)
			}
		}
	}
}
