// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/backstop"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	registrations "github.com/sallyport-io/sallyport/internal/registration"
)

// backstopSizes are how many PodDefaults the index holds; 0 means that there is no policy.
var backstopSizes = []int{0, 10, 1000}

func backstopName(podDefaults int) string {
	if podDefaults == 0 {
		return "no policy"
	}
	return fmt.Sprintf("policy, %s PodDefaults", thousands(podDefaults))
}

// measureBackstop creates notebook pods that the policy looks up and lets pass, without
// it and with indexes of several sizes. Turns alternate. No webhook is called: the
// pods come with the annotation that it leaves.
func measureBackstop(ctx context.Context, p schedule, site *site, progress progress) ([]creation, error) {
	pod, err := parsePod(notebookPodYAML, selecting)
	if err != nil {
		return nil, err
	}
	typical, err := typicalPodDefaults()
	if err != nil {
		return nil, err
	}
	decided := pod.DeepCopy()
	if decided.Annotations == nil {
		decided.Annotations = map[string]string{}
	}
	decided.Annotations[meta.DecisionsAnnotation] = typical[0].Name
	progress.sayf("creating pods with a policy that stands in for the webhook, %d turns of %d", p.CreateTurns, p.Creates)
	rates, latencies := make([][]float64, len(backstopSizes)), make([][]time.Duration, len(backstopSizes))
	for range p.CreateTurns {
		for i, size := range backstopSizes {
			remove := func() error { return nil }
			if size > 0 {
				if remove, err = site.cp.installBackstop(ctx, size, pod); err != nil {
					return nil, fmt.Errorf("installing the policy: %w", err)
				}
			}
			elapsed, took, err := site.cp.createPods(ctx, decided, p.Creates, creators, nil, typical[0].Name, false)
			if err = errors.Join(err, remove()); err != nil {
				return nil, fmt.Errorf("creating pods with %s: %w", backstopName(size), err)
			}
			rates[i] = append(rates[i], float64(len(took))/elapsed.Seconds())
			latencies[i] = append(latencies[i], took...)
		}
	}
	out := make([]creation, len(backstopSizes))
	for i, size := range backstopSizes {
		out[i] = creation{
			Server: backstopName(size), Pods: len(latencies[i]), CreatesPerSecond: median(rates[i]), Rates: rates[i],
			P50Millis: millis(percentile(latencies[i], 50)), P99Millis: millis(percentile(latencies[i], 99)),
		}
	}
	return out, nil
}

// typicalRefusal is part of what the policy says.
const typicalRefusal = "Sallyport did not answer"

// installBackstop returns when the policy refuses the pod as it is.
func (cp *controlPlane) installBackstop(ctx context.Context, podDefaults int, refused *corev1.Pod) (remove func() error, err error) {
	all, err := manyPodDefaults(podDefaults)
	if err != nil {
		return nil, err
	}
	var entries []*backstop.Entry
	for _, pd := range all {
		entries = append(entries, backstop.NewEntry(plan.Compile(pd)))
	}
	index := backstop.Compile(entries)
	body, err := json.Marshal(index.Template(namespace))
	if err != nil {
		return nil, err
	}
	_, err = cp.clients.CoreV1().PodTemplates(namespace).
		Patch(ctx, backstop.TemplateName, types.ApplyYAMLPatchType, body, metav1.PatchOptions{FieldManager: "bench", Force: new(true)})
	if err != nil {
		return nil, err
	}
	policy, binding, err := backstopObjects()
	if err != nil {
		return nil, err
	}
	api := cp.clients.AdmissionregistrationV1()
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	probe := func(refusal bool) error {
		return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			pod := refused.DeepCopy()
			pod.Name, pod.GenerateName = "", "probe-"
			_, err := cp.clients.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if refusal { // and not because the API server does not know the kind yet
				return err != nil && strings.Contains(err.Error(), typicalRefusal), nil
			}
			return err == nil, nil
		})
	}
	return func() error {
		err := errors.Join(api.ValidatingAdmissionPolicyBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}),
			api.ValidatingAdmissionPolicies().Delete(ctx, policy.Name, metav1.DeleteOptions{}))
		if err != nil {
			return err
		}
		return probe(false)
	}, probe(true)
}

// backstopObjects are those that a server would register for the namespace.
func backstopObjects() (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	webhook, err := poddefault.New(source.NewIndex(), poddefault.DefaultSettings())
	if err != nil {
		return nil, nil, err
	}
	webhook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	webhook.Backstop = backstop.New(nil)
	config := registrations.Config{Name: "bench.sallyport.io", Endpoint: registrations.Endpoint{URL: "https://127.0.0.1"}}
	objects, err := registrations.Manifests(config, []admission.Webhook{webhook}, nil)
	if err != nil {
		return nil, nil, err
	}
	policy, okPolicy := find[*admissionregistrationv1.ValidatingAdmissionPolicy](objects)
	binding, okBinding := find[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](objects)
	if !okPolicy || !okBinding {
		return nil, nil, errors.New("the webhook has no policy")
	}
	return policy, binding, nil
}

func find[T runtime.Object](objects []runtime.Object) (T, bool) {
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			return typed, true
		}
	}
	var none T
	return none, false
}

// backstopCost is how many times faster pods are created in one case than in another.
func backstopCost(without, with int) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		var a, b float64
		for _, c := range r.Backstop {
			switch c.Server {
			case backstopName(without):
				a = c.CreatesPerSecond
			case backstopName(with):
				b = c.CreatesPerSecond
			}
		}
		if a == 0 || b == 0 {
			return 0, false
		}
		return a / b, true
	}
}
