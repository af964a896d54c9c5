// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesOfObjects(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{[]string{"pod/web"}, []string{"pod", "web"}}, {[]string{"pod", "web"}, []string{"pod", "web"}},
		{[]string{"pod"}, nil}, {[]string{"pod/"}, nil}, {[]string{"/web"}, nil}, {[]string{"pod/a/b"}, nil}, {[]string{"pod/a", "b"}, nil}, {[]string{""}, nil},
	} {
		word, name, err := ParseNamed(tc.args)
		if got := []string{word, name}; (err == nil) != (tc.want != nil) || err == nil && !cmp.Equal(got, tc.want) {
			t.Errorf("%q: %q, %v", tc.args, got, err)
		}
	}
}

func FuzzParseNamed(f *testing.F) {
	f.Add("pod/web", "")
	f.Add("pod", "web")
	f.Fuzz(func(t *testing.T, a, b string) {
		args := []string{a}
		if b != "" {
			args = append(args, b)
		}
		word, name, err := ParseNamed(args)
		if err == nil && (word == "" || name == "" || strings.Contains(word+name, "/") && !strings.Contains(a, "/")) {
			t.Errorf("%q gives %q and %q", args, word, name)
		}
	})
}
