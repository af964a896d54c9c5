// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/internal/registration/pace"
)

// conflict tracks the reports about another client that keeps changing an object.
type conflict struct {
	version string // of the last change that was counted; "-" for a deletion
	told    time.Time
}

// isNew reports whether the observed object has not been counted yet.
func (c *conflict) isNew(observed metav1.Object) bool {
	version := "-"
	if observed != nil {
		version = observed.GetResourceVersion()
	}
	isNew := version != c.version
	c.version = version
	return isNew
}

// due reports whether it is time for another event.
func (c *conflict) due(now time.Time) bool {
	if !c.told.IsZero() && now.Sub(c.told) < pace.EventPause {
		return false
	}
	c.told = now
	return true
}

// warn records an event on an observed object.
func (k *Controller) warn(o *object, observed metav1.Object, reason, action, note string) {
	if k.options.Events == nil || observed == nil { // no object for the event
		return
	}
	version := admissionregistrationv1.SchemeGroupVersion
	if o.kind() == definitionKind {
		version = apiextensionsv1.SchemeGroupVersion
	}
	k.options.Events.Eventf(&corev1.ObjectReference{
		APIVersion: version.String(), Kind: o.kind(), Name: o.name(), UID: observed.GetUID(), ResourceVersion: observed.GetResourceVersion(),
	}, nil, corev1.EventTypeWarning, reason, action, "%s", note)
}
