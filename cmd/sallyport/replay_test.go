// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestReplayOfSomeRequestsIsNoGreen(t *testing.T) {
	const decided = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":"web","namespace":"team-a","operation":"CREATE","userInfo":{},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"x"}]}}},"response":{"uid":"u","allowed":true}}` + "\n"
	update := strings.Repeat(`{"apiVersion":"audit.k8s.io/v1","kind":"Event","stage":"ResponseComplete","verb":"update"}`+"\n", 1000)
	all, some := file(t, "all.jsonl", decided), file(t, "some.jsonl", decided+update)
	for name, tc := range map[string]struct {
		args []string
		want int
	}{
		"all requests":                  {[]string{"-f", all}, exitOK},
		"one of 1,001":                  {[]string{"-f", some}, exitPartly},
		"one of 1,001, if that will do": {[]string{"-f", some, "--allow-unknown"}, exitOK},
	} {
		got := sallyportWith(t, "", append([]string{"replay"}, tc.args...)...)
		if got.status != tc.want || !strings.Contains(got.stdout, "1 request replayed: 1 decided as before, 0 differently") {
			t.Errorf("%s: status %d, want %d\n%s%s", name, got.status, tc.want, got.stdout, got.stderr)
		}
	}
}
