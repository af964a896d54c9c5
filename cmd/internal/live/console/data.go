// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/a-h/templ"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/explain"
)

// A document is the answer to those who ask for JSON.
type document struct {
	// Page is the path of the page, and Namespace the one that it is about.
	Page      string    `json:"page"`
	Namespace string    `json:"namespace,omitempty"`
	Cluster   string    `json:"cluster,omitempty"`
	ReadAt    time.Time `json:"readAt"`
	// Hidden are requests that the user may not make: what they would show is missing from the data.
	Hidden []string `json:"hidden,omitempty"`
	Notes  []string `json:"notes,omitempty"`
	// Problem is set instead of data.
	Problem *explain.Problem `json:"problem,omitempty"`
	Data    any              `json:"data,omitempty"`
}

// asJSON is the frame of a page for those who ask for JSON.
func asJSON(v *visit, _ templ.Component) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		d := document{Page: v.page.path, Cluster: v.connected(), ReadAt: time.Now().UTC().Truncate(time.Second), Hidden: v.hidden, Notes: v.remarks(), Problem: v.problem, Data: v.data}
		if v.cluster != nil {
			d.Namespace = v.cluster.Namespace
		}
		return json.NewEncoder(w).Encode(d)
	})
}
