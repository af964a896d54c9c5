// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/certificate"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
)

var certificatesOutputs = []string{"table", "json"}

func newCertificatesStatusCommand() *cobra.Command {
	o, output := newCertificatesOptions(), ""
	cmd := &cobra.Command{
		Use:   "status --service NAMESPACE/NAME | --authority-secret NAMESPACE/NAME",
		Short: "Print which authority signs, who trusts it, and how far a rotation is",
		Long: "Status reads the Secret of the authority, the lease beside it and the webhook configurations.\n" +
			"It prints no key.",
		Example: "  sallyport certificates status --service sallyport-system/sallyport\n\n" +
			"  sallyport certificates status --authority-secret sallyport-system/sallyport-authority --output json",
		Args: noArguments("everything is said by flags"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := errors.Join(o.validate(), cli.Choice("output", output, certificatesOutputs))
			if err != nil {
				return err
			}
			client, err := o.client()
			if err != nil {
				return err
			}
			status, err := o.status(cmd.Context(), client)
			if err != nil {
				return err
			}
			if output == "json" {
				return status.printJSON(cmd.OutOrStdout())
			}
			return status.printTable(cmd.OutOrStdout())
		},
	}
	o.addFlags(cmd)
	addFlagGroup(cmd, "Output", func() {
		cmd.Flags().StringVar(&o.registration.Name, "configuration-name", o.registration.Name, "`name` of the webhook configurations whose CA bundles are looked at")
		cmd.Flags().StringVarP(&output, "output", "o", "table", "`format` of the output, "+cli.OneOf(certificatesOutputs))
		cli.CompleteChoices(cmd, "output", certificatesOutputs)
	})
	return cmd
}

// certificatesStatus is what status prints. Fingerprints are SHA-256 of the
// certificate, as openssl x509 -fingerprint -sha256 prints them.
type certificatesStatus struct {
	Secret    string            `json:"secret"`
	Phase     certificate.Phase `json:"phase"`
	Since     *time.Time        `json:"since,omitempty"`
	Requested *time.Time        `json:"requested,omitempty"`
	WaitsFor  string            `json:"waitsFor,omitempty"`
	Signer    *authorityStatus  `json:"signer"`
	Next      *authorityStatus  `json:"next,omitempty"`
	Old       *authorityStatus  `json:"old,omitempty"`
	Bundle    []string          `json:"bundle"`
	Leader    string            `json:"leader"`
	CABundles []caBundleStatus  `json:"caBundles"`
}

type authorityStatus struct {
	Fingerprint string    `json:"fingerprint"`
	NotBefore   time.Time `json:"notBefore"`
	NotAfter    time.Time `json:"notAfter"`
}

type caBundleStatus struct {
	Kind          string `json:"kind"`
	Configuration string `json:"configuration"`
	Webhook       string `json:"webhook"`
	HoldsSigner   bool   `json:"holdsSigner"`
	HoldsNext     *bool  `json:"holdsNext,omitempty"`
}

func (o *certificatesOptions) status(ctx context.Context, client kubernetes.Interface) (*certificatesStatus, error) {
	namespace, name := o.secret()
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, aboutSecret(namespace, name, err)
	}
	found, err := certificate.ReadStatus(secret)
	if err != nil {
		return nil, aboutSecret(namespace, name, err)
	}
	out := &certificatesStatus{
		Secret: namespace + "/" + name, Phase: found.Phase, Since: orNil(found.Since), Requested: orNil(found.Requested),
		Signer: newAuthorityStatus(found.Signer), Next: newAuthorityStatus(found.Next), Old: newAuthorityStatus(found.Old),
	}
	for _, trusted := range found.Bundle {
		out.Bundle = append(out.Bundle, fingerprint(trusted))
	}
	out.Leader = leaderOf(ctx, client, namespace, name)
	if out.CABundles, err = caBundles(ctx, client, o.registration.Name, found); err != nil {
		return nil, err
	}
	out.WaitsFor = out.waitsFor()
	return out, nil
}

// aboutSecret says which Secret an error is about, and what to do.
func aboutSecret(namespace, name string, err error) error {
	hint := ""
	switch {
	case apierrors.IsNotFound(err):
		hint = ": no server has made it yet, or the server was given another --service or --authority-secret"
	case apierrors.IsForbidden(err):
		hint = ": use the kubeconfig of somebody who may get and update this Secret"
	}
	return fmt.Errorf("authority in Secret %s/%s: %w%s", namespace, name, err, hint)
}

// leaderOf is who holds the lease, for people.
func leaderOf(ctx context.Context, client kubernetes.Interface, namespace, name string) string {
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "none: there is no lease"
	case err != nil:
		return "not known: " + err.Error()
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		return "none: the lease was given up"
	}
	holder := *lease.Spec.HolderIdentity
	if lease.Spec.RenewTime != nil && lease.Spec.LeaseDurationSeconds != nil {
		if silent := time.Since(lease.Spec.RenewTime.Time); silent > time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second {
			holder += ", silent for " + silent.Round(time.Second).String()
		}
	}
	return holder
}

// caBundles are those of the live webhook configurations of a name.
func caBundles(ctx context.Context, client kubernetes.Interface, name string, found *certificate.Status) ([]caBundleStatus, error) {
	out := []caBundleStatus{}
	add := func(kind, webhook string, config admissionregistrationv1.WebhookClientConfig) {
		status := caBundleStatus{Kind: kind, Configuration: name, Webhook: webhook, HoldsSigner: certificate.Holds(config.CABundle, found.Signer)}
		if found.Next != nil {
			status.HoldsNext = new(certificate.Holds(config.CABundle, found.Next))
		}
		out = append(out, status)
	}
	mutating, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		for _, webhook := range mutating.Webhooks {
			add("MutatingWebhookConfiguration", webhook.Name, webhook.ClientConfig)
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("webhook configurations: %w", err)
	}
	validating, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		for _, webhook := range validating.Webhooks {
			add("ValidatingWebhookConfiguration", webhook.Name, webhook.ClientConfig)
		}
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("webhook configurations: %w", err)
	}
	return out, nil
}

// waitsFor says what a rotation waits for, as far as one can see from outside.
func (s *certificatesStatus) waitsFor() string {
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

func (s *certificatesStatus) printJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

func (s *certificatesStatus) printTable(out io.Writer) error {
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
		*authorityStatus
	}{{"Signer", s.Signer}, {"Next", s.Next}, {"Old", s.Old}} {
		if authority.authorityStatus != nil {
			line(authority.name, "SHA-256 "+authority.Fingerprint)
			line("  expires", authority.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	line("Bundle", fmt.Sprintf("%d certificates", len(s.Bundle)))
	_ = table.Flush() // a builder takes everything
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

func newAuthorityStatus(of *x509.Certificate) *authorityStatus {
	if of == nil {
		return nil
	}
	return &authorityStatus{Fingerprint: fingerprint(of), NotBefore: of.NotBefore, NotAfter: of.NotAfter}
}

func fingerprint(of *x509.Certificate) string {
	sum := sha256.Sum256(of.Raw)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum[:]), " ", ":")
}
