// SPDX-License-Identifier: Apache-2.0

package poddefault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
)

// A UsageChecker returns those of the objects that pods with a ServiceAccount of a namespace
// may not use. An error is a fault: the pod is neither admitted nor denied.
type UsageChecker interface {
	MayNot(ctx context.Context, namespace, serviceAccount string, objects []*Compiled) ([]*Compiled, error)
}

type usageKey struct{}

// CheckUsage returns the handler of this package with what the setting usage: Check asks.
func CheckUsage(next admission.Handler, checker UsageChecker) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return next.Handle(context.WithValue(ctx, usageKey{}, checker), req)
	})
}

// checkUsage returns the denial of a pod that may not use an applied object, or nil. Those
// that an earlier call for the same request has applied were checked there. The pod's
// ServiceAccount is the one that it was sent with.
func checkUsage(ctx context.Context, m *merge, namespace string) (*admission.Response, error) {
	var objects []*Compiled
	replaced := false // an earlier call has replaced the ServiceAccount
	for _, c := range m.applied {
		if _, _, applied := kept(&m.pod.metadata, c, &m.pod.bounds); applied {
			replaced = replaced || slices.ContainsFunc(c.podValues, func(f fieldValue) bool { return f.rule == serviceAccountRule })
		} else if c.credentials {
			objects = append(objects, c)
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	if replaced {
		return denyUsage(m, "a PodDefault has replaced the ServiceAccount that the pod was sent with, so that it is not known who would use it", objects), nil
	}
	checker, _ := ctx.Value(usageKey{}).(UsageChecker)
	if checker == nil {
		return nil, errors.New("poddefault: the authorizer for the use of PodDefaults is missing")
	}
	account := "default"
	raw, _ := rawjson.Lookup(m.pod.spec.raw, "serviceAccountName")
	if name := string(text(raw)); name != "" {
		account = name
	}
	denied, err := checker.MayNot(ctx, namespace, account, objects)
	if err != nil || len(denied) == 0 {
		return nil, err
	}
	c := denied[0]
	resource, flag := "poddefaults.kubeflow.org/"+c.name, " -n "+namespace
	if c.Cluster() {
		resource, flag = "clusterpoddefaults.sallyport.io/"+c.name, ""
	}
	return denyUsage(m, fmt.Sprintf("the ServiceAccount %s/%s may not use it: kubectl auth can-i use %s%s --as system:serviceaccount:%s:%s. "+
		"Give the ServiceAccount a role with the verb use, or the pod no label that selects it",
		namespace, account, resource, flag, namespace, account), denied), nil
}

// denyUsage denies the pod because of the first of the objects.
func denyUsage(m *merge, why string, denied []*Compiled) *admission.Response {
	also := ""
	if len(denied) > 1 {
		also = ". The same is so of " + names(denied[1:])
	}
	resp := admission.Deniedf("%s cannot be applied to pod %s: %s%s", denied[0], m.pod.name, why, also)
	resp.AuditAnnotations = map[string]string{"denied": generations(denied)}
	return resp.Warn(m.told()...)
}

// Names of fields with which a spec refers to what only some may use contain one of these.
var credentialNames = []string{"ecret", "onfigMap", "erviceAccount"}

// freeNames are fields whose members the author names.
var freeNames = []string{
	"labels", "annotations", "nodeSelector", "matchLabels", "selector", "podSelector", "namespaceSelector", "rollout",
	"volumeAttributes", "options", "limits", "requests",
}

// bringsCredentials reports whether a spec refers to Secrets, ConfigMaps or a ServiceAccount
// anywhere: by name or by labels, in its containers and volumes too. It goes by the names of
// fields, so that fields of later versions of Kubernetes count.
func bringsCredentials(spec jsontext.Value) bool {
	if !slices.ContainsFunc(credentialNames, func(part string) bool { return bytes.Contains(spec, []byte(part)) }) {
		return false
	}
	found := false
	r := rawjson.NewReader(spec)
	walkFields(&r, func(name string) bool {
		found = found || name != automountField && slices.ContainsFunc(credentialNames, func(part string) bool { return strings.Contains(name, part) })
		return !found && !slices.Contains(freeNames, name)
	})
	return found
}

// walkFields calls visit with the names of fields at any depth. Visit reports whether to look
// below the field.
func walkFields(r *rawjson.Reader, visit func(name string) bool) {
	switch r.Kind() {
	case '{':
		r.Object(func(name []byte) {
			if visit(string(name)) {
				walkFields(r, visit)
			}
		})
	case '[':
		r.Array(func(int) { walkFields(r, visit) })
	default:
		r.Skip()
	}
}
