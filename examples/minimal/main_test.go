// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

func TestSetTeam(t *testing.T) {
	of := func(labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices", Labels: labels}}
	}
	for name, c := range map[string]sallyporttest.Case{
		"names one":            {Review: sallyporttest.Create(of(nil)), Want: of(map[string]string{"team": "platform"})},
		"keeps the author's":   {Review: sallyporttest.Create(of(map[string]string{"team": "sales"})), Unchanged: true},
		"keeps other labels":   {Review: sallyporttest.Create(of(map[string]string{"a": "b"})), Want: of(map[string]string{"a": "b", "team": "platform"})},
		"names one for a void": {Review: sallyporttest.Create(of(map[string]string{"team": ""})), Want: of(map[string]string{"team": "platform"})},
	} {
		t.Run(name, func(t *testing.T) { sallyporttest.Run(t, admission.Mutate(setTeam), c) })
	}
}
