// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/fieldcheck"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/podsecurity"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/review"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// A Simulator simulates what the PodDefaults of a cluster do to pods.
type Simulator struct {
	Cluster *cluster.Cluster
	// Webhooks defines the PodDefault webhooks for a source.
	Webhooks func(match.Source) ([]admission.Webhook, error)
	Checker  *fieldcheck.Checker
	// Notes receives remarks that are not part of the output.
	Notes io.Writer
	// Server is asked about pods that the webhooks admit; nil if it is not.
	Server *dryrun.Pods

	known map[string]*Defaults // by namespace
}

// user is the default user. PodDefaults ignore it.
var user = authenticationv1.UserInfo{Username: "sallyport-review"}

// defaults reads the Defaults of a namespace, once.
func (s *Simulator) defaults(ctx context.Context, namespace string) (*Defaults, error) {
	known := s.known[namespace]
	if known == nil {
		var err error
		if known, err = Read(ctx, s.Cluster, namespace, s.Notes); err != nil {
			return nil, err
		}
		s.keep(namespace, known)
	}
	return known, nil
}

func (s *Simulator) keep(namespace string, known *Defaults) {
	if s.known == nil {
		s.known = map[string]*Defaults{}
	}
	s.known[namespace] = known
}

// try sends a new object through the webhooks, if there are any.
func (s *Simulator) try(ctx context.Context, object *manifest.Object, known *Defaults) (*review.Outcome, error) {
	if known.webhooks == nil {
		var err error
		if known.webhooks, err = s.Webhooks(known.Index()); err != nil {
			return nil, err
		}
	}
	out, err := review.Decide(ctx, review.Asker{Operation: admissionv1.Create, Namespace: known.namespace, User: user}.Ask(object, nil), known.webhooks)
	if err != nil || out.Denied != nil || object.GVK() != workload.PodKind {
		return out, err
	}
	return out, known.podSecurity(ctx, out)
}

// podSecurity asks the API server's plugin PodSecurity about a pod with what webhooks have changed. It looks at
// pods after them, and its message names no PodDefault: those that changed the pod are added.
func (k *Defaults) podSecurity(ctx context.Context, out *review.Outcome) error {
	pod := &corev1.Pod{}
	if json.Unmarshal(out.After, pod) != nil {
		return nil // the API server says so itself
	}
	denied, warnings, err := podsecurity.Pod(ctx, k.namespace, k.Labels, pod)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		if !slices.Contains(out.Warnings, warning) {
			out.Warnings = append(out.Warnings, warning)
		}
	}
	if denied == nil {
		return nil
	}
	original := &corev1.Pod{}
	if json.Unmarshal(out.Before, original) == nil {
		if before, _, err := podsecurity.Pod(ctx, k.namespace, k.Labels, original); err == nil && before == nil {
			var by []string
			for _, o := range out.Origins() {
				if !slices.Contains(by, o.Source) {
					by = append(by, o.Source)
				}
			}
			denied.Message += "; the pod without what these add would be admitted: " + strings.Join(by, ", ")
		}
	}
	out.Denied, out.DeniedBy = denied, PodSecurity
	return nil
}

// PodSecurity is the name of the API server's plugin.
const PodSecurity = "PodSecurity"

// owned returns a pod of a workload as its controller creates it. It has the controller
// while a Default is rolled out or something is exempt, because both go by its name.
func (k *Defaults) owned(pod *workload.Pod) (*manifest.Object, error) {
	rolledOut := func(d *Default) bool {
		_, inProgress := d.Plan.RolledOut()
		return inProgress
	}
	if len(k.Exemptions) == 0 && !slices.ContainsFunc(k.All, rolledOut) {
		return pod.Object, nil
	}
	return pod.Owned()
}

// ReadFiles reads and checks objects of files, or the object in an AdmissionReview. Use
// is a verb for messages: "look at".
func ReadFiles(ctx context.Context, paths []string, stdin io.Reader, checker *fieldcheck.Checker, use string) ([]*manifest.Object, error) {
	objects, err := manifest.Read(paths, stdin)
	return checked(ctx, objects, err, checker, strings.Join(paths, ", "), use)
}

// Parse is [ReadFiles] for the content of one file, which messages call name. It refuses more than maxObjects.
func Parse(ctx context.Context, name string, data []byte, maxObjects int, checker *fieldcheck.Checker, use string) ([]*manifest.Object, error) {
	objects, _, err := manifest.Parse(name, data)
	if len(objects) > maxObjects {
		return nil, fmt.Errorf("%s: it has %d objects: %s at most %d at a time", name, len(objects), use, maxObjects)
	}
	return checked(ctx, objects, err, checker, name, use)
}

func checked(ctx context.Context, objects []*manifest.Object, err error, checker *fieldcheck.Checker, name, use string) ([]*manifest.Object, error) {
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s: there is nothing to %s: the lists are empty", name, use)
	}
	errs := []error{err, checker.Check(ctx, objects...)}
	for i, object := range objects {
		if !object.IsAdmissionReview() {
			continue
		}
		q, err := review.Recorded(object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if objects[i] = q.Object; q.Request.Operation == admissionv1.Create {
			q.Object.UID = "" // the API server assigns one before it stores the object
		}
	}
	return objects, errors.Join(errs...)
}

// Simulate returns what the webhooks make of a new pod in its namespace. Hidden is set if the
// user may not read all objects that apply.
func (s *Simulator) Simulate(ctx context.Context, pod *manifest.Object) (out *review.Outcome, hidden bool, err error) {
	known, err := s.defaults(ctx, pod.Namespace)
	if err != nil {
		return nil, false, err
	}
	out, err = s.try(ctx, pod, known)
	return out, known.clusterHidden, err
}
