// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint/policyrules"
	"github.com/sallyport-io/sallyport/test/golden"
	"github.com/sallyport-io/sallyport/test/lab"
)

// claim is what the API server does with a request under the policies of an example: "accepted",
// "refused TEXT", "stored TEXT", or "invalid TEXT" if it refuses the policies.
type claim struct {
	operation, user, fail, pass string
}

func claimOf(t *testing.T, text string) claim {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("claim.txt has the line %q", line)
		}
		values[key] = value
	}
	return claim{values["operation"], values["as"], values["fail"], values["pass"]}
}

// TestWhatPolicyRulesClaimOnARealAPIServer applies the bad and the good example of each rule about policies to an
// API server, and compares what it does with a request with the claim of the rule. Labels narrow the policies to
// the requests of their example.
func TestWhatPolicyRulesClaimOnARealAPIServer(t *testing.T) {
	t.Parallel()
	config := lab.APIServer(t)
	var all []*situation
	for _, rule := range policyrules.Rules() {
		archive := golden.Open(t, filepath.Join("testdata", "rules", rule.ID+".txtar"))
		of := claimOf(t, string(archive.File("claim.txt")))
		for _, file := range []string{"fail", "pass"} {
			s := &situation{t: t, config: config, label: rule.ID + "-" + file, namespace: lab.Namespace(t, config), claim: of, want: map[string]string{"fail": of.fail, "pass": of.pass}[file]}
			s.apply(objects(t, file, archive.File(file+".yaml")), objects(t, "request", archive.File("request.yaml"))[0])
			all = append(all, s)
		}
	}
	last := &situation{t: t, config: config, label: "sentinel", namespace: lab.Namespace(t, config)}
	if err := last.sentinel(); err != nil { // policies are evaluated from a second after they are made
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.label, func(t *testing.T) {
			s.t = t
			s.check()
		})
	}
}

type situation struct {
	t         *testing.T
	config    *rest.Config
	label     string
	namespace string
	claim     claim
	want      string
	request   *unstructured.Unstructured
	invalid   []string // what the API server says to the policies
}

// apply applies the policies of an example.
func (s *situation) apply(policies []Object, request Object) {
	s.request = s.prepared(request)
	if s.claim.operation != "create" {
		if err := s.create(s.client(""), s.request); err != nil {
			s.t.Fatalf("before the policies: %v", err)
		}
	}
	for _, o := range policies {
		if err := s.create(s.client(""), s.prepared(o)); err != nil {
			s.invalid = append(s.invalid, err.Error())
		}
	}
}

// check compares the API server's answers with the claim.
func (s *situation) check() {
	verdict, text, _ := strings.Cut(s.want, " ")
	if verdict == "invalid" {
		if !slices.ContainsFunc(s.invalid, func(e string) bool { return strings.Contains(e, text) }) {
			s.t.Errorf("the API server says %q to the policies, want %q", s.invalid, text)
		}
		return
	}
	if len(s.invalid) > 0 {
		s.t.Fatalf("the API server refuses the policies: %q", s.invalid)
	}
	got, lastErr := "", error(nil)
	err := wait.PollUntilContextTimeout(s.t.Context(), 200*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		stored, err := s.send(ctx, s.request)
		switch {
		case apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && err != nil:
			lastErr = err
			return false, nil // not an answer
		case err != nil:
			got = "refused " + err.Error()
		default:
			got = stored
		}
		switch verdict {
		case "refused":
			return err != nil && strings.Contains(err.Error(), text), nil
		case "stored":
			return err == nil && strings.Contains(stored, text), nil
		}
		return err == nil, nil
	})
	if err != nil {
		s.t.Errorf("the API server's answer is %q, want %q (%v)", got, s.want, lastErr)
	}
}

// sentinel waits until the API server evaluates a policy that was made last.
func (s *situation) sentinel() error {
	const text = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: sentinel}
spec: {matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [serviceaccounts]}]}, validations: [{expression: "false", message: awake}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: sentinel}
spec: {policyName: sentinel, validationActions: [Deny]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sentinel}
`
	all := objects(s.t, "sentinel", []byte(text))
	for _, o := range all[:2] {
		if err := s.create(s.client(""), s.prepared(o)); err != nil {
			return err
		}
	}
	asked := s.prepared(all[2])
	return wait.PollUntilContextTimeout(s.t.Context(), 200*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := s.client("").Resource(resourceOf(asked)).Namespace(s.namespace).Create(ctx, asked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "awake"), nil
	})
}

// prepared returns an object with names of the situation's own. Bindings apply to objects with its label, which
// requests have.
func (s *situation) prepared(o Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(o.Raw, &u.Object); err != nil {
		s.t.Fatal(err)
	}
	own := func(name string) string { return fmt.Sprintf("%s-%s-%s", s.label, name, s.namespace) }
	switch u.GetKind() {
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		name, _, _ := unstructured.NestedString(u.Object, "spec", "policyName")
		_ = unstructured.SetNestedField(u.Object, own(name), "spec", "policyName")
		_ = unstructured.SetNestedField(u.Object, s.label, "spec", "matchResources", "objectSelector", "matchLabels", "situation")
		if namespace, ok, _ := unstructured.NestedString(u.Object, "spec", "paramRef", "namespace"); ok && namespace == "default" {
			_ = unstructured.SetNestedField(u.Object, s.namespace, "spec", "paramRef", "namespace")
		}
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy": // one that cannot be configured is not narrowed by its bindings
		_ = unstructured.SetNestedField(u.Object, s.label, "spec", "matchConstraints", "objectSelector", "matchLabels", "situation")
	case "ClusterRoleBinding", "RoleBinding":
		name, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
		_ = unstructured.SetNestedField(u.Object, own(name), "roleRef", "name")
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		list, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
		for _, w := range list {
			w.(map[string]any)["objectSelector"] = map[string]any{"matchLabels": map[string]any{"situation": s.label}}
		}
		_ = unstructured.SetNestedSlice(u.Object, list, "webhooks")
	case "ConfigMap", "Secret", "Pod", "Deployment", "ServiceAccount", "Lease", "HorizontalPodAutoscaler":
		if u.GetNamespace() == "" || u.GetNamespace() == "default" {
			u.SetNamespace(s.namespace)
		}
		if u.GetName() == "x" { // the request; others are parameters, whose names policies have
			u.SetName(own("x"))
		}
	}
	if u.GetKind() == "RoleBinding" {
		u.SetNamespace(s.namespace)
	}
	if u.GetNamespace() == "" {
		u.SetName(own(u.GetName()))
	}
	labels := maps.Clone(u.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels["situation"] = s.label
	u.SetLabels(labels)
	return u
}

func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	return resource
}

func (s *situation) client(as string) dynamic.Interface {
	config := rest.CopyConfig(s.config)
	if as != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: as, Groups: []string{"system:authenticated"}}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// create creates an object, and deletes it at the end if it is in no namespace.
func (s *situation) create(client dynamic.Interface, u *unstructured.Unstructured) error {
	to := client.Resource(resourceOf(u)).Namespace(u.GetNamespace())
	_, err := to.Create(s.t.Context(), u, metav1.CreateOptions{})
	if err == nil && u.GetNamespace() == "" {
		s.t.Cleanup(func() { _ = to.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}) })
	}
	return err
}

// send sends the request as a dry run, twice for updates: the second has the first one's result.
func (s *situation) send(ctx context.Context, u *unstructured.Unstructured) (string, error) {
	to := s.client(s.claim.user).Resource(resourceOf(u)).Namespace(u.GetNamespace())
	dry := []string{metav1.DryRunAll}
	var stored *unstructured.Unstructured
	var err error
	switch s.claim.operation {
	case "delete":
		return "", to.Delete(ctx, u.GetName(), metav1.DeleteOptions{DryRun: dry})
	case "update":
		if stored, err = to.Get(ctx, u.GetName(), metav1.GetOptions{}); err != nil {
			return "", err
		}
		for range 2 {
			stored.SetAnnotations(map[string]string{"updated": "yes"})
			if stored, err = to.Update(ctx, stored, metav1.UpdateOptions{DryRun: dry}); err != nil {
				return "", err
			}
		}
	default:
		if stored, err = to.Create(ctx, u, metav1.CreateOptions{DryRun: dry}); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(stored.Object)
	return string(text), err
}
