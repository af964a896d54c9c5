// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

func cronTab(spec v1.CronTabSpec) *v1.CronTab {
	return &v1.CronTab{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "CronTab"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "my-new-cron-object"},
		Spec:       spec,
	}
}

func TestWebhooks(t *testing.T) {
	app, err := newApp()
	if err != nil {
		t.Fatal(err)
	}
	const nightly = "0 3 * * *"
	create := func(spec v1.CronTabSpec) sallyporttest.Review { return sallyporttest.Create(cronTab(spec)) }
	update := func(old, spec v1.CronTabSpec) sallyporttest.Review {
		return sallyporttest.Update(cronTab(old), cronTab(spec))
	}
	for _, tc := range []struct {
		webhook, name string
		c             sallyporttest.Case
	}{
		{"default", "fills in what is missing", sallyporttest.Case{
			Review: create(v1.CronTabSpec{CronSpec: nightly}),
			Want:   cronTab(v1.CronTabSpec{CronSpec: nightly, Image: defaultImage, Replicas: new(int32(1))}),
		}},
		{"default", "leaves what is there", sallyporttest.Case{Review: create(v1.CronTabSpec{Image: "a", Replicas: new(int32(0))}), Unchanged: true}},

		{"validate", "takes what is right", sallyporttest.Case{Review: create(v1.CronTabSpec{CronSpec: "*/5 0 1 * *", Replicas: new(int32(10))}), Warnings: []string{}}},
		{"validate", "wants a time", sallyporttest.Case{Review: create(v1.CronTabSpec{}), Denied: "say when to run", Code: 422, Causes: []string{"spec.cronSpec"}}},
		{"validate", "names all mistakes", sallyporttest.Case{Review: create(v1.CronTabSpec{CronSpec: "daily", Replicas: new(int32(11))}),
			Code: 422, Causes: []string{"spec.cronSpec", "spec.replicas"}}},
		{"validate", "warns", sallyporttest.Case{Review: create(v1.CronTabSpec{CronSpec: "* * * * *"}), Warnings: []string{"spec.cronSpec: it will run every minute"}}},
		{"validate", "lets an image be updated", sallyporttest.Case{
			Review: update(v1.CronTabSpec{CronSpec: nightly, Image: "localhost:5000/a:1"}, v1.CronTabSpec{CronSpec: nightly, Image: "localhost:5000/a@sha256:0"}),
		}},
		{"validate", "does not let it be another one", sallyporttest.Case{
			Review: update(v1.CronTabSpec{CronSpec: nightly, Image: "a:1"}, v1.CronTabSpec{CronSpec: nightly, Image: "b:1"}),
			Denied: "the repository must stay a", Code: 422, Causes: []string{"spec.image"},
		}},
		{"validate", "checks the rest of an update too", sallyporttest.Case{
			Review: update(v1.CronTabSpec{CronSpec: nightly}, v1.CronTabSpec{}), Causes: []string{"spec.cronSpec"},
		}},
	} {
		t.Run(tc.webhook+" "+tc.name, func(t *testing.T) {
			name := tc.webhook + ".crontabs.stable.example.com"
			i := slices.IndexFunc(app.Webhooks(), func(w admission.Webhook) bool { return w.Name == name })
			if i < 0 {
				t.Fatalf("no webhook %s", name)
			}
			sallyporttest.RunWebhook(t, app.Webhooks()[i], tc.c)
		})
	}
}

func TestCommandHasFlagsToRunAsOneProcessOrAsTwo(t *testing.T) {
	app, err := newApp()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"webhooks", "controllers", "service", "leader-elect"} {
		if app.Command().Flag(name) == nil {
			t.Errorf("no flag --%s", name)
		}
	}
}
