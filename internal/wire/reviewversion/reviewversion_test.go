// SPDX-License-Identifier: Apache-2.0

package reviewversion

import (
	"fmt"
	"slices"
	"testing"
)

func TestTheCallerMayChangeTheList(t *testing.T) {
	list := All()
	list[0] = "v9"
	if !Known(V1) || Known("v9") || All()[0] != V1 {
		t.Errorf("the versions are %v", All())
	}
}

func TestVersionsOfAGroup(t *testing.T) {
	for apiVersion, want := range map[string]bool{
		"a.k8s.io/v1": true, "a.k8s.io/v1beta1": true,
		"a.k8s.io/v2": false, "a.k8s.iov1": false, "a.k8s.io": false, "a.k8s.io/": false, "v1": false, "": false, "b.k8s.io/v1": false, "a.k8s.io//v1": false,
	} {
		if got := In("a.k8s.io", apiVersion); got != want {
			t.Errorf("%q: %t, want %t", apiVersion, got, want)
		}
	}
}

func TestMessagesListTheVersions(t *testing.T) {
	if got, want := Choices(""), "v1 or v1beta1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Choices("a.k8s.io"), "a.k8s.io/v1 or a.k8s.io/v1beta1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheBestVersionOfAWebhook(t *testing.T) {
	for _, test := range []struct {
		offered []string
		want    string
	}{
		{[]string{V1beta1, V1}, V1}, {[]string{"v9", V1beta1}, V1beta1}, {[]string{"v9"}, V1beta1}, {nil, V1beta1},
	} {
		if got := Best(test.offered); got != test.want {
			t.Errorf("%v: %s, want %s", test.offered, got, test.want)
		}
	}
}

func TestUnsupportedAndRepeatedVersionsAreReported(t *testing.T) {
	var got []string
	Validate([]string{"v2", V1, V1beta1, V1}, func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) })
	if want := []string{`"v2" is not supported; choose v1 or v1beta1`, `duplicate "v1"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
