// SPDX-License-Identifier: Apache-2.0

// Package cluster reads objects of a cluster for command-line users, with the names
// that they use and as far as they may. It never writes.
package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/kube/workload"
)

// The limits of a list request. The API server takes less time for larger pages of metadata.
const (
	pageSize         = 500
	metadataPageSize = 2000
)

// A Cluster reads a cluster and never writes to it.
type Cluster struct {
	// Config and Client access it.
	Config *rest.Config
	Client kubernetes.Interface
	// Namespace is the default namespace of objects.
	Namespace string
}

// New returns a reader for a client configuration. It suppresses API warnings.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Config: config, Namespace: namespace, Client: clients}, nil
}

// answer returns the response. The error has the API server's message.
func answer(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil { // the error of Raw would be "unknown"
		return nil, err
	}
	return result.Raw()
}

// Get reads one object.
func (c *Cluster) Get(ctx context.Context, path string) (*manifest.Object, error) {
	raw, err := answer(c.Client.Discovery().RESTClient().Get().AbsPath(path).Do(ctx))
	if err != nil {
		return nil, err
	}
	objects, err := manifest.FromJSON(raw)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s is a list", path)
	}
	return objects[0], nil
}

// GetNamed is [Cluster.Get] for user input.
func (c *Cluster) GetNamed(ctx context.Context, collection, kind, name string) (*manifest.Object, error) {
	o, err := c.Get(ctx, collection+"/"+name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s %s in the namespace %s: see --namespace and --context", kind, name, c.Namespace)
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", kind, name, err)
	}
	return o, nil
}

// List reads all objects of a collection, page by page.
func (c *Cluster) List(ctx context.Context, path string) ([]*manifest.Object, error) {
	var all []*manifest.Object
	for next := ""; ; {
		raw, err := answer(c.Client.Discovery().RESTClient().Get().AbsPath(path).Param("limit", strconv.Itoa(pageSize)).Param("continue", next).Do(ctx))
		if err != nil {
			return nil, err
		}
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		objects, err := manifest.FromJSON(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

// ListIfAllowed is [Cluster.List] for optional kinds. It notes on notes if the user may
// not list them, and then sets hidden, or if the cluster does not have them.
func (c *Cluster) ListIfAllowed(ctx context.Context, what, path string, notes io.Writer) (objects []*manifest.Object, hidden bool, err error) {
	objects, err = c.List(ctx, path)
	switch {
	case apierrors.IsForbidden(err):
		manifest.Note(notes, "note: you may not list %s: they are left out", what)
		return nil, true, nil
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("list %s: %w", what, err)
	}
	return objects, false, nil
}

// ParseNamed parses TYPE/NAME, or TYPE and NAME.
func ParseNamed(args []string) (word, name string, err error) {
	if len(args) == 1 {
		var ok bool
		if word, name, ok = strings.Cut(args[0], "/"); ok && word != "" && name != "" && !strings.Contains(name, "/") {
			return word, name, nil
		}
	}
	if len(args) == 2 && args[0] != "" && args[1] != "" && !strings.Contains(args[0]+args[1], "/") {
		return args[0], args[1], nil
	}
	return "", "", fmt.Errorf("%q: write TYPE/NAME, for example pod/web-0", strings.Join(args, " "))
}

// Workload reads the object named TYPE/NAME.
func (c *Cluster) Workload(ctx context.Context, args []string) (*manifest.Object, error) {
	word, name, err := ParseNamed(args)
	if err != nil {
		return nil, err
	}
	var kinds []string
	for _, k := range workload.Kinds() {
		if k.Named(word) {
			return c.GetNamed(ctx, k.Path(c.Namespace), strings.ToLower(k.Name), name)
		}
		kinds = append(kinds, strings.ToLower(k.Name))
	}
	return nil, fmt.Errorf("type %q: choose one of %s; of others send the object: kubectl get %s/%s -o yaml | sallyport explain -f -",
		word, strings.Join(kinds, ", "), word, name)
}

// PodsOf returns the pods that an object creates, at least one.
func (c *Cluster) PodsOf(ctx context.Context, o *manifest.Object) ([]*workload.Pod, error) {
	pods, err := workload.PodsOf(o, c.Namespace, c.Find(ctx))
	if err == nil && len(pods) == 0 {
		err = o.ErrorAt("", o.Title()+": it makes no pods: it has no pod template")
	}
	return pods, err
}

// Find returns a [workload.Finder] for the cluster. Objects that may not be read count
// as missing.
func (c *Cluster) Find(ctx context.Context) workload.Finder {
	return func(apiVersion, kind, namespace, name string) (*manifest.Object, error) {
		path := "/apis/" + apiVersion + "/"
		if namespace != "" {
			path += "namespaces/" + namespace + "/"
		}
		o, err := c.Get(ctx, path+strings.ToLower(kind)+"s/"+name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		return o, err
	}
}

// ControllerOf returns the controller of a pod, or nil.
func ControllerOf(o *manifest.Object) *metav1.OwnerReference {
	for i := range o.OwnerReferences {
		if owner := &o.OwnerReferences[i]; owner.Controller != nil && *owner.Controller {
			return owner
		}
	}
	return nil
}

// Owner reads the controller of a pod. It returns nil if there is none or it cannot be
// read.
func (c *Cluster) Owner(ctx context.Context, o *manifest.Object) (*manifest.Object, error) {
	ref := ControllerOf(o)
	if ref == nil {
		return nil, nil
	}
	for _, k := range workload.Kinds() {
		if k.Name != ref.Kind || k.GroupVersion != ref.APIVersion {
			continue
		}
		owner, err := c.Get(ctx, k.Path(o.Namespace)+"/"+ref.Name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		return owner, err
	}
	return nil, nil
}

// Minor returns the N of Kubernetes 1.N, or 0 if the API server reports another form of
// version.
func (c *Cluster) Minor() (int, error) {
	info, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		return 0, fmt.Errorf("asking the API server for its version: %w", err)
	}
	version, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil || version.Major() != 1 {
		return 0, nil //nolint:nilerr // of a vendor's own numbers nothing follows
	}
	return int(version.Minor()), nil // it is small
}

// ReadNamespace reads a namespace.
func (c *Cluster) ReadNamespace(ctx context.Context, name string) (*manifest.Object, error) {
	namespace, err := c.Get(ctx, "/api/v1/namespaces/"+name)
	if err != nil {
		return nil, fmt.Errorf("read the namespace %s: %w", name, err)
	}
	return namespace, nil
}

// NamespaceLabels reads the labels of a namespace.
func (c *Cluster) NamespaceLabels(ctx context.Context, namespace string) (labels.Set, error) {
	ns, err := c.ReadNamespace(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return ns.Labels, nil
}

// Workloads lists the objects that create pods in a namespace, ordered by kind and
// name, without those created by others in the list. Unseen are the kinds that the user
// may not list.
func (c *Cluster) Workloads(ctx context.Context, namespace string, notes io.Writer) (out []*manifest.Object, unseen []string, err error) {
	var all []*manifest.Object
	kinds := workload.Kinds()
	for _, kind := range slices.Concat(kinds[1:], kinds[:1]) { // pods last
		// Other kinds are covered by the built-in objects that they create. A
		// PodTemplate creates no pods.
		if !kind.BuiltIn() || kind.Name == "PodTemplate" {
			continue
		}
		objects, hidden, err := c.ListIfAllowed(ctx, kind.Resource, kind.Path(namespace), notes)
		if err != nil {
			return nil, nil, err
		}
		if hidden {
			unseen = append(unseen, kind.Resource)
		}
		all = append(all, objects...)
	}
	there := map[string]bool{}
	for _, o := range all {
		there[string(o.UID)] = true
	}
	made := map[string]bool{} // owners of which one pod is already covered
	for _, o := range all {
		owner := ControllerOf(o)
		if owner != nil && there[string(owner.UID)] || finished(o) {
			continue
		}
		if owner != nil && o.Kind == "Pod" {
			if made[string(owner.UID)] {
				continue
			}
			made[string(owner.UID)] = true
		}
		out = append(out, o)
	}
	return out, unseen, nil
}

// finished reports whether a Job or pod creates no more pods.
func finished(o *manifest.Object) bool {
	var body struct {
		Status struct {
			Phase          corev1.PodPhase `json:"phase"`
			CompletionTime *string         `json:"completionTime"`
		} `json:"status"`
	}
	if json.Unmarshal(o.Raw, &body) != nil {
		return false
	}
	return body.Status.CompletionTime != nil || body.Status.Phase == corev1.PodSucceeded || body.Status.Phase == corev1.PodFailed
}
