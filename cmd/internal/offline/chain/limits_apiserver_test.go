// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/lab"
)

// TestLimitRangesGiveAndRefuseWhatTheyDoOnARealAPIServer draws LimitRanges, and pods for each.
func TestLimitRangesGiveAndRefuseWhatTheyDoOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(*seed, 47)) // to be repeatable
	quantities := func(chance float64) string {
		var out []string
		for _, name := range []string{"cpu", "memory"} {
			if random.Float64() < chance {
				out = append(out, fmt.Sprintf("%s: %d00%s", name, 1+random.IntN(8), map[string]string{"cpu": "m"}[name]))
			}
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	counts := map[string]int{}
	for range 12 {
		namespace := lab.Namespace(t, config)
		var items []string
		if random.IntN(4) > 0 {
			items = append(items, fmt.Sprintf("{type: Container, default: %s, defaultRequest: {cpu: 100m}, max: {cpu: 900m}, min: {cpu: %d00m}}", quantities(0.6), random.IntN(2)))
		}
		if random.IntN(2) > 0 || items == nil {
			items = append(items, fmt.Sprintf("{type: Pod, max: {cpu: %d500m}, min: {cpu: 150m}, maxLimitRequestRatio: {%s: 4}}", 1+random.IntN(2), []string{"cpu", "memory"}[random.IntN(2)]))
		}
		text := fmt.Sprintf("{apiVersion: v1, kind: LimitRange, metadata: {name: range, namespace: %s}, spec: {limits: [%s]}}", namespace, strings.Join(items, ", "))
		objects, _, err := manifest.Parse("with.yaml", []byte(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}\n---\n%s", namespace, text)))
		if err != nil {
			t.Fatal(err)
		}
		limits := &corev1.LimitRange{}
		if err := objects[1].Decode(limits); err != nil {
			t.Fatal(err)
		}
		if _, err := clients.CoreV1().LimitRanges(namespace).Create(t.Context(), limits, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for range 12 {
			containers := map[string][]string{}
			for i, kind := range []string{"containers", "containers", "initContainers", "initContainers"} {
				if random.IntN(2) == 0 || i == 0 {
					more := ""
					if i == 3 {
						more = ", restartPolicy: Always"
					}
					containers[kind] = append(containers[kind], fmt.Sprintf("{name: c%d, image: i, resources: {limits: %s, requests: %s}%s}", i, quantities(0.2), quantities(0.2), more))
				}
			}
			about := fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [%s], initContainers: [%s]}}", strings.Join(containers["containers"], ", "), strings.Join(containers["initContainers"], ", "))
			r := run(t, objects, about, func(r *chain.Run) { r.Request.Namespace = namespace })
			got, err := r.Do(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sent := &corev1.Pod{}
			if err := json.Unmarshal(r.Request.Object.Raw, sent); err != nil {
				t.Fatal(err)
			}
			stored, refused := clients.CoreV1().Pods(namespace).Create(t.Context(), sent, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if (got.Denied == nil) != (refused == nil) || len(got.Unknown) > 0 {
				t.Errorf("%s\n%s\nhere: %+v, unknown: %q; the API server: %v", text, about, got.Denied, got.Unknown, refused)
				continue
			}
			if refused != nil {
				counts["refused"]++
				continue
			}
			counts["accepted"]++
			here := &corev1.Pod{}
			raw, err := json.Marshal(got.Object)
			if err == nil {
				err = json.Unmarshal(raw, here)
			}
			if err != nil {
				t.Fatal(err)
			}
			parts := func(pod *corev1.Pod) any { return []any{pod.Annotations, pod.Spec.Containers, pod.Spec.InitContainers} }
			if diff := cmp.Diff(parts(stored), parts(here), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s\n%s", text, about, diff)
			}
		}
	}
	t.Log(counts)
	if counts["accepted"] < 10 || counts["refused"] < 10 {
		t.Errorf("they are not what they were meant to be: %v", counts)
	}
}
