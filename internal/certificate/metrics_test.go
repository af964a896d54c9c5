// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gathered has the values of the metrics by label value.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += "/" + label.GetValue()
			}
			out[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return out
}

func TestMetricsTellOfAuthorityRenewalAndPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		authority := newTestAuthority(t, func(o *AuthorityOptions) { o.SecretName, o.Registry = "", registry })
		run(t, authority)
		synctest.Wait()
		want := map[string]float64{
			"sallyport_certificate_authority_not_after_timestamp_seconds": float64(authority.state.signer.certificate.NotAfter.Unix()),
			"sallyport_certificate_held":                                  0,
			"sallyport_certificate_problem":                               0,
			"sallyport_certificate_renewals_total":                        1,
			"sallyport_certificate_rotation_problem":                      0,
			"sallyport_certificate_rotations_total":                       0,
			"sallyport_certificate_rotation_phase/steady":                 1,
			"sallyport_certificate_rotation_phase/publishing":             0,
			"sallyport_certificate_rotation_phase/propagating":            0,
			"sallyport_certificate_rotation_phase/signing":                0,
		}
		if diff := cmp.Diff(want, gathered(t, registry)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		time.Sleep(33 * time.Hour)
		synctest.Wait()
		if got := gathered(t, registry)["sallyport_certificate_renewals_total"]; got != 2 {
			t.Errorf("%v renewals after two thirds of the time, want 2", got)
		}
	})
}
