// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// serveControllerRuntime is the neighbour: controller-runtime's webhook server
// with its defaults and a typed defaulter, the way its documentation teaches.
// It is spared what it could be charged with: the PodDefaults are in memory and
// their selectors are compiled.
func serveControllerRuntime(args []string) error {
	o, err := parseServerFlags("controller-runtime", args)
	if err != nil {
		return err
	}
	injector, err := newInjector(o.podDefaults)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	server := webhook.NewServer(webhook.Options{
		Host:       "127.0.0.1",
		Port:       o.port,
		CertDir:    o.certDir,
		CertName:   certFile,
		KeyName:    keyFile,
		WebhookMux: mux,
		// as kubebuilder scaffolds it
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	})
	server.Register(podDefaultPath, admission.WithDefaulter[*corev1.Pod](scheme, injector))
	adder, err := newAdder()
	if err != nil {
		return err
	}
	server.Register(addPath, admission.WithDefaulter[*corev1.Pod](scheme, adder))
	server.Register(nothingPath, admission.WithDefaulter[*corev1.Pod](scheme, idle{}))
	server.Register(validatePath, admission.WithValidator[*corev1.Pod](scheme, imageChecker{}))
	cronTabs, err := cronTabScheme()
	if err != nil {
		return err
	}
	server.Register(conversionPath, conversion.NewWebhookHandler(cronTabs, conversion.NewRegistry()))
	endWithParent()
	return server.Start(context.Background())
}

// An injector adds to a pod what the PodDefaults that select it say, as far as
// the cases of this benchmark need it: env, volumes, mounts and the mark.
type injector struct {
	podDefaults []selectedPodDefault
}

type selectedPodDefault struct {
	selector labels.Selector
	*v1alpha1.PodDefault
}

func newInjector(file string) (*injector, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list v1alpha1.PodDefaultList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	in := &injector{}
	for i := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(&list.Items[i].Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("%s: selector of %s: %w", file, list.Items[i].Name, err)
		}
		in.podDefaults = append(in.podDefaults, selectedPodDefault{selector, &list.Items[i]})
	}
	return in, nil
}

// Default implements [admission.Defaulter].
func (in *injector) Default(_ context.Context, pod *corev1.Pod) error {
	for _, pd := range in.podDefaults {
		if !pd.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Env = append(c.Env, pd.Spec.Env...)
			c.VolumeMounts = append(c.VolumeMounts, pd.Spec.VolumeMounts...)
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, pd.Spec.Volumes...)
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[markPrefix+pd.Name] = pd.ResourceVersion
	}
	return nil
}

// imageChecker is checkImages as a validator.
type imageChecker struct{}

func (imageChecker) ValidateCreate(ctx context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	return nil, checkImages(ctx, pod)
}

func (imageChecker) ValidateUpdate(ctx context.Context, _, pod *corev1.Pod) (admission.Warnings, error) {
	return nil, checkImages(ctx, pod)
}

func (imageChecker) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}
