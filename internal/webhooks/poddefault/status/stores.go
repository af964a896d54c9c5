// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

func podDefaultsOf(client rest.Interface) source {
	return of(client, kubeflowv1alpha1.PodDefaultResource, &kubeflowv1alpha1.PodDefault{}, func() runtime.Object { return &kubeflowv1alpha1.PodDefaultList{} })
}

func clusterPodDefaultsOf(client rest.Interface) source {
	return of(client, sallyportv1alpha1.ClusterPodDefaultResource, &sallyportv1alpha1.ClusterPodDefault{},
		func() runtime.Object { return &sallyportv1alpha1.ClusterPodDefaultList{} })
}

func of(client rest.Interface, resource string, example runtime.Object, list func() runtime.Object) source {
	return source{
		example: example,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			into := list()
			err := client.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(into)
			return into, err
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return client.Get().Resource(resource).VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
		},
	}
}

// podDefaultStore is what the reflectors of PodDefaults and of ClusterPodDefaults write
// to.
type podDefaultStore struct {
	epoch   *epoch
	cluster bool
}

func (s *podDefaultStore) read(obj any) (*object, error) {
	switch pd := obj.(type) {
	case *kubeflowv1alpha1.PodDefault:
		return fromPodDefault(pd), nil
	case *sallyportv1alpha1.ClusterPodDefault:
		return fromClusterPodDefault(pd), nil
	}
	return nil, fmt.Errorf("expected a PodDefault or a ClusterPodDefault, got %T", obj)
}

func (s *podDefaultStore) Add(obj any) error {
	o, err := s.read(obj)
	if err == nil {
		s.epoch.set(o)
	}
	return err
}

func (s *podDefaultStore) Update(obj any) error { return s.Add(obj) }

func (s *podDefaultStore) Delete(obj any) error {
	o, err := s.read(obj)
	if err == nil {
		s.epoch.remove(o.key)
	}
	return err
}

func (s *podDefaultStore) Replace(objects []any, _ string) error {
	all := make([]*object, 0, len(objects))
	for _, obj := range objects {
		o, err := s.read(obj)
		if err != nil {
			return err
		}
		all = append(all, o)
	}
	s.epoch.replace(all, s.cluster)
	return nil
}

func (s *podDefaultStore) Resync() error { return nil }

// namespaceStore is what the reflector of namespaces writes to.
type namespaceStore struct{ epoch *epoch }

func (s *namespaceStore) Add(obj any) error {
	namespace, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("expected the metadata of a namespace, got %T", obj)
	}
	set := labels.Set(namespace.Labels)
	if set == nil {
		set = labels.Set{}
	}
	s.epoch.setNamespace(namespace.Name, set)
	return nil
}

func (s *namespaceStore) Update(obj any) error { return s.Add(obj) }

func (s *namespaceStore) Delete(obj any) error {
	namespace, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("expected the metadata of a namespace, got %T", obj)
	}
	s.epoch.setNamespace(namespace.Name, nil)
	return nil
}

func (s *namespaceStore) Replace(objects []any, _ string) error {
	there := map[string]bool{}
	for _, obj := range objects {
		if err := s.Add(obj); err != nil {
			return err
		}
		there[obj.(*metav1.PartialObjectMetadata).Name] = true
	}
	for _, name := range s.epoch.namespaceNames() {
		if !there[name] {
			s.epoch.setNamespace(name, nil)
		}
	}
	return nil
}

func (s *namespaceStore) Resync() error { return nil }

var (
	_ cache.ReflectorStore = (*podDefaultStore)(nil)
	_ cache.ReflectorStore = (*namespaceStore)(nil)
)

// patchStatus writes a status, unless the object has changed meanwhile: what is said of
// it would not be about what it is. It returns the resourceVersion after that.
func (c *Controller) patchStatus(ctx context.Context, o *object, status *kubeflowv1alpha1.PodDefaultStatus) (string, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": o.resourceVersion, "uid": o.uid},
		"status":   status,
	})
	if err != nil {
		return "", err
	}
	client, resource := c.client, kubeflowv1alpha1.PodDefaultResource
	if o.namespace == "" {
		client, resource = c.cluster, sallyportv1alpha1.ClusterPodDefaultResource
	}
	raw, err := client.Patch(types.MergePatchType).NamespaceIfScoped(o.namespace, o.namespace != "").
		Resource(resource).Name(o.name).SubResource("status").Body(patch).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var written metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &written); err != nil {
		return "", err
	}
	return written.ResourceVersion, nil
}
