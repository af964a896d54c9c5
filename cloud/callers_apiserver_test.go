// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"crypto/tls"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/sallyporttest"
)

// testDelegated has the API server decide who may call a manager on all addresses. As the
// manager registers nothing, the API server does not call it.
func testDelegated(t *testing.T, c *cluster) {
	m := start(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), "--kubeconfig="+sallyporttest.Kubeconfig(t, c.config),
		"--webhook-bind-address=0.0.0.0", "--webhook-authentication=Delegated", "--webhook-registration=None", "--webhook-configuration-name=delegated")
	administrator, err := tls.X509KeyPair(c.config.CertData, c.config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		certificate *tls.Certificate
		want        int
	}{
		"nobody":                          {nil, http.StatusUnauthorized},
		"somebody of a CA of their own":   {newCA(t).issue("kube-apiserver"), http.StatusUnauthorized},
		"an administrator of the cluster": {&administrator, http.StatusOK},
	} {
		if status, _, body := m.review(pvlPath, "", tc.certificate, gceVolume("a")); status != tc.want {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	configurations := c.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := configurations.Get(t.Context(), "delegated", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a configuration is registered: %v", err)
	}
	if pv, err := c.create("unregistered", gce("a"), true); !plain(pv, err) {
		t.Errorf("the API server asks it: %+v, %v", pv, err)
	}
}
