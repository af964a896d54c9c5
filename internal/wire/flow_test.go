// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"
)

func TestAdmissionFlow(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"of an API server": {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},` +
			`"resource":{"group":"","version":"v1","resource":"pods"},"name":"p","namespace":"team-a","operation":"CREATE","userInfo":{"username":"x"},` +
			`"object":{"metadata":{"namespace":"other"}}}}`, "team-a"},
		"of an object without a namespace":            {`{"request":{"operation":"CREATE","object":{"metadata":{"namespace":"other"}}}}`, ""},
		"a namespace behind the object is not sought": {`{"request":{"object":{},"namespace":"late"}}`, ""},
		"a namespace outside of the request":          {`{"namespace":"outside","request":{"operation":"CREATE"}}`, ""},
		"a namespace with escapes":                    {`{"request":{"namespace":"team\u002da"}}`, "team-a"},
		"what is broken behind the namespace":         {`{"request":{"namespace":"team-a",`, "team-a"},
		"what is broken before it":                    {`{"request":{"name":tru,"namespace":"team-a"}}`, ""},
		"no review":                                   {`[1,2]`, ""},
		"nothing":                                     {``, ""},
		"more than anybody sends before it":           {`{"x":"` + strings.Repeat("x", flowPrefix) + `","request":{"namespace":"team-a"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AdmissionFlow([]byte(test.body)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A flow equals the namespace that the decoder reads, or is empty.
func FuzzAdmissionFlow(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","namespace":"team-a","object":{}}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"namespace":null,"uid":"u"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		flow := AdmissionFlow(body)
		_, req, err := decodeReview(body)
		if err == nil && flow != "" && flow != req.Namespace {
			t.Errorf("flow %q of a review in %q", flow, req.Namespace)
		}
	})
}

func BenchmarkAdmissionFlow(b *testing.B) {
	body := []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"0df28fbd-5f5f-11e8-bc74-36e6bb280816",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},` +
		`"requestKind":{"group":"","version":"v1","kind":"Pod"},"requestResource":{"group":"","version":"v1","resource":"pods"},` +
		`"name":"p","namespace":"team-a","operation":"CREATE","object":{}}}`)
	b.ReportAllocs()
	for b.Loop() {
		AdmissionFlow(body)
	}
}
