// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/internal/cli"
)

// pageSize is how many objects are asked for at once.
const pageSize = 500

// clusterFlags say which cluster is meant and which namespace, as kubectl's do.
type clusterFlags struct {
	clusterOptions
	namespace string
}

func (f *clusterFlags) addFlags(cmd *cobra.Command) {
	f.clusterOptions.addFlags(cmd)
	addFlagGroup(cmd, "Cluster", func() {
		cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "`namespace` that is looked at; empty for that of the context")
	})
	_ = cmd.RegisterFlagCompletionFunc("namespace", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return f.complete(cmd, "/api/v1/namespaces"), cobra.ShellCompDirectiveNoFileComp
	})
}

// complete lists names for a shell; none if that takes long.
func (f *clusterFlags) complete(cmd *cobra.Command, path string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	c, err := f.open()
	if err != nil {
		return nil
	}
	objects, err := c.list(ctx, path)
	if err != nil {
		return nil
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.Name)
	}
	return names
}

// cluster is read from, and never written to.
type cluster struct {
	config    *rest.Config
	client    rest.Interface
	namespace string
}

func (f *clusterFlags) open() (*cluster, error) {
	config, err := f.clientConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := f.loader().Namespace()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &cluster{config: config, client: clients.Discovery().RESTClient(), namespace: cmp.Or(f.namespace, namespace)}, nil
}

// answer is what was answered. The error has the API server's words.
func answer(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil { // that of Raw would be "unknown"
		return nil, err
	}
	return result.Raw()
}

// get reads one object.
func (c *cluster) get(ctx context.Context, path string) (*object, error) {
	raw, err := answer(c.client.Get().AbsPath(path).Do(ctx))
	if err != nil {
		return nil, err
	}
	objects, err := asObjects(&document{json: true, raw: raw}, "", raw, metav1.TypeMeta{})
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s is a list", path)
	}
	return objects[0], nil
}

// getNamed is [cluster.get] for what a person has named.
func (c *cluster) getNamed(ctx context.Context, collection, kind, name string) (*object, error) {
	o, err := c.get(ctx, collection+"/"+name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s %s in the namespace %s: see --namespace and --context", kind, name, c.namespace)
	case err != nil:
		return nil, fmt.Errorf("%s %s: %w", kind, name, err)
	}
	return o, nil
}

// list reads all objects of a collection, page by page.
func (c *cluster) list(ctx context.Context, path string) ([]*object, error) {
	var all []*object
	for next := ""; ; {
		raw, err := answer(c.client.Get().AbsPath(path).Param("limit", strconv.Itoa(pageSize)).Param("continue", next).Do(ctx))
		if err != nil {
			return nil, err
		}
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		objects, err := asObjects(&document{json: true, raw: raw}, "", raw, metav1.TypeMeta{})
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
		if next = page.Metadata.Continue; next == "" {
			return all, nil
		}
	}
}

// listIfAllowed is [cluster.list] for what may be left out: that the user must not read,
// or the cluster does not have. It says so; hidden is set for the former.
func (c *cluster) listIfAllowed(ctx context.Context, what, path string, notes io.Writer) (objects []*object, hidden bool, err error) {
	objects, err = c.list(ctx, path)
	switch {
	case apierrors.IsForbidden(err):
		note(notes, "note: you may not list %s: they are left out", what)
		return nil, true, nil
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("list %s: %w", what, err)
	}
	return objects, false, nil
}

// parseNamed reads TYPE/NAME, or TYPE and NAME.
func parseNamed(args []string) (word, name string, err error) {
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

// workload reads what TYPE/NAME means.
func (c *cluster) workload(ctx context.Context, args []string) (*object, error) {
	word, name, err := parseNamed(args)
	if err != nil {
		return nil, err
	}
	var kinds []string
	for _, k := range workloadKinds {
		if k.named(word) {
			return c.getNamed(ctx, k.path(c.namespace), strings.ToLower(k.kind), name)
		}
		kinds = append(kinds, strings.ToLower(k.kind))
	}
	return nil, fmt.Errorf("type %q: choose %s; of others send the object: kubectl get %s/%s -o yaml | sallyport explain -f -",
		word, cli.OneOf(kinds), word, name)
}

// completeWorkloads offers TYPE/ and, behind it, names of the cluster.
func (f *clusterFlags) completeWorkloads(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	word, _, named := strings.Cut(typed, "/")
	var offered []string
	for _, k := range workloadKinds {
		if !named && strings.HasPrefix(strings.ToLower(k.kind), strings.ToLower(typed)) {
			offered = append(offered, strings.ToLower(k.kind)+"/")
		}
		if named && k.named(word) {
			c, err := f.open()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, name := range f.complete(cmd, k.path(c.namespace)) {
				offered = append(offered, word+"/"+name)
			}
		}
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if !named {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return offered, directive
}

// podsOf are the pods that an object makes, at least one.
func (c *cluster) podsOf(ctx context.Context, o *object) ([]*object, error) {
	pods, err := podsOf(o, c.namespace, c.find(ctx))
	if err == nil && len(pods) == 0 {
		err = fmt.Errorf("%s: %s: it makes no pods: it has no pod template", o.at(), o.title())
	}
	return pods, err
}

// find implements [finder] for what is in the cluster. What may not be read is not there.
func (c *cluster) find(ctx context.Context) finder {
	return func(apiVersion, kind, namespace, name string) (*object, error) {
		path := "/apis/" + apiVersion + "/"
		if namespace != "" {
			path += "namespaces/" + namespace + "/"
		}
		o, err := c.get(ctx, path+strings.ToLower(kind)+"s/"+name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		return o, err
	}
}

// controllerOf is who makes a pod; nil if nobody does.
func controllerOf(o *object) *metav1.OwnerReference {
	for i := range o.OwnerReferences {
		if owner := &o.OwnerReferences[i]; owner.Controller != nil && *owner.Controller {
			return owner
		}
	}
	return nil
}

// owner reads who makes a pod; nil if nobody does, or it cannot be read.
func (c *cluster) owner(ctx context.Context, o *object) (*object, error) {
	ref := controllerOf(o)
	if ref == nil {
		return nil, nil
	}
	for _, k := range workloadKinds {
		if k.kind != ref.Kind || k.group != ref.APIVersion {
			continue
		}
		owner, err := c.get(ctx, k.path(o.Namespace)+"/"+ref.Name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil, nil
		}
		return owner, err
	}
	return nil, nil
}

// errWhat is for commands that want either files or the name of an object.
func errWhat(files, args []string) error {
	switch {
	case len(files) > 0 && len(args) > 0:
		return errors.New("name an object or give files with -f, not both")
	case len(files) == 0 && len(args) == 0:
		return errors.New("name an object, for example pod/web-0, or give files with -f")
	}
	return nil
}
