// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/sallyport-io/sallyport/cmd/internal/live/portforward"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/install/authority"
)

// checkCertificate compares the server's certificate with every bundle.
func (d *doctor) checkCertificate(ctx context.Context) {
	const check = "certificate"
	kinds := slices.DeleteFunc(lint.Kinds(), func(gvk schema.GroupVersionKind) bool {
		return !slices.Contains([]string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition"}, gvk.Kind)
	})
	reader, err := inspect.ReadCluster(ctx, d.Cluster, kinds)
	if err != nil {
		d.Unread(check, "list webhook configurations", err)
		return
	}
	own := slices.DeleteFunc(reader.All, func(o lint.Object) bool {
		return o.Kind != "CustomResourceDefinition" && o.Name != d.Registration.Name || o.Kind == "CustomResourceDefinition" && !d.converts(o.Raw)
	})
	inventory, err := lint.ReadCluster(own, reader.Missing)
	if err != nil {
		d.Unread(check, "read webhook configurations", err)
		return
	}
	for _, unread := range inventory.Unread() {
		d.Skip(check, "%s", unread.Reason)
	}
	endpoints := inventory.Endpoints()
	if len(endpoints) == 0 {
		d.Skip(check, "nothing is registered")
		return
	}
	leaves := map[string][]*x509.Certificate{}
	var hidden error
	if d.Dial != "" {
		for _, endpoint := range endpoints {
			conn, err := (&net.Dialer{Timeout: inspect.DialTimeout}).DialContext(ctx, "tcp", d.Dial)
			if err == nil {
				leaves[endpoint], err = inspect.Certificate(ctx, endpoint, conn)
			}
			if err != nil {
				d.Fix(check, "correct --dial, or start the server", "no certificate at %s: %v", d.Dial, err)
				return
			}
		}
	} else {
		leaves = inspect.Certificates(ctx, endpoints)
		hidden = d.forwardAll(ctx, endpoints, leaves)
	}
	report := lint.Run(inventory, lint.Options{Rules: []string{"ca-bundle", "crd-ca-bundle"}, Leaves: leaves})
	for _, f := range report.Findings {
		text := f.Object + ": " + f.Message
		if f.Webhook != "" {
			text = f.Webhook + ": " + f.Message
		}
		d.Fix(check, "a server that registers itself repairs this: see its log; otherwise "+f.Fix, "%s", text)
	}
	if len(leaves) < len(endpoints) {
		d.noCertificate(check, hidden)
	} else if len(report.Findings) == 0 {
		last := time.Time{}
		for _, chain := range leaves {
			if last.IsZero() || chain[0].NotAfter.Before(last) {
				last = chain[0].NotAfter
			}
		}
		d.OK(check, "every caBundle verifies the serving certificate, which is valid until %s", last.UTC().Format(time.RFC3339))
	}
}

// forwardAll gets the certificates of servers behind Services through the API server, because a
// Service answers only within the cluster. The error says why some are missing.
func (d *doctor) forwardAll(ctx context.Context, endpoints []string, leaves map[string][]*x509.Certificate) error {
	forwarder := &portforward.Forwarder{Config: d.Config, Client: d.Client}
	var errs []error
	for _, endpoint := range endpoints {
		name, namespace, ok := inspect.ServiceOf(endpoint)
		if leaves[endpoint] != nil || !ok {
			continue
		}
		_, text, err := net.SplitHostPort(endpoint)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		port, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		conn, err := forwarder.DialService(ctx, namespace, name, int32(port))
		if err == nil {
			leaves[endpoint], err = inspect.Certificate(ctx, endpoint, conn)
		}
		if err != nil {
			delete(leaves, endpoint)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// hidden reports why the certificate could not be read.
func (d *doctor) noCertificate(check string, err error) {
	remedy := "run '" + d.Program + " doctor' in the cluster, or with --dial and a forwarded port"
	if err == nil {
		d.Skip(check, "the server does not present its certificate to this machine: %s", remedy)
		return
	}
	d.Skip(check, "the certificate is not seen from here: %v; %s", err, remedy)
}

// authority returns where the server stores its authority. ok is false if that is unknown or
// not a Secret.
func (d *doctor) authority() (of authority.Authority, ok bool) {
	of.Clients = &hosting.Clients{Secrets: d.Client.CoreV1(), Leases: d.Client.CoordinationV1(), Configurations: d.Client.AdmissionregistrationV1()}
	of.Namespace, of.Name, ok = hosting.AuthoritySecret(&d.Certificate, hosting.Config(&d.Registration).Endpoint)
	if s := d.service(); !ok && s != nil {
		of.Namespace, of.Name, ok = s.Namespace, d.Certificate.DefaultSecret, true
	}
	return of, ok
}

// checkAuthority compares the authority in its Secret with every bundle.
func (d *doctor) checkAuthority(ctx context.Context) {
	const check = "authority"
	of, ok := d.authority()
	if !ok {
		d.Skip(check, "the server keeps it in memory; if it does not, --authority-secret says where it is")
		return
	}
	secret, err := d.Client.CoreV1().Secrets(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.Skip(check, "there is no Secret %s/%s: the certificate is from files, or no server has started yet", of.Namespace, of.Name)
		return
	case err != nil:
		d.Unread(check, "get Secret "+of.Namespace+"/"+of.Name, err)
		return
	}
	status, err := certificate.ReadStatus(secret)
	if err != nil {
		d.Fix(check, "restore the Secret, or delete it while no server runs", "Secret %s/%s holds no authority: %v", of.Namespace, of.Name, err)
		return
	}
	lacking := 0
	for _, w := range d.webhooks {
		if !certificate.Holds(w.ClientConfig.CABundle, status.Signer) {
			lacking++
			d.Fix(check, "a server that registers itself repairs this: see its log; otherwise write the authority of the Secret into the caBundle",
				"the caBundle of %s %s does not hold the authority that signs", w.Kind, w.Name)
		}
	}
	switch {
	case lacking > 0:
	case status.Phase != certificate.PhaseSteady:
		d.OK(check, "a rotation is %s; 'sallyport certificates status' shows its progress", status.Phase)
	case time.Until(status.Signer.NotAfter) < 30*24*time.Hour:
		d.Fix(check, "sallyport certificates rotate", "the authority expires on %s, and no rotation is in progress", status.Signer.NotAfter.UTC().Format(time.DateOnly))
	default:
		d.OK(check, "every caBundle holds it, and it is valid until %s", status.Signer.NotAfter.UTC().Format(time.DateOnly))
	}
}

// converts reports whether the server converts a definition's objects.
func (d *doctor) converts(raw []byte) bool {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &crd); err != nil {
		return false
	}
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return false
	}
	s, own := c.Webhook.ClientConfig.Service, d.service()
	if s != nil && own != nil {
		return s.Namespace == own.Namespace && s.Name == own.Name
	}
	u := d.url()
	return u != nil && strings.Contains(ptr.Deref(c.Webhook.ClientConfig.URL, ""), u.Host)
}
