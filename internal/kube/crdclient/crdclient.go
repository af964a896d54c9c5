// SPDX-License-Identifier: Apache-2.0

// Package crdclient reads and writes CustomResourceDefinitions. The typed client of
// apiextensions-apiserver does the same, but its scheme also has v1beta1, with 0.4 MB of
// methods in each program.
package crdclient

import (
	"cmp"
	"context"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsac "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// Interface has the methods that are used of apiextensions-apiserver's
// CustomResourceDefinitionInterface, which implements it, as its fakes do.
type Interface interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*apiextensionsv1.CustomResourceDefinition, error)
	List(ctx context.Context, options metav1.ListOptions) (*apiextensionsv1.CustomResourceDefinitionList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, patchType types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*apiextensionsv1.CustomResourceDefinition, error)
	Apply(ctx context.Context, definition *apiextensionsac.CustomResourceDefinitionApplyConfiguration, options metav1.ApplyOptions) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Client is a typed client. GetClient returns its REST client.
type Client = gentype.ClientWithListAndApply[*apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinitionList, *apiextensionsac.CustomResourceDefinitionApplyConfiguration]

// NewForConfig returns a client. It calls nobody.
func NewForConfig(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return NewForConfigAndClient(config, client)
}

// NewForConfigAndClient is [NewForConfig] with the connections of a client.
func NewForConfigAndClient(config *rest.Config, shared *http.Client) (*Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion) // what is not of the group, such as Status
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &apiextensionsv1.SchemeGroupVersion, "/apis"
	config.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme, serializer.NewCodecFactory(scheme)).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(config, shared)
	if err != nil {
		return nil, err
	}
	return gentype.NewClientWithListAndApply[*apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinitionList, *apiextensionsac.CustomResourceDefinitionApplyConfiguration](
		"customresourcedefinitions", client, runtime.NewParameterCodec(scheme), "",
		func() *apiextensionsv1.CustomResourceDefinition { return &apiextensionsv1.CustomResourceDefinition{} },
		func() *apiextensionsv1.CustomResourceDefinitionList {
			return &apiextensionsv1.CustomResourceDefinitionList{}
		},
		gentype.PrefersProtobuf[*apiextensionsv1.CustomResourceDefinition](),
	), nil
}
