// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
)

// Mounted is a Dataset that a pod mounts through a claim.
type Mounted struct {
	Claim           string
	Namespace, Name string
	// Type is the type of the runtime.
	Type    string
	Runtime *Runtime
	dataset *Dataset
	// nested is set if only a sidecar of another Dataset mounts it.
	nested bool
}

// Title names the Dataset in messages.
func (m *Mounted) Title() string { return m.dataset.title }

// refusal is an error that decides about the pod, with a message for its author.
type refusal struct{ message string }

func (r *refusal) Error() string { return r.message }

func refusef(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// resolve finds the Datasets of claims, which are sorted and unique. If cached objects
// would cause a refusal, it reads them again from the API server, once. The error is a
// [refusal], or a fault.
func resolve(ctx context.Context, source Source, namespace string, claims []string, precheck bool) ([]*Mounted, error) {
	mounted, err := resolveOnce(ctx, source, namespace, claims, precheck, false)
	if r := (*refusal)(nil); errors.As(err, &r) {
		return resolveOnce(ctx, source, namespace, claims, precheck, true)
	}
	return mounted, err
}

func resolveOnce(ctx context.Context, source Source, namespace string, claims []string, precheck, fresh bool) ([]*Mounted, error) {
	var mounted []*Mounted
	var missing []string
	for _, name := range claims {
		claim, err := source.Find(ctx, Ref{kinds.Claim, namespace, name}, fresh)
		switch {
		case err != nil:
			return nil, fmt.Errorf("claim %s/%s: %w", namespace, name, err)
		case claim == nil:
			missing = append(missing, name)
			continue
		case claim.Claim.Dataset == "":
			continue
		}
		m, err := resolveDataset(ctx, source, namespace, claim.Claim.Dataset, precheck, fresh)
		if err != nil {
			return nil, err
		}
		m.Claim = name
		mounted = append(mounted, m)
	}
	if len(missing) > 0 {
		return nil, refusef("failed to get the following PVCs [%s] in namespace %s: they are not there, and whether a dataset is behind them cannot be known: "+
			"create them first, or correct the names in spec.volumes", strings.Join(missing, " "), namespace)
	}
	return mounted, nil
}

func resolveDataset(ctx context.Context, source Source, namespace, name string, precheck, fresh bool) (*Mounted, error) {
	object, err := source.Find(ctx, Ref{kinds.Dataset, namespace, name}, fresh)
	switch {
	case errors.Is(err, ErrNotInstalled) || err == nil && object == nil:
		return nil, refusef("dataset %s/%s is not there, although a claim of the pod is labelled as its own: create it, or correct the claim's labels", namespace, name)
	case err != nil:
		return nil, fmt.Errorf("dataset %s/%s: %w", namespace, name, err)
	}
	d := object.Dataset
	if d.title == "" { // from another implementation of Source
		copied := *d
		d = &copied
		d.prepare(namespace, name)
	}
	if precheck && !d.bound() {
		if d.NotReady != "" {
			return nil, refusef("dataset \"%s/%s\" not ready because %s", namespace, name, d.NotReady)
		}
		return nil, refusef("dataset \"%s/%s\" not bound", namespace, name)
	}
	kind, known := kinds.Runtimes[d.RuntimeType]
	switch {
	case d.RuntimeType == "":
		return nil, refusef("fail to get runtimeInfo for runtime type: %s: dataset %s/%s has no runtime: create one of the same name, and wait until it is bound", d.RuntimeType, namespace, name)
	case !known:
		return nil, refusef("fail to get runtimeInfo for runtime type: %s: dataset %s/%s: known are %s", bounded(d.RuntimeType), namespace, name, strings.Join(kinds.RuntimeTypes(), ", "))
	}
	runtime, err := source.Find(ctx, Ref{kind.Kind, namespace, name}, fresh)
	switch {
	case errors.Is(err, ErrNotInstalled):
		return nil, refusef("%s %s/%s, the runtime of the dataset, cannot be there: the CustomResourceDefinition %s.%s is not installed", kind.Kind, namespace, name, kind.Resource, kinds.Group)
	case err != nil:
		return nil, fmt.Errorf("%s %s/%s: %w", kind.Kind, namespace, name, err)
	case runtime == nil:
		return nil, refusef("%s %s/%s, the runtime of the dataset, is not there", kind.Kind, namespace, name)
	}
	return &Mounted{Namespace: namespace, Name: name, Type: d.RuntimeType, Runtime: runtime.Runtime, dataset: d}, nil
}
