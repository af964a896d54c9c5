// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"encoding/json"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/conversion"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1alpha1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
)

// FuzzRoundTrips converts objects with whatever fields from each version to each other
// and back: nothing may be lost.
func FuzzRoundTrips(f *testing.F) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		f.Fatal(err)
	}
	converter := conversion.HubAndSpokes[*v1beta1.CronTab](scheme)
	if err := converter.Problems(); err != nil {
		f.Fatal(err)
	}
	f.Add("0 3 * * *", "0", "3", "*", "*", "*", "i", "a", "b", int32(1))
	f.Add(" 0  3 * *\t* ", "0 3", "", "*", "*", "*", "", "", "", int32(0))
	f.Add("daily", "", "", "", "", "", "<&>", "\u00fc", "\"", int32(-1))
	f.Fuzz(func(t *testing.T, line, minute, hour, day, month, weekday, image, key, value string, replicas int32) {
		meta := metav1.ObjectMeta{Name: "c", Namespace: "default", UID: "u", Annotations: map[string]string{key: value}, Labels: map[string]string{value: key}}
		if len(key) > 18 && key[:18] == "stable.example.com" {
			return // is ours
		}
		alpha := &v1alpha1.CronTab{ObjectMeta: meta}
		alpha.Spec.CronSpec, alpha.Spec.Image, alpha.Status.CronJob = line, image, value
		beta := &v1beta1.CronTab{ObjectMeta: meta}
		beta.Spec.Schedule = v1beta1.Schedule{Minute: minute, Hour: hour, DayOfMonth: day, Month: month, DayOfWeek: weekday}
		beta.Spec.Image, beta.Spec.Replicas, beta.Status.CronJob = image, &replicas, value
		one := &v1.CronTab{ObjectMeta: meta}
		one.Spec.CronSpec, one.Spec.Image, one.Spec.Replicas, one.Status.CronJob = line, image, &replicas, value
		for version, object := range map[string]runtime.Object{"v1alpha1": alpha, "v1beta1": beta, "v1": one} {
			object.GetObjectKind().SetGroupVersionKind(converter.Kind().WithVersion(version))
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			for _, through := range converter.Versions() {
				lost, err := converter.RoundTrip(t.Context(), raw, through)
				if err != nil || len(lost) > 0 {
					t.Errorf("%s through %s: %v, %v", raw, through, lost, err)
				}
			}
		}
	})
}
