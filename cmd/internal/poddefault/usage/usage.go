// SPDX-License-Identifier: Apache-2.0

// Package usage asks the API server whether pods may use the PodDefaults that select them.
//
// Whoever may create a pod chooses its labels, and so the PodDefaults that it gets. With the
// setting usage: Check, the pod's ServiceAccount needs the verb use on each PodDefault that
// brings Secrets, ConfigMaps or a ServiceAccount. The right to a ClusterPodDefault counts only
// if it is granted for the cluster: the owner of a namespace could grant any within it.
package usage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
)

// Verb is the verb that a ServiceAccount needs.
const Verb = "use"

// Authorizer reports whether a user has access to a resource. An error is no answer.
type Authorizer interface {
	May(ctx context.Context, user *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (allowed bool, reason string, err error)
}

const (
	// remembered is how long an answer holds, as for Kubernetes' own delegated
	// authorization (k8s.io/apiserver, DelegatingAuthorizationOptions).
	remembered = 10 * time.Second
	// maxReview bounds a review that several calls wait for.
	maxReview = 10 * time.Second
	// atOnce bounds the reviews for one pod that run at the same time.
	atOnce = 8
	// Answers that are kept for one namespace, and in all.
	maxInNamespace = 1_000
	maxAnswers     = 20_000
)

// Checker implements [use.Asker]. It is safe for concurrent use.
type Checker struct {
	authorizer Authorizer
	now        func() time.Time
	flights    singleflight.Group

	mu      sync.Mutex
	answers map[string]map[question]answer // by namespace
	size    int
}

// New returns a checker without answers.
func New(authorizer Authorizer) *Checker {
	return &Checker{authorizer: authorizer, now: time.Now, answers: map[string]map[question]answer{}}
}

// A question is whether a ServiceAccount may use an object.
type question struct{ account, object string }

type answer struct {
	allowed bool
	until   time.Time
}

// MayNot implements [use.Asker].
func (c *Checker) MayNot(ctx context.Context, namespace, account string, objects []*plan.Plan) ([]*plan.Plan, error) {
	allowed := make([]bool, len(objects))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, object := range objects {
		if known, ok := c.known(namespace, question{account, object.String()}); ok {
			allowed[i] = known
			continue
		}
		group.Go(func() (err error) {
			allowed[i], err = c.ask(within, namespace, account, object)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, admission.Unavailable(fmt.Errorf("asking whether the ServiceAccount %s/%s may use PodDefaults: %w", namespace, account, err), time.Second)
	}
	var denied []*plan.Plan
	for i, object := range objects {
		if !allowed[i] {
			denied = append(denied, object)
		}
	}
	return denied, nil
}

// ask asks the API server once for all calls that want to know the same.
func (c *Checker) ask(ctx context.Context, namespace, account string, object *plan.Plan) (bool, error) {
	q := question{account, object.String()}
	result := c.flights.DoChan(namespace+"\n"+q.account+"\n"+q.object, func() (any, error) {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxReview)
		defer cancel()
		allowed, _, err := c.authorizer.May(within, userOf(namespace, account), access(object))
		if err != nil {
			return false, err
		}
		c.remember(namespace, q, allowed)
		return allowed, nil
	})
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case r := <-result:
		if r.Err != nil {
			return false, r.Err
		}
		return r.Val.(bool), nil
	}
}

func userOf(namespace, account string) *authenticationv1.UserInfo {
	return &authenticationv1.UserInfo{
		Username: "system:serviceaccount:" + namespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

func access(object *plan.Plan) *authorizationv1.ResourceAttributes {
	out := &authorizationv1.ResourceAttributes{
		Verb: Verb, Group: kubeflowv1alpha1.GroupName, Version: kubeflowv1alpha1.Version, Resource: kubeflowv1alpha1.PodDefaultResource,
		Namespace: object.Namespace(), Name: object.Name(),
	}
	if object.Cluster() {
		out.Group, out.Version, out.Resource = sallyportv1alpha1.GroupName, sallyportv1alpha1.Version, sallyportv1alpha1.ClusterPodDefaultResource
	}
	return out
}

func (c *Checker) known(namespace string, q question) (allowed, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers[namespace][q]
	if !ok || !c.now().Before(a.until) {
		return false, false
	}
	return a.allowed, true
}

// remember keeps an answer. A namespace with too many loses its own, and if all have too
// many, all are asked again: whoever fills one namespace forgets nobody else's.
func (c *Checker) remember(namespace string, q question, allowed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.answers[namespace]
	if _, there := of[q]; !there {
		if len(of) >= maxInNamespace {
			c.size -= len(of)
			of = nil
		}
		if c.size >= maxAnswers {
			clear(c.answers)
			c.size, of = 0, nil
		}
		if of == nil {
			of = map[question]answer{}
			c.answers[namespace] = of
		}
		c.size++
	}
	of[q] = answer{allowed, c.now().Add(remembered)}
}
