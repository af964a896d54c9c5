// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport"
	v1 "github.com/sallyport-io/sallyport/examples/crontab/api/v1"
	"github.com/sallyport-io/sallyport/examples/crontab/api/v1beta1"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// The operator is installed as its command says, and has no other rights than those
// that are printed.
func TestOperatorOnARealAPIServer(t *testing.T) {
	t.Parallel()
	// Who makes an object that blocks its owner's deletion needs a right for that.
	config := sallyporttest.StartAPIServer(t, sallyporttest.WithAPIServerFlag("enable-admission-plugins", "OwnerReferencesPermissionEnforcement"))
	port := freeport.For(t)
	server := install(t, config, port)
	stop := start(t, server, port, operator(t), []string{"crontab"}, func(s *sallyport.Settings) {
		s.Registration.URL = ""
		s.Registration.Service = &registration.Service{Namespace: installedNamespace, Name: "crontab", Port: int32(port)}
		s.Registration.ConversionService = &registration.Service{Namespace: installedNamespace, Name: "crontab-conversion", Port: int32(port)}
		s.LeaderElection.LeaderElect, s.LeaderElection.Namespace = true, installedNamespace
	})
	scheme := runtime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), v1beta1.AddToScheme(scheme), batchv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	eventually(ctx, t, "both webhooks are called", func() error {
		good := cronTab(v1.CronTabSpec{CronSpec: "0 3 * * *"})
		if err := cluster.Create(ctx, good, client.DryRunAll); err != nil || good.Spec.Image == "" {
			return fmt.Errorf("no defaults in %+v: %w", good.Spec, err)
		}
		if err := cluster.Create(ctx, cronTab(v1.CronTabSpec{}), client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer to a mistake is %w", err)
		}
		return nil
	})

	err = cluster.Create(ctx, cronTab(v1.CronTabSpec{}))
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != 422 || status.Status().Details == nil ||
		len(status.Status().Details.Causes) != 1 || status.Status().Details.Causes[0].Field != "spec.cronSpec" {
		t.Errorf("without a time the answer is %v (%+v), want 422 with a cause", err, status)
	}

	object := cronTab(v1.CronTabSpec{CronSpec: "0 3 * * *"})
	if err := cluster.Create(ctx, object); err != nil {
		t.Fatal(err)
	}
	if object.Spec.Image != defaultImage || object.Spec.Replicas == nil || *object.Spec.Replicas != 1 {
		t.Errorf("the defaults are not filled in: %+v", object.Spec)
	}

	other := client.MergeFrom(object.DeepCopy())
	object.Spec.Image = "another"
	if err := cluster.Patch(ctx, object.DeepCopy(), other); !apierrors.IsInvalid(err) {
		t.Errorf("another image gets %v", err)
	}
	object.Spec.Image = defaultImage + ":2"
	if err := cluster.Patch(ctx, object, other); err != nil {
		t.Errorf("a new tag gets %v", err)
	}

	eventually(ctx, t, "there is a CronJob with the new image", func() error {
		job := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}}
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if image := job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image; image != object.Spec.Image || job.Spec.Schedule != object.Spec.CronSpec {
			return fmt.Errorf("it runs %s at %s", image, job.Spec.Schedule)
		}
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if object.Status.CronJob != job.Name {
			return fmt.Errorf("the status is %+v", object.Status)
		}
		return nil
	})
	eventually(ctx, t, "it is told who runs the controllers", func() error {
		var events corev1.EventList
		if err := cluster.List(ctx, &events, client.InNamespace(installedNamespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "LeaderElection" && event.InvolvedObject.Name == "crontab" {
				return nil
			}
		}
		return fmt.Errorf("of %d events none is", len(events.Items))
	})
	beta := &v1beta1.CronTab{}
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(object), beta); err != nil || beta.Spec.Schedule.Hour != "3" {
		t.Errorf("as v1beta1 it is %+v, %v", beta.Spec, err)
	}
	doctorKnowsTheNames(t, config)
	if err := cluster.Delete(ctx, object); err != nil {
		t.Errorf("the definition does not go with objects of it: %v", err)
	}
	stop()
	uninstall(ctx, t, config, port)
}

func crd(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := definition()
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

func operator(t *testing.T) *sallyport.App {
	t.Helper()
	app, err := newApp()
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// start runs the operator, outside of the cluster, until the test ends or stop is
// called. A process can have a controller once.
func start(t *testing.T, config *rest.Config, port int, app *sallyport.App, controllers []string, change ...func(*sallyport.Settings)) (stop func()) {
	t.Helper()
	settings := app.DefaultSettings()
	settings.Client = config
	settings.Logger = slog.New(slog.DiscardHandler)
	settings.LeaderElection.LeaderElect = false
	settings.Controllers = controllers
	settings.Serving.BindAddress, settings.Serving.SecurePort, settings.Serving.MetricsBindAddress = "127.0.0.1", int32(port), "0"
	settings.Serving.DrainMin, settings.Serving.DrainTimeout = 0, 0
	settings.Registration.URL = fmt.Sprintf("https://127.0.0.1:%d", port)
	for _, change := range change {
		change(&settings)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, settings) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// patience is how long a test may take, on a machine that does other work too.
const patience = 4 * time.Minute

func eventually(ctx context.Context, t *testing.T, what string, check func() error) {
	t.Helper()
	if err := lab.Await(ctx, patience, what, func(context.Context) error { return check() }); err != nil {
		t.Fatal(err)
	}
}
