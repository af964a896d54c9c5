// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Status is the status of an authority. Fingerprints are SHA-256 of the certificate, in
// the format of openssl x509 -fingerprint -sha256.
type Status struct {
	Secret    string            `json:"secret"`
	Phase     certificate.Phase `json:"phase"`
	Since     *time.Time        `json:"since,omitempty"`
	Requested *time.Time        `json:"requested,omitempty"`
	WaitsFor  string            `json:"waitsFor,omitempty"`
	Signer    *Certificate      `json:"signer"`
	Next      *Certificate      `json:"next,omitempty"`
	Old       *Certificate      `json:"old,omitempty"`
	Bundle    []string          `json:"bundle"`
	Leader    string            `json:"leader"`
	CABundles []CABundle        `json:"caBundles"`
}

// A Certificate of an authority.
type Certificate struct {
	Fingerprint string    `json:"fingerprint"`
	NotBefore   time.Time `json:"notBefore"`
	NotAfter    time.Time `json:"notAfter"`
}

// A CABundle is the bundle of a webhook, and whether it contains the current and next
// signing certificates.
type CABundle struct {
	Kind          string `json:"kind"`
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	HoldsSigner   bool   `json:"holdsSigner"`
	HoldsNext     *bool  `json:"holdsNext,omitempty"`
}

// Status reads the Secret, the lease, and the named webhook configurations.
func (a Authority) Status(ctx context.Context, configuration string) (*Status, error) {
	secret, err := a.Clients.Secrets.Secrets(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return nil, a.about(err)
	}
	found, err := certificate.ReadStatus(secret)
	if err != nil {
		return nil, a.about(err)
	}
	out := &Status{
		Secret: a.Namespace + "/" + a.Name, Phase: found.Phase, Since: orNil(found.Since), Requested: orNil(found.Requested),
		Signer: newCertificate(found.Signer), Next: newCertificate(found.Next), Old: newCertificate(found.Old),
		Leader: a.leader(ctx), CABundles: []CABundle{},
	}
	for _, trusted := range found.Bundle {
		out.Bundle = append(out.Bundle, fingerprint(trusted))
	}
	webhooks, err := cluster.WebhooksOf(ctx, a.Clients.Configurations, configuration)
	if err != nil {
		return nil, fmt.Errorf("webhook configurations: %w", err)
	}
	for _, w := range webhooks {
		bundle := CABundle{Kind: w.Kind, Configuration: configuration, Webhook: w.Name, HoldsSigner: certificate.Holds(w.ClientConfig.CABundle, found.Signer)}
		if found.Next != nil {
			bundle.HoldsNext = new(certificate.Holds(w.ClientConfig.CABundle, found.Next))
		}
		out.CABundles = append(out.CABundles, bundle)
	}
	out.WaitsFor = out.waitsFor()
	return out, nil
}

// leader returns the holder of the lease.
func (a Authority) leader(ctx context.Context) string {
	lease, err := a.Lease(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return "none: there is no lease"
	case err != nil:
		return "not known: " + err.Error()
	case lease.Holder == "":
		return "none: the lease was given up"
	}
	if time.Now().After(lease.Ends()) {
		return lease.Holder + ", silent for " + time.Since(lease.Renewed).Round(time.Second).String()
	}
	return lease.Holder
}

// waitsFor says what a rotation waits for, as far as visible from outside.
func (s *Status) waitsFor() string {
	lacking := 0
	for _, bundle := range s.CABundles {
		if bundle.HoldsNext != nil && !*bundle.HoldsNext || s.Phase == certificate.PhaseSigning && !bundle.HoldsSigner {
			lacking++
		}
	}
	switch {
	case s.Phase == certificate.PhaseSteady && s.Requested != nil:
		return "a server that leads, to begin the rotation"
	case s.Phase == certificate.PhaseSteady:
		return ""
	case lacking > 0:
		return fmt.Sprintf("%d of %d CA bundles to hold the new authority", lacking, len(s.CABundles))
	case s.Phase == certificate.PhasePublishing:
		return "the leader to see that all CA bundles hold the next authority"
	case s.Phase == certificate.PhasePropagating:
		return "all API servers to see the next authority (certificate.caPropagation)"
	default:
		return "all replicas to serve certificates of the new authority (certificate.caPropagation)"
	}
}

// PrintTable prints the status as a table.
func (s *Status) PrintTable(out io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(name, value string) { _, _ = fmt.Fprintf(table, "%s:\t%s\n", name, manifest.Printable(value)) }
	line("Secret", s.Secret)
	phase := string(s.Phase)
	if s.Since != nil {
		phase += ", since " + s.Since.UTC().Format(time.RFC3339)
	}
	line("Phase", phase)
	if s.Requested != nil {
		line("Requested", s.Requested.UTC().Format(time.RFC3339))
	}
	if s.WaitsFor != "" {
		line("Waits for", s.WaitsFor)
	}
	line("Leader", s.Leader)
	for _, authority := range []struct {
		name string
		*Certificate
	}{{"Signer", s.Signer}, {"Next", s.Next}, {"Old", s.Old}} {
		if authority.Certificate != nil {
			line(authority.name, "SHA-256 "+authority.Fingerprint)
			line("  expires", authority.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	line("Bundle", fmt.Sprintf("%d certificates", len(s.Bundle)))
	_ = table.Flush() // a builder never fails
	if len(s.CABundles) == 0 {
		text.WriteString("\nNo webhook configuration of that name has a webhook.\n")
	} else {
		text.WriteString("\n")
		table = tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "KIND\tNAME\tWEBHOOK\tHOLDS SIGNER\tHOLDS NEXT")
		for _, bundle := range s.CABundles {
			next := "-"
			if bundle.HoldsNext != nil {
				next = yesOrNo(*bundle.HoldsNext)
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", bundle.Kind, manifest.Printable(bundle.Configuration), manifest.Printable(bundle.Webhook), yesOrNo(bundle.HoldsSigner), next)
		}
		_ = table.Flush()
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func yesOrNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func orNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func newCertificate(of *x509.Certificate) *Certificate {
	if of == nil {
		return nil
	}
	return &Certificate{Fingerprint: fingerprint(of), NotBefore: of.NotBefore, NotAfter: of.NotAfter}
}
