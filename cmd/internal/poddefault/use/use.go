// SPDX-License-Identifier: Apache-2.0

// Package use denies pods that may not use a plan that brings Secrets, ConfigMaps or a ServiceAccount: the setting
// usage: Check. Package usage asks the API server.
package use

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A Asker returns those of the objects that pods with a ServiceAccount of a namespace
// may not use. An error is a fault: the pod is neither admitted nor denied.
type Asker interface {
	MayNot(ctx context.Context, namespace, serviceAccount string, objects []*plan.Plan) ([]*plan.Plan, error)
}

// Denial returns the denial of a pod that may not use an applied object, or nil. Those
// that an earlier call for the same request has applied were checked there. The pod's
// ServiceAccount is the one that it was sent with.
func Denial(ctx context.Context, m *merge.Merge, namespace string, checker Asker) (*admission.Response, error) {
	var objects []*plan.Plan
	replaced := false // an earlier call has replaced the ServiceAccount
	for _, c := range m.Applied {
		if _, _, applied := match.Kept(&m.Pod.Metadata, c, &m.Pod.Bounds); applied {
			replaced = replaced || slices.ContainsFunc(c.PodValues, func(f plan.FieldValue) bool { return f.Rule == plan.ServiceAccountRule })
		} else if c.Credentials {
			objects = append(objects, c)
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	if replaced {
		return denyUsage(m, "a PodDefault has replaced the ServiceAccount that the pod was sent with, so that it is not known who would use it", objects), nil
	}
	if checker == nil {
		return nil, errors.New("poddefault: the authorizer for the use of PodDefaults is missing")
	}
	account := "default"
	raw, _ := rawjson.Lookup(m.Pod.Spec.Raw, "serviceAccountName")
	if name := string(plan.Text(raw)); name != "" {
		account = name
	}
	denied, err := checker.MayNot(ctx, namespace, account, objects)
	if err != nil || len(denied) == 0 {
		return nil, err
	}
	c := denied[0]
	resource, flag := "poddefaults.kubeflow.org/"+c.Name(), " -n "+namespace
	if c.Cluster() {
		resource, flag = "clusterpoddefaults.sallyport.io/"+c.Name(), ""
	}
	return denyUsage(m, fmt.Sprintf("the ServiceAccount %s/%s may not use it: kubectl auth can-i use %s%s --as system:serviceaccount:%s:%s. "+
		"Give the ServiceAccount a role with the verb use, or the pod no label that selects it",
		namespace, account, resource, flag, namespace, account), denied), nil
}

// denyUsage denies the pod because of the first of the objects.
func denyUsage(m *merge.Merge, why string, denied []*plan.Plan) *admission.Response {
	also := ""
	if len(denied) > 1 {
		also = ". The same is so of " + plan.Names(denied[1:])
	}
	resp := admission.DeniedResponse(fmt.Sprintf("%s cannot be applied to pod %s: %s%s", denied[0], m.Pod.Name, why, also))
	resp.AuditAnnotations = map[string]string{"denied": plan.Generations(denied)}
	return resp.Warn(m.Told()...)
}
