// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/affinity"
)

// Explain returns this webhook's reasons why a pod requires or prefers nodes: what it
// would add to the pod, given as JSON, and what an admitted pod already has. A pod
// without Datasets has no reasons.
//
// [affinity.Reason.Meets] compares a reason with the labels of a node. The error is that of a
// pod that would be refused, or of the source.
func Explain(ctx context.Context, source Source, settings Settings, namespace string, pod []byte) ([]affinity.Reason, error) {
	webhooks, err := New(source, settings, nil)
	if err != nil {
		return nil, err
	}
	md, ok := readMetadata(pod, true)
	if !ok {
		return nil, errNoPod
	}
	h := webhooks[0].Handler.(*handler) // covers all modes
	mode := h.mode(&md)
	if mode == nil || settings.Disabled || md.Labels.Get(InjectionLabel) == "false" {
		return nil, nil
	}
	p, ok := readPod(pod, md)
	if !ok {
		return nil, errNoPod
	}
	profile, err := h.profileNow(ctx)
	if err != nil {
		return nil, err
	}
	d, err := h.draft(ctx, p, &admissionv1.AdmissionRequest{Namespace: namespace, Object: runtime.RawExtension{Raw: pod}})
	if err != nil {
		return nil, err
	}
	d.affinity.Explain = true
	if err := h.run(ctx, d, mode(profile)); err != nil {
		return nil, err
	}
	return d.affinity.All, nil
}

var errNoPod = errors.New("it is not a pod")

// IsRefusal reports whether an error of [Explain] is a decision about the pod, with a
// message for its author, instead of a fault.
func IsRefusal(err error) bool { return asRefusal(err) != nil }
