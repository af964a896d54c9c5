// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// RunningPods is the field selector of pods that have not ended.
const RunningPods = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// Pod is the cached part of a pod: 20,000 of them take about 15 MiB.
type Pod struct {
	types.NamespacedName
	UID             types.UID
	ResourceVersion string
	Facts           Facts
	Workload        string // shared, too
	created         int64  // in seconds
	Terminating     bool
	Excluded        bool // by the function for [Pods]
}

// Identity implements [Object].
func (p *Pod) Identity() Identity { return Identity{p.NamespacedName, p.UID, p.ResourceVersion} }

// Created returns when the pod was created, to the second.
func (p *Pod) Created() time.Time { return time.Unix(p.created, 0) }

// Facts are the labels and the requested annotations of pods. Pods with equal facts share
// them in memory, and the facts are comparable.
type Facts struct{ text unique.Handle[string] }

type facts struct {
	Labels      map[string]string `json:"l,omitempty"`
	Annotations map[string]string `json:"a,omitempty"`
}

// NewFacts returns facts with these labels and annotations.
func NewFacts(labels, annotations map[string]string) Facts {
	text, _ := json.Marshal(facts{labels, annotations}) // strings can be encoded; maps are sorted
	return Facts{unique.Make(string(text))}
}

// Read returns the labels and annotations.
func (f Facts) Read() (labels, annotations map[string]string) {
	var out facts
	_ = json.Unmarshal([]byte(f.text.Value()), &out) // encoded by NewFacts
	return out.Labels, out.Annotations
}

// Pods returns a store of all pods that have not ended, with the annotations that the
// caller asks for, the name that it gives their workloads, and whether it excludes them; excluded may be nil. It is not one of [Factory]: no review needs it, and a server that may
// not read pods only lacks what is derived from them.
func Pods(config *rest.Config, logger *slog.Logger, annotation func(key string) bool, workload func(*metav1.ObjectMeta) string, excluded func(*corev1.Pod) bool) (*Store[*Pod], error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for pods: %w", err)
	}
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return New(Kind[*corev1.Pod, *Pod]{
		Name: "pods", Example: &corev1.Pod{}, Longest: time.Minute,
		From: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.FieldSelector = RunningPods
				return pods.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = RunningPods
				return pods.Watch(ctx, options)
			},
		},
		Keep: func(from *corev1.Pod) *Pod {
			annotations := maps.Clone(from.Annotations)
			maps.DeleteFunc(annotations, func(key, _ string) bool { return !annotation(key) })
			return &Pod{
				NamespacedName: types.NamespacedName{Namespace: from.Namespace, Name: from.Name},
				UID:            from.UID, ResourceVersion: from.ResourceVersion, created: from.CreationTimestamp.Unix(),
				Facts: NewFacts(from.Labels, annotations), Workload: unique.Make(workload(&from.ObjectMeta)).Value(), Terminating: from.DeletionTimestamp != nil,
				Excluded: excluded != nil && excluded(from),
			}
		},
	}, logger), nil
}
