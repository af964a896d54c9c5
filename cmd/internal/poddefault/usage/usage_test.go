// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/use"
)

// authorizer answers by the user and the name of the object.
type authorizer struct {
	mu      sync.Mutex
	allows  map[string]bool
	err     error
	asked   []authorizationv1.ResourceAttributes
	waiting chan struct{} // until it is closed; nil: no longer
}

func (a *authorizer) May(ctx context.Context, user *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (bool, string, error) {
	if a.waiting != nil {
		select {
		case <-a.waiting:
		case <-ctx.Done():
			return false, "", ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, *access)
	return a.allows[user.Username+" "+access.Name], "", a.err
}

func podDefault(t *testing.T, name, spec string) *plan.Plan {
	t.Helper()
	pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: "u", ResourceVersion: "7"}}
	if err := yaml.UnmarshalStrict([]byte("{selector: {}, "+spec+"}"), &pd.Spec); err != nil {
		t.Fatal(err)
	}
	return plan.Compile(pd)
}

// review asks the webhook with usage: Check.
func review(t *testing.T, checker use.Asker, spec string, objects ...*plan.Plan) (*admission.Response, error) {
	t.Helper()
	index := source.NewIndex()
	index.SetNamespace("team-a", nil)
	for _, c := range objects {
		index.Set(c)
	}
	settings := poddefault.DefaultSettings()
	settings.Usage = poddefault.UsageCheck
	webhook, err := poddefault.New(index, settings, poddefault.WithUsage(checker))
	if err != nil {
		t.Fatal(err)
	}
	req := &admissionv1.AdmissionRequest{UID: "u", Namespace: "team-a", Operation: admissionv1.Create, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}}
	req.Object.Raw = []byte(`{"metadata":{"name":"p"},"spec":{` + spec + `"containers":[{"name":"main","image":"i"}]}}`)
	return webhook.Handler.Handle(t.Context(), req)
}

const secret = "envFrom: [{secretRef: {name: s}}]"

func TestPodsUseWhatTheirServiceAccountMay(t *testing.T) {
	a := &authorizer{allows: map[string]bool{"system:serviceaccount:team-a:default credentials": true, "system:serviceaccount:team-a:ci other": true}}
	for _, tc := range []struct {
		what, pod, name, spec, denied string
	}{
		{what: "the default account, which may", name: "credentials", spec: secret},
		{what: "the default account, which may not", name: "other", spec: secret, denied: "kubectl auth can-i use poddefaults.kubeflow.org/other -n team-a --as system:serviceaccount:team-a:default"},
		{what: "another account, which may", pod: `"serviceAccountName":"ci",`, name: "other", spec: secret},
		{what: "another account, which may not", pod: `"serviceAccountName":"ci",`, name: "credentials", spec: secret, denied: "team-a/ci may not use it"},
		{what: "nothing that needs a right", name: "plain", spec: "env: [{name: A, value: secret}], labels: {secret: x}, volumes: [{name: secret, emptyDir: {}}]"},
		{what: "an account that the PodDefault sets does not count", name: "sets", spec: "serviceAccountName: ci", denied: "team-a/default may not use it"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			resp, err := review(t, New(a), tc.pod, podDefault(t, tc.name, tc.spec))
			switch {
			case err != nil:
				t.Fatal(err)
			case tc.denied == "" && (!resp.Allowed || len(resp.Patch) == 0):
				t.Errorf("not applied: %+v", resp)
			case tc.denied != "" && (resp.Allowed || !strings.Contains(resp.Status.Message, tc.denied)):
				t.Errorf("%v: %+v", resp.Allowed, resp.Status)
			}
		})
	}
}

func TestEveryReferenceNeedsTheRight(t *testing.T) {
	for _, spec := range []string{
		secret, "envFrom: [{configMapRef: {name: c}}]", "env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]", "env: [{name: A, valueFrom: {configMapKeyRef: {name: s, key: k}}}]",
		"volumes: [{name: v, secret: {secretName: s}}]", "volumes: [{name: v, configMap: {name: c}}]", "volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}]",
		"volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]", "volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: s}}}]",
		"imagePullSecrets: [{name: s}]", "serviceAccountName: x", "sidecars: [{name: s, image: i, envFrom: [{secretRef: {name: s}}]}]",
		"initContainers: [{name: s, image: i, env: [{name: A, valueFrom: {configMapKeyRef: {name: s, key: k}}}]}]", "volumes: [{name: v, azureFile: {secretName: s, shareName: x}}]",
	} {
		resp, err := review(t, New(&authorizer{}), "", podDefault(t, "x", spec))
		if err != nil || resp.Allowed {
			t.Errorf("%s: %v %+v", spec, err, resp)
		}
	}
	for _, spec := range []string{"env: [{name: A, value: x}]", "automountServiceAccountToken: false", "nodeSelector: {secret: x}", "annotations: {configMap: x}"} {
		if resp, err := review(t, New(&authorizer{}), "", podDefault(t, "x", spec)); err != nil || !resp.Allowed {
			t.Errorf("%s: %v %+v", spec, err, resp)
		}
	}
}

func TestTheRightToAClusterPodDefaultIsTheClusters(t *testing.T) {
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}
	cpd.Spec.ServiceAccountName = "x"
	a := &authorizer{}
	resp, err := review(t, New(a), "", plan.CompileCluster(cpd))
	if err != nil || resp.Allowed || !strings.Contains(resp.Status.Message, "kubectl auth can-i use clusterpoddefaults.sallyport.io/mirror --as") {
		t.Errorf("%v %+v", err, resp)
	}
	if len(a.asked) != 1 || a.asked[0].Namespace != "" || a.asked[0].Group != "sallyport.io" || a.asked[0].Verb != Verb {
		t.Errorf("asked for %+v", a.asked)
	}
}

func TestNoAnswerIsAFault(t *testing.T) {
	pd := podDefault(t, "x", secret)
	failing := New(&authorizer{err: errors.New("the API server is away")})
	resp, err := review(t, failing, "", pd)
	if _, again := admission.RetryAfter(err); resp != nil || !again {
		t.Errorf("no answer: %+v, %v", resp, err)
	}
	if resp, err := review(t, nil, "", pd); resp != nil || err == nil {
		t.Errorf("nobody to ask: %+v, %v", resp, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := New(&authorizer{waiting: make(chan struct{})}).MayNot(ctx, "team-a", "default", []*plan.Plan{pd}); err == nil {
		t.Error("it answers although the call has ended")
	}
}

func TestAnswersAreSharedAndForgotten(t *testing.T) {
	pd := podDefault(t, "x", secret)
	a := &authorizer{waiting: make(chan struct{}), allows: map[string]bool{"system:serviceaccount:team-a:default x": true}}
	c := New(a)
	now := time.Now()
	c.now = func() time.Time { return now }
	var group sync.WaitGroup
	var denied atomic.Int32
	ask := func() {
		if d, err := c.MayNot(t.Context(), "team-a", "default", []*plan.Plan{pd}); err != nil || len(d) > 0 {
			denied.Add(1)
		}
	}
	for range 20 {
		group.Go(ask)
	}
	close(a.waiting)
	group.Wait()
	ask()
	if before := len(a.asked); denied.Load() > 0 || before > 20 {
		t.Errorf("%d denied, asked %d times", denied.Load(), before)
	}
	a.asked = nil
	ask()
	if len(a.asked) != 0 {
		t.Error("asked although it knows")
	}
	now = now.Add(remembered)
	if ask(); len(a.asked) != 1 {
		t.Errorf("asked %d times after the answer has expired", len(a.asked))
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c := New(&authorizer{})
	for i := range 3 * maxInNamespace {
		c.remember("hostile", question{fmt.Sprint("account-", i), "x"}, true)
	}
	c.remember("other", question{"default", "x"}, true)
	if len(c.answers["hostile"]) > maxInNamespace {
		t.Errorf("one namespace has %d answers", len(c.answers["hostile"]))
	}
	for i := range 2 * maxAnswers {
		c.remember(fmt.Sprint("namespace-", i%500), question{fmt.Sprint(i), "x"}, true)
		if c.size > maxAnswers {
			t.Fatalf("%d answers", c.size)
		}
	}
	size := 0
	for _, of := range c.answers {
		size += len(of)
	}
	if size != c.size {
		t.Errorf("%d answers, counted as %d", size, c.size)
	}
}
