// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte("{\"time\":\"2026-01-02T03:04:05.000006Z\",\"webhook\":\"a\"}\n"))
	f.Add([]byte("{\"time\":\"2026-01-02T03:04:05.000006Z\"}\n{\"time\":null}\n"))
	f.Add([]byte("# HELP go_goroutines\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := parse(body)
		if err != nil {
			return
		}
		var whole []byte
		for _, line := range lines {
			if line.time.IsZero() || line.text[len(line.text)-1] != '\n' {
				t.Errorf("%q is not a line of a recording", line.text)
			}
			whole = append(whole, line.text...)
		}
		if string(whole) != string(body) {
			t.Errorf("%q became %q", body, whole)
		}
	})
}

func TestAnAnswerThatIsNoRecordingIsRefused(t *testing.T) {
	const good = "{\"time\":\"2026-01-02T03:04:05.000006Z\"}\n"
	for name, tc := range map[string]struct{ body, want string }{
		"metrics":                     {"# HELP go_goroutines\n", "not a list of recorded reviews"},
		"an object without a time":    {"{}\n", "not a list of recorded reviews"},
		"an answer that was cut off":  {good + strings.TrimSpace(good), "ends within a review"},
		"an answer cut off in a line": {good + good[:10], "not a list of recorded reviews"},
		"nothing":                     {"", ""},
		"reviews":                     {good + good, ""},
	} {
		_, err := parse([]byte(tc.body))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
