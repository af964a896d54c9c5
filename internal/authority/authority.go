// SPDX-License-Identifier: Apache-2.0

// Package authority is about the certificate authority of servers in a cluster, for the
// people who run them: who leads, how far a rotation is, and how to request one. Package
// certificate is what the servers do.
package authority

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/cluster"
)

// An Authority is kept in the Secret of that name. Beside it is the lease of the server
// that leads.
type Authority struct {
	Cluster         *cluster.Cluster
	Namespace, Name string
}

// about says which Secret an error is about, and what to do.
func (a Authority) about(err error) error {
	hint := ""
	switch {
	case apierrors.IsNotFound(err):
		hint = ": no server has made it yet, or the server was given another --service or --authority-secret"
	case apierrors.IsForbidden(err):
		hint = ": use the kubeconfig of somebody who may get and update this Secret"
	}
	return fmt.Errorf("authority in Secret %s/%s: %w%s", a.Namespace, a.Name, err, hint)
}

// A Lease says who leads.
type Lease struct {
	Holder   string // empty if nobody holds it
	Renewed  time.Time
	Duration time.Duration
}

// Ends is when the lease runs out.
func (l *Lease) Ends() time.Time { return l.Renewed.Add(l.Duration) }

// Lease reads the lease beside the Secret. The error is that of the API server.
func (a Authority) Lease(ctx context.Context) (*Lease, error) {
	lease, err := a.Cluster.Client.CoordinationV1().Leases(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return &Lease{}, nil
	}
	return &Lease{*spec.HolderIdentity, spec.RenewTime.Time, time.Duration(*spec.LeaseDurationSeconds) * time.Second}, nil
}

// fingerprint is the SHA-256 of a certificate, as openssl x509 -fingerprint -sha256 prints it.
func fingerprint(of *x509.Certificate) string {
	sum := sha256.Sum256(of.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}
