// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

// Resource returns the resource of the revisions of objects in a namespace, or of
// ClusterPodDefaults.
func Resource(namespace string) string {
	if namespace == "" {
		return sallyportv1alpha1.ClusterPodDefaultRevisionResource
	}
	return sallyportv1alpha1.PodDefaultRevisionResource
}

// AllNamespaces stands for the revisions of the PodDefaults of all namespaces.
const AllNamespaces = "*"

// Path returns the path of the revisions of a namespace, of ClusterPodDefaults, or of
// [AllNamespaces].
func Path(namespace string) string {
	path := "/apis/" + sallyportv1alpha1.GroupVersion.String() + "/"
	if namespace != "" && namespace != AllNamespaces {
		path += "namespaces/" + namespace + "/"
	}
	return path + Resource(namespace)
}

// Client reads and writes revisions. Everything that it reads is proven.
type Client struct{ rest rest.Interface }

// NewClient returns a client on one for sallyport.io/v1alpha1.
func NewClient(client rest.Interface) *Client { return &Client{client} }

// pageSize limits what one response can have: a revision has up to a mebibyte.
const pageSize = 100

// EachOf calls visit with the revisions that the owner's labels select, of all owners of that name.
func (c *Client) EachOf(ctx context.Context, namespace, owner string, visit func(*Record)) error {
	return c.each(ctx, Path(namespace), SelectorOf(owner).String(), visit)
}

// EachStable calls visit with the stable revisions of a namespace, of ClusterPodDefaults, or of
// [AllNamespaces].
func (c *Client) EachStable(ctx context.Context, namespace string, visit func(*Record)) error {
	return c.each(ctx, Path(namespace), StableSelector, visit)
}

// EachIn calls visit with everything of the kind in a namespace, of ClusterPodDefaults, or of
// [AllNamespaces], whatever its labels.
func (c *Client) EachIn(ctx context.Context, namespace string, visit func(*Record)) error {
	return c.each(ctx, Path(namespace), "", visit)
}

// Each calls visit with all revisions of the cluster.
func (c *Client) Each(ctx context.Context, visit func(*Record)) error {
	for _, namespace := range []string{AllNamespaces, ""} {
		if err := c.each(ctx, Path(namespace), Selector, visit); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) each(ctx context.Context, path, selector string, visit func(*Record)) error {
	for next := ""; ; {
		request := c.rest.Get().AbsPath(path).Param("labelSelector", selector).Param("limit", strconv.Itoa(pageSize))
		var page struct {
			metav1.ListMeta `json:"metadata"`
			Items           []Object `json:"items"`
		}
		if next != "" {
			request.Param("continue", next)
		}
		raw, err := request.Do(ctx).Raw()
		if err == nil {
			err = json.Unmarshal(raw, &page)
		}
		if err != nil {
			return fmt.Errorf("list revisions: %w", err)
		}
		for i := range page.Items {
			visit(Prove(&page.Items[i]))
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// Get reads one revision.
func (c *Client) Get(ctx context.Context, is types.NamespacedName) (*Record, error) {
	return answer(c.rest.Get().NamespaceIfScoped(is.Namespace, is.Namespace != "").Resource(Resource(is.Namespace)).Name(is.Name).Do(ctx))
}

// Create creates a revision.
func (c *Client) Create(ctx context.Context, o *Object) (*Record, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return answer(c.rest.Post().NamespaceIfScoped(o.Namespace, o.Namespace != "").Resource(Resource(o.Namespace)).Body(body).Do(ctx))
}

// Change is a change of a revision.
type Change struct {
	Number int64 // 0: as it is
	Stable *bool // nil: as it is
	// Rollout replaces the state of the rollout; nil: as it is. One that names no revision
	// is no state.
	Rollout *sallyportv1alpha1.RevisionRollout
}

// Patch changes a revision, unless it has changed since it was read.
func (c *Client) Patch(ctx context.Context, r *Record, change Change) (*Record, error) {
	about := map[string]any{"uid": r.is.UID, "resourceVersion": r.is.ResourceVersion}
	patch := map[string]any{"metadata": about}
	if change.Number != 0 {
		patch["revision"] = change.Number
	}
	if change.Stable != nil {
		about["labels"] = map[string]any{StableLabel: nil}
		if *change.Stable {
			about["labels"] = map[string]any{StableLabel: "true"}
		}
	}
	if state := change.Rollout; state != nil && state.Revision == "" {
		patch["rollout"] = nil
	} else if state != nil { // a merge patch keeps what it does not name
		members := map[string]any{"revision": state.Revision, "step": state.Step, "stepStartTime": nil, "refused": nil}
		if state.StepStartTime != nil {
			members["stepStartTime"] = state.StepStartTime
		}
		if state.Refused != "" {
			members["refused"] = state.Refused
		}
		patch["rollout"] = members
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return answer(c.rest.Patch(types.MergePatchType).NamespaceIfScoped(r.is.Namespace, r.is.Namespace != "").
		Resource(Resource(r.is.Namespace)).Name(r.is.Name).Body(body).Do(ctx))
}

// Delete deletes a revision as it was read.
func (c *Client) Delete(ctx context.Context, r *Record) error {
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.is.UID, ResourceVersion: &r.is.ResourceVersion}}
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	return c.rest.Delete().NamespaceIfScoped(r.is.Namespace, r.is.Namespace != "").Resource(Resource(r.is.Namespace)).Name(r.is.Name).Body(body).Do(ctx).Error()
}

func answer(result rest.Result) (*Record, error) {
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	o := &Object{}
	if err := json.Unmarshal(raw, o); err != nil {
		return nil, err
	}
	return Prove(o), nil
}
