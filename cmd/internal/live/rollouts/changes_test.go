// SPDX-License-Identifier: Apache-2.0

package rollouts

import (
	"slices"
	"strings"
	"testing"
)

func TestChangesNameElementsAndHaveNoValues(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"nothing":              {`{"env":[{"name":"A","value":"hunter2"}]}`, `{"env":[{"name":"A","value":"hunter2"}]}`, nil},
		"a value":              {`{"env":[{"name":"A","value":"hunter2"}]}`, `{"env":[{"name":"A","value":"hunter3"}]}`, []string{"~ env: changed A"}},
		"elements":             {`{"env":[{"name":"A"},{"name":"C"}]}`, `{"env":[{"name":"B"},{"name":"A"}]}`, []string{"~ env: added B; removed C"}},
		"the order":            {`{"env":[{"name":"A"},{"name":"C"}]}`, `{"env":[{"name":"C"},{"name":"A"}]}`, []string{"~ env changed"}},
		"arguments":            {`{"args":["--password=hunter2"]}`, `{"args":["--password=hunter3"]}`, []string{"~ args changed"}},
		"annotations":          {`{}`, `{"annotations":{"a/b":"hunter2"}}`, []string{"+ annotations: a/b"}},
		"a removed field":      {`{"serviceAccountName":"hunter2"}`, `{}`, []string{"- serviceAccountName"}},
		"mounts of one volume": {`{"volumeMounts":[{"name":"d","mountPath":"/a"}]}`, `{"volumeMounts":[{"name":"d","mountPath":"/a"},{"name":"d","mountPath":"/b"}]}`, []string{"~ volumeMounts: added d at /b"}},
		"the same name twice":  {`{"env":[{"name":"A"}]}`, `{"env":[{"name":"A"},{"name":"A","value":"hunter2"},{"name":"A"}]}`, []string{"~ env: added A (2), A (3)"}},
		"not JSON":             {`{`, `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Changes([]byte(tc.before), []byte(tc.after))
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if strings.Contains(strings.Join(got, ""), "hunter") {
				t.Errorf("a value is in %q", got)
			}
		})
	}
}
