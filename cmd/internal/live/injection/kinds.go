// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// A Kind is that of PodDefaults or ClusterPodDefaults.
type Kind struct {
	// Words name the kind in arguments, as kubectl takes them; the first is for messages.
	Words     []string
	ofCluster bool
}

// Path is the path of the collection; the namespace is for PodDefaults.
func (k Kind) Path(namespace string) string { return CollectionOf(k.ofCluster, namespace) }

var kinds = []Kind{
	{[]string{"poddefault", "poddefaults", "poddefaults." + kubeflowv1alpha1.GroupName}, false},
	{[]string{"clusterpoddefault", "clusterpoddefaults", "clusterpoddefaults." + sallyportv1alpha1.GroupName}, true},
}

// newVersion is the resourceVersion of an object that is not in the cluster yet.
const newVersion = "new"

// Kinds returns the kinds that can be named.
func Kinds() []Kind { return kinds }

// kindOf returns the kind of a word, or nil.
func kindOf(word string) *Kind {
	if i := slices.IndexFunc(kinds, func(k Kind) bool { return slices.Contains(k.Words, strings.ToLower(word)) }); i >= 0 {
		return &kinds[i]
	}
	return nil
}

// Named reads the object that arguments name as TYPE/NAME or TYPE NAME.
func Named(ctx context.Context, c *cluster.Cluster, args []string) (*manifest.Object, error) {
	word, name, err := cluster.ParseNamed(args)
	if err != nil {
		return nil, err
	}
	if kind := kindOf(word); kind != nil {
		return c.GetNamed(ctx, kind.Path(c.Namespace), kind.Words[0], name)
	}
	return nil, fmt.Errorf("type %q: choose poddefault or clusterpoddefault", word)
}

// ParseRevised parses TYPE/NAME, or NAME for a PodDefault.
func ParseRevised(text string) (name string, ofCluster bool, err error) {
	word, name, found := strings.Cut(text, "/")
	if !found {
		word, name = kinds[0].Words[0], text
	}
	kind := kindOf(word)
	if kind == nil || name == "" || strings.Contains(name, "/") {
		return "", false, fmt.Errorf("%q: expected poddefault/NAME or clusterpoddefault/NAME", text)
	}
	return name, kind.ofCluster, nil
}

// CollectionOf returns the path of all objects of the kind: of PodDefaults those of the namespace, or of all
// namespaces if it is empty.
func CollectionOf(ofCluster bool, namespace string) string {
	switch {
	case ofCluster:
		return "/apis/" + sallyportv1alpha1.GroupVersion.String() + "/" + sallyportv1alpha1.ClusterPodDefaultResource
	case namespace == "":
		return "/apis/" + kubeflowv1alpha1.GroupVersion.String() + "/" + kubeflowv1alpha1.PodDefaultResource
	}
	return "/apis/" + kubeflowv1alpha1.GroupVersion.String() + "/namespaces/" + namespace + "/" + kubeflowv1alpha1.PodDefaultResource
}
