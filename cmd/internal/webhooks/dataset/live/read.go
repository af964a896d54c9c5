// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/internal/store"
)

// Reader is a [Source] that reads each object from the API server each time, for
// inspecting few pods. See [NewReader].
type Reader struct{ core, apps, fluid *rest.RESTClient }

// NewReader returns a reader. The credentials in config must be allowed to get what is
// read: claims, Datasets and runtimes, the ConfigMap of the settings, if any, and for
// sidecars DaemonSets and PersistentVolumes.
func NewReader(config *rest.Config) (*Reader, error) {
	r := &Reader{}
	for _, c := range []struct {
		client  **rest.RESTClient
		version schema.GroupVersion
	}{
		{&r.core, schema.GroupVersion{Version: "v1"}},
		{&r.apps, schema.GroupVersion{Group: "apps", Version: "v1"}},
		{&r.fluid, schema.GroupVersion{Group: kinds.Group, Version: kinds.Version}},
	} {
		var err error
		if *c.client, err = store.Client(config, c.version, addLean); err != nil {
			return nil, fmt.Errorf("client for %s: %w", c.version, err)
		}
	}
	return r, nil
}

// Find implements [Source].
func (r *Reader) Find(ctx context.Context, ref dataset.Ref, _ bool) (*dataset.Object, error) {
	// Claim names come from the pod's author and have not been validated yet.
	if len(content.IsPathSegmentName(ref.Name)) > 0 {
		return nil, nil
	}
	client, resource := r.fluid, ""
	switch ref.Kind {
	case kinds.Claim:
		client, resource = r.core, "persistentvolumeclaims"
	case kinds.Volume:
		client, resource = r.core, "persistentvolumes"
	case kinds.Profile:
		client, resource = r.core, "configmaps"
	case kinds.DaemonSet:
		client, resource = r.apps, "daemonsets"
	default:
		resource = kinds.ResourceOf(ref.Kind)
	}
	get := client.Get().Resource(resource).Name(ref.Name)
	if ref.Namespace != "" {
		get = get.Namespace(ref.Namespace)
	}
	result := get.Do(ctx)
	raw, _ := result.Raw()
	err := result.Error() // looks for a Status in the answer
	switch {
	case apierrors.IsNotFound(err):
		// Without such an API, the answer is not a Status of the API.
		if apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			return nil, dataset.ErrNotInstalled
		}
		return nil, nil
	case err != nil && (apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)):
		return nil, admission.Unavailable(err, time.Second)
	case err != nil:
		return nil, err
	}
	_, object, err := dataset.Parse(ref.Kind, raw)
	if err != nil {
		return nil, err
	}
	object.Prepare(ref)
	return object, nil
}
