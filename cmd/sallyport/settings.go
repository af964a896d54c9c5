// SPDX-License-Identifier: Apache-2.0

package main

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/registration"
)

// registrationSettings say how and when the webhooks are called unless flags say
// otherwise, the same for serve and manifests.
func registrationSettings() frontdoor.RegistrationSettings {
	return frontdoor.RegistrationSettings{
		Mode:               registration.ModeAPI,
		Name:               "sallyport",
		ExcludedNamespaces: []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease, metav1.NamespacePublic},
		OwnPods:            "app.kubernetes.io/name=sallyport",
		FailurePolicy:      string(admissionregistrationv1.Fail),
		TimeoutSeconds:     5,
		ReviewVersions:     []string{"v1", "v1beta1"},
	}
}

// certificateSettings say where the certificate comes from unless flags say
// otherwise.
func certificateSettings() frontdoor.CertificateSettings {
	return frontdoor.DefaultCertificateSettings("sallyport")
}
