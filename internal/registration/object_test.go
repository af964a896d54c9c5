// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoChangedAnObjectLastHasAName(t *testing.T) {
	entry := func(manager string, second int, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Time: &metav1.Time{Time: time.Unix(int64(second), 0)}}
	}
	for want, entries := range map[string][]metav1.ManagedFieldsEntry{
		"late":    {entry("early", 1, ""), entry("late", 2, ""), entry("middle", 1, "")},
		"other":   {entry("other", 1, ""), entry("us", 2, ""), entry("status", 3, "status")},
		"unknown": {entry("other", 1, ""), entry("", 2, "")}, // a client without a User-Agent
	} {
		if got := lastManager(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}, "us"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := lastManager(nil, "us"); got != "unknown, it was deleted" {
		t.Errorf("got %q", got)
	}
}
