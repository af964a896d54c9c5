// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/sallyport-io/sallyport/internal/json/rawobject"
)

// Hub is implemented by the version that all others convert to and from. It is
// controller-runtime's interface.
type Hub = conversion.Hub

// Convertible is implemented by the other versions. It is controller-runtime's interface.
type Convertible = conversion.Convertible

// HubAndSpokes converts between the scheme's versions of a kind whose types convert themselves:
// H is the hub, and each other type is a [Convertible].
func HubAndSpokes[H Hub](scheme *runtime.Scheme) Converter {
	hub, err := newObject[H]()
	if err != nil {
		return Converter{problem: err}
	}
	kind, err := kindOf(scheme, hub)
	if err != nil {
		return Converter{problem: err}
	}
	return hubAndSpokes(scheme, kind)
}

// ForKind is [HubAndSpokes] for the kind of the object, which may be the hub or a spoke.
func ForKind(scheme *runtime.Scheme, object runtime.Object) Converter {
	gvk, err := kindOf(scheme, object)
	if err != nil {
		return Converter{problem: err}
	}
	var hubs []schema.GroupVersionKind
	for _, version := range scheme.VersionsForGroupKind(gvk.GroupKind()) {
		object, err := scheme.New(gvk.GroupKind().WithVersion(version.Version))
		if err != nil {
			return Converter{kind: gvk.GroupKind(), problem: err}
		}
		if _, ok := object.(Hub); ok {
			hubs = append(hubs, gvk.GroupKind().WithVersion(version.Version))
		}
	}
	if len(hubs) != 1 {
		return Converter{kind: gvk.GroupKind(), problem: fmt.Errorf(
			"of its versions in the scheme exactly one must be the hub, with a method Hub(); there are %d", len(hubs))}
	}
	return hubAndSpokes(scheme, hubs[0])
}

func hubAndSpokes(scheme *runtime.Scheme, hub schema.GroupVersionKind) Converter {
	spokes := make([]spoke, 0, 4)
	var problems []error
	for _, version := range scheme.VersionsForGroupKind(hub.GroupKind()) {
		if version.Version == hub.Version || version.Version == runtime.APIVersionInternal {
			continue
		}
		object, err := scheme.New(hub.GroupKind().WithVersion(version.Version))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if _, ok := object.(Convertible); !ok {
			problems = append(problems, fmt.Errorf("version %s: %T has no methods ConvertTo(conversion.Hub) error and ConvertFrom(conversion.Hub) error",
				version.Version, object))
		}
		spokes = append(spokes, spoke{
			version: version.Version, object: object,
			to: func(_ context.Context, spoke, hub runtime.Object) error {
				return spoke.(Convertible).ConvertTo(hub.(Hub))
			},
			from: func(_ context.Context, hub, spoke runtime.Object) error {
				return spoke.(Convertible).ConvertFrom(hub.(Hub))
			},
		})
	}
	object, err := scheme.New(hub)
	if err != nil {
		problems = append(problems, err)
	}
	return newTyped(hub, object, spokes, problems)
}

// Spoke converts between one version and the hub of type H. Create it with [NewSpoke].
type Spoke[H runtime.Object] struct {
	object   runtime.Object
	to, from func(ctx context.Context, src, dst runtime.Object) error
	problem  error
}

// NewSpoke returns the spoke of type S. The functions fill in an empty hub from the spoke, and
// an empty spoke from the hub. They must neither keep nor change their input, but may share its
// labels and annotations, as a copy of ObjectMeta does.
func NewSpoke[S, H runtime.Object](to func(ctx context.Context, spoke S, hub H) error, from func(ctx context.Context, hub H, spoke S) error) Spoke[H] {
	object, err := newObject[S]()
	if to == nil || from == nil {
		err = errors.Join(err, fmt.Errorf("spoke %v: both functions are needed, to the hub and from it", reflect.TypeFor[S]()))
	}
	return Spoke[H]{
		object: object, problem: err,
		to:   func(ctx context.Context, spoke, hub runtime.Object) error { return to(ctx, spoke.(S), hub.(H)) },
		from: func(ctx context.Context, hub, spoke runtime.Object) error { return from(ctx, hub.(H), spoke.(S)) },
	}
}

// Functions converts with functions outside of the API types. Each of the scheme's versions of
// the kind must be the hub or a spoke.
func Functions[H runtime.Object](scheme *runtime.Scheme, spokes ...Spoke[H]) Converter {
	object, err := newObject[H]()
	if err != nil {
		return Converter{problem: err}
	}
	hub, err := kindOf(scheme, object)
	if err != nil {
		return Converter{problem: err}
	}
	var plain []spoke
	var problems []error
	versions := []string{hub.Version}
	for _, s := range spokes {
		if s.problem != nil || s.object == nil {
			problems = append(problems, s.problem)
			continue
		}
		gvk, err := kindOf(scheme, s.object)
		switch {
		case err != nil:
			problems = append(problems, err)
			continue
		case gvk.GroupKind() != hub.GroupKind():
			problems = append(problems, fmt.Errorf("spoke %T is of kind %s", s.object, gvk.GroupKind()))
			continue
		}
		versions = append(versions, gvk.Version)
		plain = append(plain, spoke{gvk.Version, s.object, s.to, s.from})
	}
	for _, version := range scheme.VersionsForGroupKind(hub.GroupKind()) {
		if !slices.Contains(versions, version.Version) && version.Version != runtime.APIVersionInternal && len(problems) == 0 {
			problems = append(problems, fmt.Errorf("version %s of the scheme is neither the hub nor a spoke", version.Version))
		}
	}
	slices.SortStableFunc(plain, func(a, b spoke) int { return cmp.Compare(a.version, b.version) })
	return newTyped(hub, object, plain, problems)
}

// Objects converts with one function for all of the scheme's versions of a kind. It fills in
// dst, an empty object of the desired version, from src. Both have apiVersion and kind set.
func Objects(scheme *runtime.Scheme, kind schema.GroupKind, convert func(ctx context.Context, src, dst runtime.Object) error) Converter {
	if scheme == nil || convert == nil {
		return Converter{kind: kind, problem: errors.New("the scheme and the function are needed")}
	}
	t := &typed{kind: kind, direct: convert}
	problems := []error{checkKind(kind)}
	for _, version := range scheme.VersionsForGroupKind(kind) {
		if version.Version == runtime.APIVersionInternal {
			continue
		}
		object, err := scheme.New(kind.WithVersion(version.Version))
		if err == nil {
			err = t.add(version.Version, object)
		}
		problems = append(problems, err)
	}
	return newConverter(kind, t.versions, t, problems...)
}

// spoke is a Spoke without its type parameter.
type spoke struct {
	version  string
	object   runtime.Object
	to, from func(ctx context.Context, src, dst runtime.Object) error
}

func newTyped(hub schema.GroupVersionKind, object runtime.Object, spokes []spoke, problems []error) Converter {
	slices.SortStableFunc(spokes, func(a, b spoke) int { return cmp.Compare(a.version, b.version) })
	t := &typed{kind: hub.GroupKind(), spokes: append([]spoke{{}}, spokes...)}
	if object != nil {
		problems = append(problems, t.add(hub.Version, object))
	}
	for _, s := range spokes {
		problems = append(problems, t.add(s.version, s.object))
	}
	return newConverter(t.kind, t.versions, t, append(problems, checkKind(t.kind))...)
}

// typed converts objects with Go types.
type typed struct {
	kind     schema.GroupKind
	versions []string
	codecs   []*codec // by version
	spokes   []spoke  // by version; the hub is first, and its entry is empty
	direct   func(ctx context.Context, src, dst runtime.Object) error
}

func (t *typed) add(version string, object runtime.Object) error {
	codec, err := newCodec(object)
	t.versions = append(t.versions, version)
	t.codecs = append(t.codecs, codec)
	return err
}

func (t *typed) prototype(version int) runtime.Object { return t.codecs[version].new() }

// empty returns an empty object of a version.
func (t *typed) empty(version int) runtime.Object {
	object := t.codecs[version].new()
	object.GetObjectKind().SetGroupVersionKind(t.kind.WithVersion(t.versions[version]))
	return object
}

func (t *typed) convert(ctx context.Context, dst []byte, in *rawobject.Object, from, to int) ([]byte, error) {
	src, original, err := t.codecs[from].read(in)
	if err != nil {
		return dst, err
	}
	out := t.empty(to)
	if err := t.fill(ctx, src, out, from, to); err != nil {
		return dst, err
	}
	return t.codecs[to].appendObject(dst, in, original, out, t.kind, t.versions[to])
}

func (t *typed) fill(ctx context.Context, src, out runtime.Object, from, to int) error {
	if t.direct != nil {
		return t.direct(ctx, src, out)
	}
	hub := src
	if from != 0 {
		hub = out
		if to != 0 {
			hub = t.empty(0)
		}
		if err := t.spokes[from].to(ctx, src, hub); err != nil || to == 0 {
			return err
		}
	}
	return t.spokes[to].from(ctx, hub, out)
}

func newObject[T runtime.Object]() (runtime.Object, error) {
	typ := reflect.TypeFor[T]()
	if typ.Kind() != reflect.Pointer || typ.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a pointer to a struct: name the Go type of the version", typ)
	}
	return reflect.New(typ.Elem()).Interface().(runtime.Object), nil
}

// kindOf returns the kind of a type, which the scheme must have exactly once.
func kindOf(scheme *runtime.Scheme, object runtime.Object) (schema.GroupVersionKind, error) {
	if scheme == nil {
		return schema.GroupVersionKind{}, errors.New("the scheme is missing")
	}
	kinds, _, err := scheme.ObjectKinds(object)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("%T is not in the scheme: add it with its package's AddToScheme", object)
	case len(kinds) > 1:
		return schema.GroupVersionKind{}, fmt.Errorf("%T stands for several kinds: %v", object, kinds)
	}
	return kinds[0], nil
}
