// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"log/slog"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/tools/events"
)

// Events returns a recorder of events of a controller, until stop is called.
func Events(ctx context.Context, name string, client eventsclient.EventsV1Interface, log *slog.Logger) (recorder events.EventRecorder, stop func()) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil { // it has a sink
		log.WarnContext(ctx, "there will be no events", "error", err)
	}
	return broadcaster.NewRecorder(runtime.NewScheme(), name), broadcaster.Shutdown
}

// MaxMessage is the API server's limit for the bytes of an event's message.
const MaxMessage = 1024

// Cut shortens a longer message than that, at a character boundary.
func Cut(text string) string {
	const more = "…"
	if len(text) <= MaxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:MaxMessage-len(more)], "") + more
}
