// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/cli/terminal"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// Admission holds the objects that decide on requests: webhook configurations, policies, and
// the labels of namespaces.
type Admission struct {
	inventory *lint.Inventory
	minor     int                                                      // of the cluster's version; 0 if unknown
	labelsOf  func(context.Context, string) (map[string]string, error) // nil for files: the inventory has the namespaces
	labels    map[string]map[string]string                             // cache
	hidden    map[schema.GroupVersionKind]string                       // see Hidden
}

// Hidden reports whether the user may not list a kind that decides on requests.
func (a *Admission) Hidden() bool { return len(a.hidden) > 0 }

// AdmissionOfFiles reads files instead of a cluster, and takes objects of static manifests. It also returns the resources that the
// files define.
func AdmissionOfFiles(paths []string, stdin io.Reader, static []*manifest.Object) (*Admission, *resources.Set, error) {
	objects, err := manifest.Read(paths, stdin)
	if err != nil {
		return nil, nil, err
	}
	all := make([]lint.Object, len(objects))
	for i, object := range objects {
		all[i] = forLint(object)
	}
	inventory, err := lint.ReadFiles(append(all, staticForLint(static)...))
	if err != nil {
		return nil, nil, err
	}
	known, err := resources.OfFiles(objects)
	return &Admission{inventory: inventory}, known, err
}

// AdmissionKinds returns the kinds that decide on requests.
func AdmissionKinds() []schema.GroupVersionKind {
	return slices.DeleteFunc(lint.Kinds(), func(gvk schema.GroupVersionKind) bool { return gvk.Group != admissionregistrationv1.GroupName })
}

// AdmissionOfCluster reads the objects of the given kinds, a subset of [AdmissionKinds], and takes objects of static manifests.
func AdmissionOfCluster(ctx context.Context, c *cluster.Cluster, kinds []schema.GroupVersionKind, static ...*manifest.Object) (*Admission, error) {
	return admissionOfCluster(ctx, c, kinds, func(objects *Objects) error {
		objects.All = append(objects.All, staticForLint(static)...)
		return nil
	})
}

func staticForLint(objects []*manifest.Object) []lint.Object {
	var out []lint.Object
	for _, object := range objects {
		converted := forLint(object)
		converted.Static = true
		out = append(out, converted)
	}
	return out
}

func admissionOfCluster(ctx context.Context, c *cluster.Cluster, kinds []schema.GroupVersionKind, edit func(*Objects) error) (*Admission, error) {
	objects, err := ReadCluster(ctx, c, kinds)
	if err != nil {
		return nil, err
	}
	if err := edit(objects); err != nil {
		return nil, err
	}
	a := &Admission{labels: map[string]map[string]string{}, hidden: objects.Missing}
	if a.inventory, err = objects.Inventory(); err != nil {
		return nil, err
	}
	if a.minor, err = c.Minor(); err != nil {
		return nil, err
	}
	a.labelsOf = func(ctx context.Context, namespace string) (map[string]string, error) {
		labels, err := c.NamespaceLabels(ctx, namespace)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		return labels, err
	}
	return a, nil
}

// Links returns the chain of a request. It fills in what the cluster knows. Namespace labels
// stay unknown if the namespace does not exist or the user may not read it.
func (a *Admission) Links(ctx context.Context, r matcher.Request) ([]lint.Link, error) {
	r.KubernetesMinor = a.minor
	if r.Namespace != "" && a.labelsOf != nil {
		if _, read := a.labels[r.Namespace]; !read {
			labels, err := a.labelsOf(ctx, r.Namespace)
			if err != nil {
				return nil, err
			}
			a.labels[r.Namespace] = labels
		}
		r.NamespaceLabels = maps.Clone(a.labels[r.Namespace])
	}
	return a.inventory.Chain(ctx, r), nil
}

// A Question describes a request. Only Operation is required.
type Question struct {
	Operation             string
	Subresource           string
	Namespace, Name, User string
	Groups                []string
	// Object is nil if it is unknown. For UPDATE and DELETE it is also the old object, unless Old is set.
	Object, Old *manifest.Object
}

// Review returns the request as webhooks receive it. The object is the one of the question.
func (q Question) Review(of *resources.Resource) (*admissionv1.AdmissionRequest, error) {
	r, err := q.request(of)
	if err != nil {
		return nil, err
	}
	req := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Operation(q.Operation), Kind: metav1.GroupVersionKind(r.Kind), Resource: metav1.GroupVersionResource(r.Resource), SubResource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name, UserInfo: authenticationv1.UserInfo{Username: r.User, Groups: r.Groups},
	}
	for into, object := range map[*runtime.RawExtension]map[string]any{&req.Object: r.Object, &req.OldObject: r.OldObject} {
		if object == nil {
			continue
		}
		if into.Raw, err = utiljson.Marshal(object); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// Chain answers a question about a resource.
func (a *Admission) Chain(ctx context.Context, of *resources.Resource, q Question) (*Chain, error) {
	request, err := q.request(of)
	if err != nil {
		return nil, err
	}
	links, err := a.Links(ctx, request)
	if err != nil {
		return nil, err
	}
	return &Chain{
		Resource: of.GroupResource().String(), Version: of.Version, Subresource: q.Subresource, Operation: q.Operation,
		Namespace: request.Namespace, Chain: append([]lint.Link{}, links...), Unread: mergeSkipped(a.inventory.Unread()),
	}, nil
}

// request returns the request that the API server would receive.
func (q Question) request(of *resources.Resource) (matcher.Request, error) {
	r := matcher.Request{
		Operation: admissionregistrationv1.OperationType(q.Operation), Resource: of.GroupVersionResource, Subresource: q.Subresource,
		Kind:      subresourceKind(of.GroupResource(), q.Subresource, of.Kind),
		Namespace: q.Namespace, Name: q.Name, User: q.User, Groups: q.Groups, Equivalents: of.Equivalents,
	}
	if given := q.Object; given != nil {
		switch gvk := given.GVK(); {
		case r.Kind != of.Kind && gvk != r.Kind:
			return r, fmt.Errorf("%s: %s is not the object of %s/%s: pass one of kind %s, %s", given.At(), given.Title(), of.GroupResource(), q.Subresource, r.Kind.Kind, r.Kind.GroupVersion())
		case gvk.Group != r.Kind.Group || gvk.Kind != r.Kind.Kind:
			return r, fmt.Errorf("%s: %s is not of %s: name the resource of the file", given.At(), given.Title(), of.GroupResource())
		}
		if r.Kind.GroupKind() == of.Kind.GroupKind() { // the request has the version of the file
			r.Kind, r.Resource = given.GVK(), given.GVK().GroupVersion().WithResource(of.Resource)
			r.Equivalents = append(r.Equivalents, of.GroupVersionResource)
		}
		if given.Namespace != "" && r.Namespace != "" && given.Namespace != r.Namespace {
			return r, fmt.Errorf("%s is in namespace %s, and --namespace says %s", given.Title(), given.Namespace, r.Namespace)
		}
		if r.Namespace == "" {
			r.Namespace = given.Namespace
		}
		r.Name = given.Name
		var value map[string]any
		if err := utiljson.Unmarshal(given.Raw, &value); err != nil { // integers stay integers
			return r, given.ErrorAt("", err.Error())
		}
		if r.Operation != admissionregistrationv1.Delete {
			r.Object = value
		}
		if r.Operation == admissionregistrationv1.Update || r.Operation == admissionregistrationv1.Delete {
			r.OldObject = value
		}
	}
	if old := q.Old; old != nil {
		scaled := r.Kind != of.Kind && q.Subresource == "scale" && old.GVK() == of.Kind
		if old.GVK() != r.Kind && !scaled || old.Name != r.Name {
			return r, fmt.Errorf("%s: the old object is %s of %s: it must be the same object in the same version", old.At(), old.Title(), old.APIVersion)
		}
		r.OldObject = nil
		if err := utiljson.Unmarshal(old.Raw, &r.OldObject); err != nil {
			return r, old.ErrorAt("", err.Error())
		}
		if scaled {
			var err error
			if r.OldObject, err = scaleOf(old, r.OldObject); err != nil {
				return r, err
			}
		}
	}
	switch {
	case of.Group == "" && of.Resource == "namespaces":
		r.Namespace = r.Name // as the API server sets it
	case !of.Namespaced:
		if q.Namespace != "" {
			return r, fmt.Errorf("%s are in no namespace: leave out --namespace", of.GroupResource())
		}
	case r.Namespace == "":
		r.Namespace = metav1.NamespaceDefault
	}
	if r.Object != nil && r.Namespace != "" && of.Namespaced {
		if meta, ok := r.Object["metadata"].(map[string]any); ok {
			meta["namespace"] = r.Namespace
		}
	}
	return r, nil
}

// Chain is the answer to a question.
type Chain struct {
	Resource    string         `json:"resource"`
	Version     string         `json:"version"`
	Subresource string         `json:"subresource,omitempty"`
	Operation   string         `json:"operation"`
	Namespace   string         `json:"namespace,omitempty"`
	Chain       []lint.Link    `json:"chain"`
	Unread      []lint.Skipped `json:"unread,omitempty"`
}

// phaseTitles says how the API server runs each phase.
var phaseTitles = map[lint.Phase]string{
	lint.MutatingPolicies:   "Mutating policies, one after the other",
	lint.MutatingWebhooks:   "Mutating webhooks, one after the other",
	lint.ValidatingPolicies: "Validating policies, one after the other",
	lint.ValidatingWebhooks: "Validating webhooks, all at the same time",
}

// PrintText prints the chain as text. It only counts entries that are not called, unless all is
// set.
func (r *Chain) PrintText(out io.Writer, all bool) error {
	text := terminal.NewText(out)
	line := func(format string, args ...any) { text.Line(0, terminal.Plain.Of(fmt.Sprintf(format, args...))) }
	name := r.Resource
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	title := r.Operation + " " + manifest.PrintableLine(name)
	if r.Namespace != "" {
		title += " in namespace " + manifest.PrintableLine(r.Namespace)
	}
	text.Line(0, terminal.Heading.Of(title))
	number, left := 0, 0
	var again []string
	worst := int32(0)
	for _, phase := range lint.Phases() {
		titled, longest := false, int32(0)
		for _, link := range r.Chain {
			if link.Phase != phase {
				continue
			}
			if link.Answer == matcher.Out && !all {
				left++
				continue
			}
			if !titled {
				text.Line(0, terminal.Heading.Of("\n"+phaseTitles[phase]+":"))
				titled = true
			}
			position := "-"
			if link.Answer != matcher.Out {
				number++
				position = fmt.Sprint(number)
				if phase == lint.MutatingWebhooks {
					worst += link.TimeoutSeconds
				} else {
					longest = max(longest, link.TimeoutSeconds)
				}
				if link.Reinvoked {
					again = append(again, position)
				}
			}
			printLink(text, position, &link)
		}
		worst += longest
	}
	if number == 0 {
		line("\nNobody is asked.")
	}
	if len(again) > 0 {
		line("\nOnce more, if another one has changed the object after it: %s", strings.Join(again, ", "))
	}
	if worst > 0 {
		line("\nIf no server answers, this takes up to %d s.", worst)
	}
	if left > 0 {
		line("%s not asked: --show-excluded says why.", cli.Count(left, "is", "are"))
	}
	for _, unread := range skippedLines(r.Unread) {
		text.Line(0, terminal.Warn.Of("not known: "), terminal.Plain.Of(manifest.PrintableLine(unread)))
	}
	return text.Flush()
}

// printLink prints a webhook or policy, and below it why it is asked or not.
func printLink(text *terminal.Text, position string, link *lint.Link) {
	const hang = 14 // the column of the name
	style := map[matcher.Answer]terminal.Style{matcher.Out: terminal.Quiet, matcher.Maybe: terminal.Warn}[link.Answer]
	text.Line(hang, terminal.Plain.Of(fmt.Sprintf("%4s  ", position)), style.Of(fmt.Sprintf("%-8s", link.Answer)),
		terminal.Heading.Of(manifest.PrintableLine(link.Name)), terminal.Plain.Of("  "+manifest.PrintableLine(describe(*link))))
	text.Line(hang, terminal.Quiet.Of(strings.Repeat(" ", hang)+manifest.Printable(cli.OneLine(link.Why))))
}

// describe returns the failure policy, the timeout and other details of a link.
func describe(link lint.Link) string {
	parts := []string{link.FailurePolicy}
	if link.TimeoutSeconds > 0 {
		parts = append(parts, fmt.Sprintf("%d s", link.TimeoutSeconds))
	}
	if link.Server != "" {
		parts = append(parts, link.Server)
	}
	if len(link.Actions) > 0 {
		parts = append(parts, strings.Join(link.Actions, "+"))
	}
	if link.Sent != "" {
		parts = append(parts, "as "+link.Sent)
	}
	if link.Static {
		parts = append(parts, "static manifest")
	}
	return "(" + manifest.Printable(strings.Join(parts, ", ")) + ")"
}
