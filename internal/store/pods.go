// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/internal/json/decode"
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
// caller asks for, the name that it gives their workloads, and whether it excludes them. Excluded may be nil; then
// nothing but metadata is read. It is not one of [Factory]: no review needs it, and a server that may
// not read pods only lacks what is derived from them.
func Pods(config *rest.Config, logger *slog.Logger, annotation func(key string) bool, workload func(*metav1.ObjectMeta) string, excluded func(*corev1.Pod) bool) (*Store[*Pod], error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for pods: %w", err)
	}
	about, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for the metadata of pods: %w", err)
	}
	keep := func(from *metav1.ObjectMeta) *Pod {
		annotations := maps.Clone(from.Annotations)
		maps.DeleteFunc(annotations, func(key, _ string) bool { return !annotation(key) })
		return &Pod{
			NamespacedName: types.NamespacedName{Namespace: from.Namespace, Name: from.Name},
			UID:            from.UID, ResourceVersion: from.ResourceVersion, created: from.CreationTimestamp.Unix(),
			Facts: NewFacts(from.Labels, annotations), Workload: unique.Make(workload(from)).Value(), Terminating: from.DeletionTimestamp != nil,
		}
	}
	if excluded == nil {
		watched := about.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
		return New(Kind[*metav1.PartialObjectMetadata, *Pod]{
			Name: "pods", Example: &metav1.PartialObjectMetadata{}, Longest: time.Minute,
			From: podSource(client, listMetadata, func() protobufObject { return &metav1.PartialObjectMetadata{} }, watched.Watch),
			Keep: func(from *metav1.PartialObjectMetadata) *Pod { return keep(&from.ObjectMeta) },
		}, logger), nil
	}
	return New(Kind[*corev1.Pod, *Pod]{
		Name: "pods", Example: &corev1.Pod{}, Longest: time.Minute,
		From: podSource(client, config.AcceptContentTypes, func() protobufObject { return &corev1.Pod{} }, client.CoreV1().Pods(metav1.NamespaceAll).Watch),
		Keep: func(from *corev1.Pod) *Pod {
			pod := keep(&from.ObjectMeta)
			pod.Excluded = excluded(from)
			return pod
		},
	}, logger), nil
}

// listMetadata asks for a list of metadata.
const listMetadata = runtime.ContentTypeProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," + runtime.ContentTypeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// protobufObject is an object with its own decoder.
type protobufObject interface {
	runtime.Object
	Unmarshal(raw []byte) error
}

// podSource lists and watches running pods, of which the API server sends what accept says.
func podSource(client kubernetes.Interface, accept string, empty func() protobufObject, follow func(context.Context, metav1.ListOptions) (watch.Interface, error)) cache.ListerWatcher {
	typ := decode.For(reflect.TypeOf(empty()).Elem())
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector, options.Limit = RunningPods, 0
			request := client.CoreV1().RESTClient().Get().Resource("pods").VersionedParams(&options, scheme.ParameterCodec).SetHeader("Accept", accept)
			return stream(ctx, request, "pods", func(raw []byte, protobuf bool) (runtime.Object, error) {
				if !protobuf {
					return decodeItem(typ, raw)
				}
				object := empty()
				return object, object.Unmarshal(raw)
			})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = RunningPods
			return follow(ctx, options)
		},
	}
}
