// SPDX-License-Identifier: Apache-2.0

// Package inforce finds the exemptions that have not ended, without reading all pods.
package inforce

import (
	"bytes"
	"context"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/cmd/internal/live/carried"
	"github.com/sallyport-io/sallyport/cmd/internal/live/injection/exemptions"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/exempt"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
)

// Find returns the exemptions of a namespace, or of all if it is empty, that have not ended. It reads the pods
// of namespaces with exemptions alone.
func Find(ctx context.Context, c *cluster.Cluster, namespace string, notes io.Writer) ([]carried.DriftExemption, error) {
	if _, err := c.List(ctx, exemptions.CollectionOf(namespace)); apierrors.IsForbidden(err) {
		return nil, err
	}
	var said bytes.Buffer // FindDrift says the same
	found, err := exemptions.Read(ctx, c, namespace, &said)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for name, list := range found {
		if !slices.ContainsFunc(list, func(e *exempt.Exemption) bool { return now.Before(e.Until) }) {
			delete(found, name)
		}
	}
	switch len(found) {
	case 0:
		_, _ = said.WriteTo(notes) // as any note
		return []carried.DriftExemption{}, nil
	case 1:
		for namespace = range found {
		}
	}
	drift, err := carried.FindDrift(ctx, c, namespace, nil, notes)
	if err != nil {
		return nil, err
	}
	return drift.Exemptions, nil
}
