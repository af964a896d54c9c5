// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/defaults"
)

// attributes are the attributes of the request, with its audit annotations.
type attributes struct {
	apiserveradmission.Attributes
	mu          sync.Mutex
	annotations map[string]string
}

// AddAnnotation implements [apiserveradmission.Attributes].
func (a *attributes) AddAnnotation(key, value string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.annotations[key] = strings.ReplaceAll(value, `"`+first, `"`) // see ordered
	return nil
}

func (e *evaluation) attributes() (*attributes, error) {
	req := e.Request
	gvk := schema.GroupVersionKind(req.Kind)
	object, err := e.kinds.decode(gvk, req.Object.Raw, req.Namespace)
	if err != nil {
		return nil, err
	}
	if req.Operation == admissionv1.Create && req.SubResource != "binding" {
		defaults.Wipe(object)
	}
	if err := e.admitPod(object); err != nil {
		return nil, err
	}
	old, err := e.kinds.decode(gvk, req.OldObject.Raw, req.Namespace)
	if err != nil {
		return nil, fmt.Errorf("the old object: %w", err)
	}
	u := &user.DefaultInfo{Name: req.UserInfo.Username, UID: req.UserInfo.UID, Groups: req.UserInfo.Groups, Extra: map[string][]string{}}
	for key, values := range req.UserInfo.Extra {
		u.Extra[key] = values
	}
	if everybody := user.AllAuthenticated; u.Name != user.Anonymous && !slices.Contains(u.Groups, everybody) { // as the API server adds it
		u.Groups = append(slices.Clone(u.Groups), everybody)
	}
	dry := req.DryRun != nil && *req.DryRun
	record := apiserveradmission.NewAttributesRecord(object, old, gvk, req.Namespace, req.Name, schema.GroupVersionResource(req.Resource), req.SubResource,
		apiserveradmission.Operation(req.Operation), e.options(), dry, u)
	return &attributes{Attributes: record, annotations: map[string]string{}}, nil
}
