// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

// scalePod is one as a user of a namespace creates it.
func scalePod(namespace string, labels map[string]string) (*corev1.Pod, error) {
	pod, err := parsePod(minimalPodYAML, labels)
	if err != nil {
		return nil, err
	}
	pod.APIVersion, pod.Kind, pod.Namespace = "v1", "Pod", namespace
	return pod, nil
}

// podReview is the review of that pod's creation.
func podReview(namespace string, labels map[string]string) ([]byte, error) {
	pod, err := scalePod(namespace, labels)
	if err != nil {
		return nil, err
	}
	object, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	return json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "00000000-0000-4000-8000-000000000000", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: namespace, Name: pod.Name, Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: object},
		},
	})
}

// fillPods writes the pods of a large cluster to etcd, as sallyport makes them: each namespace has a StatefulSet whose
// pods its first PodDefault selects.
func (s *site) fillPods(ctx context.Context, p schedule, progress progress) (err error) {
	etcd, err := s.etcd()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	progress.sayf("writing %s pods to etcd", thousands(p.Scale.Pods))
	return s.with(ctx, sallyportName, func(srv *server) error {
		transport := &http.Transport{TLSClientConfig: s.trust()}
		defer transport.CloseIdleConnections()
		asking := &http.Client{Transport: transport}
		puts := &batch{etcd: etcd}
		for n := range p.Scale.Namespaces {
			name := scaleNamespace(n)
			pod, err := s.injected(ctx, asking, srv, name, map[string]string{fmt.Sprintf("use-team-%05d", n): "true", "app": "web"})
			if err != nil {
				return err
			}
			owner := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: metav1.ObjectMeta{
				Namespace: name, Name: "web", UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(),
			}, Spec: appsv1.StatefulSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}}},
			}}
			if err := puts.put(ctx, "/registry/statefulsets/"+name+"/web", owner); err != nil {
				return err
			}
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
			pod.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Second)) // after the PodDefaults
			pod.Status.Phase = corev1.PodRunning
			for i := n; i < p.Scale.Pods; i += p.Scale.Namespaces {
				pod.Name, pod.UID = fmt.Sprintf("web-%d", i/p.Scale.Namespaces), uuid.NewUUID()
				pod.Spec.NodeName = fmt.Sprintf("node-%d", i%1000)
				if err := puts.put(ctx, "/registry/pods/"+name+"/"+pod.Name, pod); err != nil {
					return err
				}
			}
		}
		return puts.commit(ctx)
	})
}

// injected is a pod as it is stored after sallyport has seen it.
func (s *site) injected(ctx context.Context, asking *http.Client, srv *server, namespace string, labels map[string]string) (*corev1.Pod, error) {
	body, err := podReview(namespace, labels)
	if err != nil {
		return nil, err
	}
	text, err := patchOf(ctx, asking, srv.url+podDefaultPath, body)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, fmt.Errorf("a pod of namespace %s is not injected: %w", namespace, err)
	}
	sent, err := scalePod(namespace, labels)
	if err != nil {
		return nil, err
	}
	object, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	patched, err := patch.Apply(object)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, json.Unmarshal(patched, pod)
}

// etcd is a client of the API server's store.
func (s *site) etcd() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{s.cp.EtcdURL}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
}

// A batch is puts of one transaction.
type batch struct {
	etcd *clientv3.Client
	ops  []clientv3.Op
}

// maxPuts is etcd's own limit for a transaction.
const maxPuts = 128

// put stores an object as the API server does.
func (b *batch) put(ctx context.Context, key string, object runtime.Object) error {
	var value bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &value); err != nil {
		return err
	}
	return b.putBytes(ctx, key, value.String())
}

func (b *batch) putBytes(ctx context.Context, key, value string) error {
	if b.ops = append(b.ops, clientv3.OpPut(key, value)); len(b.ops) < maxPuts {
		return nil
	}
	return b.commit(ctx)
}

func (b *batch) commit(ctx context.Context) error {
	if len(b.ops) == 0 {
		return nil
	}
	_, err := b.etcd.Txn(ctx).Then(b.ops...).Commit()
	b.ops = b.ops[:0]
	return err
}
