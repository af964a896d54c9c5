// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sallyport-io/sallyport/conversion"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1alpha1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
)

// Cases of conversion: the CronTab of examples/crontab, from its hub to a spoke; and the
// same bytes as a kind whose versions differ by apiVersion alone.
const (
	conversionPath    = "/convert"
	conversionTyped   = "conversion-typed"
	conversionBytes   = "conversion-bytes"
	conversionReview  = "crontab"       // recorded
	conversionReview2 = "crontab-bytes" // made of it
)

var sameKind = schema.GroupKind{Group: v1.GroupVersion.Group, Kind: "Shirt"}

// conversionStages are measured by themselves if the run asks for it.
var conversionStages = []stage{
	{
		part:    partConversion,
		servers: []string{floorName, neighbourName, libraryName},
		cases:   []benchCase{{id: conversionTyped, name: "CronTab v1beta1 to v1, typed", review: conversionReview, path: conversionPath}},
	},
	{
		part:    partConversion,
		servers: []string{floorName, libraryName},
		cases:   []benchCase{{id: conversionBytes, name: "CronTab, apiVersion alone", review: conversionReview2, path: conversionPath}},
	},
}

func cronTabScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(v1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme))
}

func converters() ([]conversion.Converter, error) {
	scheme, err := cronTabScheme()
	return []conversion.Converter{conversion.HubAndSpokes[*v1beta1.CronTab](scheme), conversion.APIVersionOnly(sameKind, "v1", "v1beta1")}, err
}

// loadConversion reads a recorded ConversionReview of one object.
func loadConversion(name string) (review, error) {
	body, err := recordedReviews.ReadFile("testdata/" + conversionReview + ".json")
	if err != nil {
		return review{}, fmt.Errorf("no recorded review (go run ./cmd/test/bench -capture makes them): %w", err)
	}
	if name == conversionReview2 {
		body = bytes.Replace(body, []byte(`"CronTab"`), []byte(`"`+sameKind.Kind+`"`), 1)
	}
	var envelope apiextensionsv1.ConversionReview
	if err := json.Unmarshal(body, &envelope); err != nil {
		return review{}, fmt.Errorf("testdata/%s.json: %w", name, err)
	}
	if envelope.Request == nil || len(envelope.Request.Objects) != 1 {
		return review{}, fmt.Errorf("testdata/%s.json is not a review of one object", name)
	}
	return review{name, body, string(envelope.Request.UID), envelope.Request.Objects[0].Raw}, nil
}

func isConversion(name string) bool { return strings.HasPrefix(name, conversionReview) }

// verifyConversion checks that an answer is what kube-apiserver accepts: the object in
// v1, with the time in one line if it is typed, and otherwise as it was.
func verifyConversion(answer []byte, r review) error {
	var envelope apiextensionsv1.ConversionReview
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("the answer is not a review: %w", err)
	}
	response := envelope.Response
	if envelope.APIVersion != "apiextensions.k8s.io/v1" || envelope.Kind != "ConversionReview" || response == nil ||
		string(response.UID) != r.uid || response.Result.Status != metav1.StatusSuccess || len(response.ConvertedObjects) != 1 {
		return fmt.Errorf("the answer is %s", answer)
	}
	var before, after map[string]any
	if err := errors.Join(json.Unmarshal(r.object, &before), json.Unmarshal(response.ConvertedObjects[0].Raw, &after)); err != nil {
		return err
	}
	before["apiVersion"] = v1.GroupVersion.String()
	if r.name == conversionReview {
		spec := before["spec"].(map[string]any)
		schedule := spec["schedule"].(map[string]any)
		delete(spec, "schedule")
		spec["cronSpec"] = strings.Join([]string{
			schedule["minute"].(string), schedule["hour"].(string), schedule["dayOfMonth"].(string), schedule["month"].(string), schedule["dayOfWeek"].(string),
		}, " ")
	}
	if !reflect.DeepEqual(before, after) {
		return fmt.Errorf("the object becomes %v", after)
	}
	return nil
}
