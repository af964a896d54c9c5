// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
	"github.com/sallyport-io/sallyport/test/lab"
)

// A listing is what it takes to list objects that are stored in another version.
type listing struct {
	Server             string  `json:"server"`
	Objects            int     `json:"objects"`
	Seconds            float64 `json:"seconds"`                  // of a LIST, median
	CPUMicrosPerObject float64 `json:"cpuMicrosecondsPerObject"` // of the webhook, median
	RatioToFloor       float64 `json:"ratioToFloor"`             // of the two medians
}

// lister is an API server without a watch cache, which would keep objects converted,
// and the definition of CronTab.
type lister struct {
	*lab.ControlPlane
	objects client.Client
}

const cronTabs = "crontabs.stable.example.com"

func startLister(ctx context.Context, dir string) (_ *lister, err error) {
	if dir, err = os.MkdirTemp(dir, "lists-"); err != nil {
		return nil, err
	}
	l := &lister{}
	l.ControlPlane, err = lab.StartControlPlane(ctx, dir, lab.ControlPlaneOptions{Assets: os.Getenv("KUBEBUILDER_ASSETS"), Flags: []string{"--watch-cache=false"}})
	defer func() {
		if err != nil {
			l.Kill()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("starting an API server without watch cache: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	scheme, err := cronTabScheme()
	if err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if l.objects, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	return l, l.define(ctx)
}

// define makes a definition that stores v1beta1 and takes any field.
func (l *lister) define(ctx context.Context) error {
	any := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: new(true),
	}}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: cronTabs},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: v1.GroupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Singular: "crontab", Kind: "CronTab", ListKind: "CronTabList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Schema: any}, {Name: "v1beta1", Served: true, Storage: true, Schema: any},
			},
		},
	}
	if err := l.objects.Create(ctx, crd); err != nil {
		return err
	}
	return poll(ctx, func() error { return l.objects.List(ctx, &v1beta1.CronTabList{}) })
}

// fill creates objects as a person would, with kubectl apply.
func (l *lister) fill(ctx context.Context, count int) error {
	var group sync.WaitGroup
	errs := make(chan error, creators)
	for worker := range creators {
		group.Go(func() {
			for i := worker; i < count; i += creators {
				object := &v1beta1.CronTab{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: "default", Name: fmt.Sprintf("my-new-cron-object-%05d", i),
						Labels: map[string]string{"app.kubernetes.io/name": "cron", "app.kubernetes.io/part-of": "reports"},
					},
					Spec: v1beta1.CronTabSpec{
						Schedule: v1beta1.Schedule{Minute: "*/5", Hour: "1", DayOfMonth: "*", Month: "*", DayOfWeek: "*"},
						Image:    "registry.example.com/reports/my-awesome-cron-image:1.4.2", Replicas: new(int32(3)),
					},
				}
				applied, err := json.Marshal(object)
				if err == nil {
					object.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(applied) + "\n"}
					err = l.objects.Create(ctx, object, client.FieldOwner("kubectl-client-side-apply"))
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// convertBy makes a server convert, and returns when one object was read by its help.
func (l *lister) convertBy(ctx context.Context, url string, caBundle []byte) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := l.objects.Get(ctx, client.ObjectKey{Name: cronTabs}, crd); err != nil {
		return err
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: caBundle},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	return l.objects.Update(ctx, crd)
}

// list lists all objects in v1; converted says whether their fields must be v1's.
func (l *lister) list(ctx context.Context, count int, converted bool) (time.Duration, error) {
	var list v1.CronTabList
	started := time.Now()
	if err := l.objects.List(ctx, &list); err != nil {
		return 0, err
	}
	elapsed := time.Since(started)
	if len(list.Items) != count || converted && list.Items[count-1].Spec.CronSpec != "*/5 1 * * *" {
		return 0, fmt.Errorf("the list has %d objects of %d, or they are not converted", len(list.Items), count)
	}
	return elapsed, nil
}

func poll(ctx context.Context, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// measureLists lists all objects, with one server after the other as their converter.
// Only one of them runs at a time, so that it is known who converts.
func measureLists(ctx context.Context, p schedule, site *site, progress progress) (_ []listing, err error) {
	progress.sayf("starting an API server without watch cache and creating %s CronTabs", thousands(p.Listed))
	l, err := startLister(ctx, site.dir)
	if err != nil {
		return nil, err
	}
	defer l.Kill()
	if err := l.fill(ctx, p.Listed); err != nil {
		return nil, err
	}
	names := []string{conversionFloorName, neighbourName, libraryName}
	seconds, costs := map[string][]float64{}, map[string][]float64{}
	progress.sayf("listing them in another version, %d times by each server", p.ListTurns)
	for turn := range p.ListTurns {
		for i := range names {
			name := names[(i+turn)%len(names)]
			elapsed, cost, err := measureList(ctx, p, site, l, name)
			if err != nil {
				return nil, fmt.Errorf("listing with %s: %w", name, err)
			}
			seconds[name] = append(seconds[name], elapsed.Seconds())
			costs[name] = append(costs[name], micros(cost)/float64(p.Listed))
		}
	}
	var listings []listing
	for _, name := range names {
		cost := median(costs[name])
		listings = append(listings, listing{
			Server: name, Objects: p.Listed, Seconds: median(seconds[name]),
			CPUMicrosPerObject: cost, RatioToFloor: cost / median(costs[conversionFloorName]),
		})
	}
	return listings, nil
}

// measureList lists once to warm up, and once for the figures.
func measureList(ctx context.Context, p schedule, site *site, l *lister, name string) (elapsed, cost time.Duration, err error) {
	srv, err := site.start(ctx, name)
	if err != nil {
		return 0, 0, err
	}
	defer srv.stop()
	converted := name != conversionFloorName // which gives the name of v1 to what is v1beta1
	if err := l.convertBy(ctx, srv.url+conversionPath, site.certificate); err != nil {
		return 0, 0, err
	}
	err = poll(ctx, func() error {
		_, err := l.list(ctx, p.Listed, converted)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	before, err := cpuTime(srv.PID())
	if err != nil {
		return 0, 0, err
	}
	if elapsed, err = l.list(ctx, p.Listed, converted); err != nil {
		return 0, 0, err
	}
	after, err := cpuTime(srv.PID())
	return elapsed, after - before, err
}

// captureConversion has an API server ask a server that keeps what it gets for the
// conversion of one object, and returns the review.
func captureConversion(ctx context.Context, dir string) (_ []byte, err error) {
	certificate, err := writeCertificate(dir)
	if err != nil {
		return nil, err
	}
	recorder, err := startRecorder(dir)
	if err != nil {
		return nil, err
	}
	defer recorder.stop()
	l, err := startLister(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer l.Kill()
	if err := l.fill(ctx, 1); err != nil {
		return nil, err
	}
	if err := l.convertBy(ctx, recorder.url, certificate); err != nil {
		return nil, err
	}
	err = poll(ctx, func() error {
		_ = l.objects.List(ctx, &v1.CronTabList{}) // the recorder converts nothing
		if len(recorder.last()) == 0 {
			return errors.New("the API server has not asked for a conversion")
		}
		return nil
	})
	return recorder.last(), err
}
