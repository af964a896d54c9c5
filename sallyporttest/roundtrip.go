// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/sallyport-io/sallyport/conversion"
)

// RoundTripOptions configure how [RoundTrips] fills objects, and what may be lost.
type RoundTripOptions struct {
	// Seed of the random objects. The same seed gives the same objects.
	Seed int64
	// Count of objects for each pair of versions. Default 200.
	Count int
	// Fill are functions for randfill, func(*T, randfill.Continue), for types with
	// restricted values.
	Fill []any
	// Lossy are JSON pointers to values that may be lost, by version of the object. They
	// include everything below.
	Lossy map[string][]string
}

// RoundTrips fills objects of each version of a converter with random values, converts them
// to each other version and back, and fails the test if they have changed: it reports the
// versions, the paths, and the seed and number of the object. The converter must have Go
// types; for others use [conversion.Converter.RoundTrip].
func RoundTrips(t testing.TB, converter conversion.Converter, options RoundTripOptions) {
	t.Helper()
	if err := converter.Problems(); err != nil {
		t.Fatal(err)
	}
	if options.Count == 0 {
		options.Count = 200
	}
	for _, version := range converter.Versions() {
		for _, through := range converter.Versions() {
			if version == through {
				continue
			}
			fill := filler(options)
			for i := range options.Count {
				differences, err := roundTrip(t.Context(), converter, version, through, fill)
				differences = slices.DeleteFunc(differences, func(d conversion.Difference) bool { return lossy(d.Path, options.Lossy[version]) })
				if err == nil && len(differences) == 0 {
					continue
				}
				t.Errorf("%s from %s to %s and back, seed %d, object %d: %v%s",
					converter.Kind(), version, through, options.Seed, i, differences, errorText(err))
				break // further objects fail alike
			}
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

func lossy(path string, allowed []string) bool {
	return slices.ContainsFunc(allowed, func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") })
}

func filler(options RoundTripOptions) *randfill.Filler {
	fill := randfill.New().RandSource(rand.NewSource(options.Seed)).NilChance(0.3).NumElements(0, 3).MaxDepth(20)
	scheme := runtime.NewScheme()
	fill.Funcs(metafuzzer.Funcs(serializer.NewCodecFactory(scheme))...)
	// Empty maps and lists are not encoded, and converters must not change what the API
	// server maintains.
	fill.Funcs(func(meta *metav1.ObjectMeta, c randfill.Continue) {
		meta.Name, meta.Namespace = c.String(10), c.String(10)
		for range c.Intn(3) {
			metav1.SetMetaDataLabel(meta, c.String(5), c.String(5))
			metav1.SetMetaDataAnnotation(meta, c.String(5), c.String(5))
		}
		meta.Generation = c.Int63()
	})
	return fill.Funcs(options.Fill...)
}

func roundTrip(ctx context.Context, converter conversion.Converter, version, through string, fill *randfill.Filler) ([]conversion.Difference, error) {
	object := converter.New(version)
	if object == nil {
		return nil, fmt.Errorf("version %s has no Go type: use Converter.RoundTrip with objects of your own", version)
	}
	gvk := object.GetObjectKind().GroupVersionKind()
	fill.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return converter.RoundTrip(ctx, raw, through)
}
