// SPDX-License-Identifier: Apache-2.0

package patient_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/sallyport-io/sallyport/examples/kubebuilder/internal/patient"
)

func TestTheOptionsOfThePatientServerAreAccepted(t *testing.T) {
	if _, err := patient.NewServer(webhook.Options{}); err != nil {
		t.Error(err)
	}
}
