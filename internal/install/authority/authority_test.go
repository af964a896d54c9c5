// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting"
)

func of(objects ...runtime.Object) Authority {
	clients := fake.NewClientset(objects...)
	return Authority{Clients: &hosting.Clients{Secrets: clients.CoreV1(), Leases: clients.CoordinationV1(), Configurations: clients.AdmissionregistrationV1()}, Namespace: "home", Name: "ca"}
}

func TestWhoLeadsIsToldByTheLease(t *testing.T) {
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "ca"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: new(metav1.NewMicroTime(renewed)), LeaseDurationSeconds: new(int32(15))},
		}
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"no lease":        {nil, "none: there is no lease"},
		"given up":        {[]runtime.Object{lease("", time.Now())}, "none: the lease was given up"},
		"never taken":     {[]runtime.Object{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "ca"}}}, "none: the lease was given up"},
		"held":            {[]runtime.Object{lease("server-0", time.Now())}, "server-0"},
		"held in silence": {[]runtime.Object{lease("server-0", time.Now().Add(-time.Hour))}, "server-0, silent for 1h"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := of(tc.objects...).leader(t.Context()); !strings.HasPrefix(got, tc.want) || strings.Contains(got, "silent") != strings.Contains(tc.want, "silent") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestErrorsNameTheSecretAndTheRemedy(t *testing.T) {
	if _, err := of().Status(t.Context(), "sallyport"); err == nil || !strings.Contains(err.Error(), "Secret home/ca") || !strings.Contains(err.Error(), "no server has made it yet") {
		t.Errorf("without a Secret: %v", err)
	}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "ca"}, Data: map[string][]byte{"password": []byte("hunter2")}}
	for name, do := range map[string]func(Authority) error{
		"status": func(a Authority) error { _, err := a.Status(t.Context(), "sallyport"); return err },
		"rotate": func(a Authority) error { return a.Rotate(t.Context(), &strings.Builder{}, 0) },
	} {
		if err := do(of(other)); err == nil || !strings.Contains(err.Error(), "Secret home/ca") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s of a Secret without an authority: %v", name, err)
		}
	}
}

func TestARotationWaitsForWhatIsNotYetThere(t *testing.T) {
	lacks, holds := new(false), new(true)
	for name, tc := range map[string]struct {
		status Status
		want   string
	}{
		"nothing is requested":      {Status{Phase: certificate.PhaseSteady}, ""},
		"it is requested":           {Status{Phase: certificate.PhaseSteady, Requested: new(time.Now())}, "a server that leads"},
		"a bundle lacks the next":   {Status{Phase: certificate.PhasePublishing, CABundles: []CABundle{{HoldsSigner: true, HoldsNext: lacks}, {HoldsSigner: true, HoldsNext: holds}}}, "1 of 2 CA bundles"},
		"all bundles hold the next": {Status{Phase: certificate.PhasePublishing, CABundles: []CABundle{{HoldsSigner: true, HoldsNext: holds}}}, "the leader to see"},
		"API servers are to see it": {Status{Phase: certificate.PhasePropagating}, "all API servers"},
		"a bundle lacks the signer": {Status{Phase: certificate.PhaseSigning, CABundles: []CABundle{{}}}, "1 of 1 CA bundles"},
		"replicas are to serve":     {Status{Phase: certificate.PhaseSigning}, "all replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.status.waitsFor(); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
