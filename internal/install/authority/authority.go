// SPDX-License-Identifier: Apache-2.0

// Package authority inspects and rotates the certificate authority of servers in a
// cluster, for their operators: the leader, the progress of a rotation, and requesting
// one. Package certificate is the server side.
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

	"github.com/sallyport-io/sallyport/internal/hosting"
)

// An Authority is stored in the Secret of that name, next to the lease of the leader.
type Authority struct {
	Clients         *hosting.Clients
	Namespace, Name string
}

// about adds the Secret and the remedy to an error.
func (a Authority) about(err error) error {
	hint := ""
	switch {
	case apierrors.IsNotFound(err):
		hint = ": no server has made it yet, or the server was given another --service or --authority-secret"
	case apierrors.IsForbidden(err):
		hint = ": use a kubeconfig with permission to get and update this Secret"
	}
	return fmt.Errorf("authority in Secret %s/%s: %w%s", a.Namespace, a.Name, err, hint)
}

// A Lease identifies the leader.
type Lease struct {
	Holder   string // empty if there is none
	Renewed  time.Time
	Duration time.Duration
}

// Ends returns when the lease expires.
func (l *Lease) Ends() time.Time { return l.Renewed.Add(l.Duration) }

// Lease reads the lease next to the Secret. The error is the API server's.
func (a Authority) Lease(ctx context.Context) (*Lease, error) {
	lease, err := a.Clients.Leases.Leases(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		return &Lease{}, nil
	}
	return &Lease{*spec.HolderIdentity, spec.RenewTime.Time, time.Duration(*spec.LeaseDurationSeconds) * time.Second}, nil
}

// fingerprint returns the SHA-256 of a certificate, in the format of openssl x509
// -fingerprint -sha256.
func fingerprint(of *x509.Certificate) string {
	sum := sha256.Sum256(of.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}
