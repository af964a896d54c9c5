// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/export"
)

// exportedName is the API server itself, with PodDefaults as policies.
const exportedName = "policies"

// measureExported creates notebook pods that one PodDefault selects: without a webhook, with
// sallyport, and with the policies that `sallyport export` prints. Turns
// alternate. Where the API server has no mutating policies in version v1, it measures nothing.
func measureExported(ctx context.Context, p schedule, site *site, sallyport target, podDefaults *v1alpha1.PodDefaultList) ([]creation, error) {
	pod, err := parsePod(notebookPodYAML, selecting)
	if err != nil {
		return nil, err
	}
	typical, err := typicalPodDefaults()
	if err != nil {
		return nil, err
	}
	var pds []*v1alpha1.PodDefault
	for i := range podDefaults.Items {
		pds = append(pds, &podDefaults.Items[i])
	}
	exported, err := export.Export(pds, poddefault.DefaultSettings())
	if err != nil {
		return nil, err
	}
	protocol, err := site.protocol(ctx, sallyport.server)
	if err != nil {
		return nil, err
	}
	rows := []creation{{}, {Server: sallyportName, Protocol: protocol}, {Server: exportedName, Protocol: "-"}}
	latencies := make([][]time.Duration, len(rows))
	for range p.CreateTurns {
		for i := range rows {
			var r *registration
			remove := func() error { return nil }
			switch rows[i].Server {
			case sallyportName:
				r = site.registration(sallyport, podDefaultPath)
			case exportedName:
				remove, err = site.cp.installExported(ctx, exported, pod, typical[0].Name)
				switch {
				case meta.IsNoMatchError(err):
					return nil, nil
				case err != nil:
					return nil, fmt.Errorf("installing the policies: %w", err)
				}
			}
			elapsed, took, err := site.cp.createPods(ctx, pod, p.Creates, creators, r, typical[0].Name, rows[i].Server != "")
			if err = errors.Join(err, remove()); err != nil {
				return nil, fmt.Errorf("creating pods with %q: %w", rows[i].Server, err)
			}
			rows[i].Pods += len(took)
			rows[i].Rates = append(rows[i].Rates, float64(len(took))/elapsed.Seconds())
			latencies[i] = append(latencies[i], took...)
		}
	}
	for i := range rows {
		rows[i].CreatesPerSecond = median(rows[i].Rates)
		rows[i].P50Millis, rows[i].P99Millis = millis(percentile(latencies[i], 50)), millis(percentile(latencies[i], 99))
	}
	return rows, nil
}

// installExported returns when the API server injects the PodDefault.
func (cp *controlPlane) installExported(ctx context.Context, exported *export.Exported, pod *corev1.Pod, podDefault string) (remove func() error, err error) {
	var objects []client.Object
	for _, o := range exported.Objects {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{Object: u}
		if _, err := cp.objects.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	for _, o := range objects {
		if err := cp.objects.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	probe := func(injected bool) error {
		return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			probe := pod.DeepCopy()
			probe.Name, probe.GenerateName = "", "probe-"
			created, err := cp.clients.CoreV1().Pods(namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return false, err
			}
			_, found := created.Annotations[markPrefix+podDefault]
			return found == injected, nil
		})
	}
	return func() error {
		for _, o := range objects {
			if err := cp.objects.Delete(ctx, o); err != nil {
				return err
			}
		}
		return probe(false)
	}, probe(true)
}

// exportCost is how many times faster pods are created with the webhook than with policies.
func exportCost(r *results) (float64, bool) {
	rates := map[string]float64{}
	for _, row := range r.Exported {
		rates[row.Server] = row.CreatesPerSecond
	}
	webhook, policies := rates[sallyportName], rates[exportedName]
	if webhook == 0 || policies == 0 {
		return 0, false
	}
	return webhook / policies, true
}
