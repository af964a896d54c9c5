// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/test/lab"
)

func TestAClusterIsReadWithTheRightsOfTheUserOnARealAPIServer(t *testing.T) {
	config := lab.APIServer(t)
	namespace := lab.Namespace(t, config)
	w := &world{t: t, config: config}
	var err error
	if w.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	inNamespace := strings.Replace(onPods, "matchConstraints: {", "matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+namespace+"}}, ", 1)
	policies := validating("limit-"+namespace, "{expression: 'object.spec.containers.size() <= int(params.data.most)', messageExpression: \"'at most ' + params.data.most\"}", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n", ", paramRef: {name: most, parameterNotFoundAction: Deny}, validationActions: [Warn]") +
		validating("may-"+namespace, "{expression: \"authorizer.group('').resource('nodes').check('delete').allowed()\", message: you may not delete nodes}", "", "")
	objects, _, err := manifest.Parse("policies.yaml", []byte(strings.ReplaceAll(policies, onPods, inNamespace)+
		fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: most, namespace: %s}, data: {most: '0'}}\n", namespace)))
	if err != nil {
		t.Fatal(err)
	}
	w.create(objects...)

	evaluate := func(as rest.ImpersonationConfig, who authenticationv1.UserInfo) *chain.Result {
		t.Helper()
		limited := rest.CopyConfig(config)
		limited.Impersonate = as
		c, err := cluster.New(limited, namespace)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, nil, strings.ReplaceAll(pod, "team-a", namespace), func(r *chain.Run) {
			r.Request.Namespace, r.Request.UserInfo = namespace, who
			r.Request.Operation = admissionv1.Create
		})
		if r.Resources, err = resources.OfCluster(c.Client.Discovery()); err != nil {
			t.Fatal(err)
		}
		if err := r.ReadCluster(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		result, err := r.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	warned := func(r *chain.Result) bool {
		return slices.ContainsFunc(r.Warnings, func(warning string) bool { return strings.Contains(warning, "at most 0") })
	}

	// The user who asks has all rights, alice has none.
	mine := evaluate(rest.ImpersonationConfig{}, authenticationv1.UserInfo{})
	if mine.Denied != nil || len(mine.Unknown) > 0 || !warned(mine) {
		t.Errorf("mine: %+v, %q, %q", mine.Denied, mine.Unknown, mine.Warnings)
	}
	hers := evaluate(rest.ImpersonationConfig{}, authenticationv1.UserInfo{Username: "alice"})
	if hers.Denied == nil || !strings.Contains(hers.Denied.Message, "you may not delete nodes") || len(hers.Unknown) > 0 {
		t.Errorf("hers: %+v, %q", hers.Denied, hers.Unknown)
	}
	// Who may read nothing is told so.
	nothing := evaluate(rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}, authenticationv1.UserInfo{})
	if nothing.ErrUnknown() == nil || !slices.ContainsFunc(nothing.Unknown, func(text string) bool { return strings.Contains(text, "validatingadmissionpolicies") }) {
		t.Errorf("nothing: %q", nothing.Unknown)
	}
}

// TestMutatingPoliciesOfV1beta1AreReadOnARealAPIServer has an API server of its own, which serves them as v1beta1 alone.
func TestMutatingPoliciesOfV1beta1AreReadOnARealAPIServer(t *testing.T) {
	flags := []string{"--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"}
	_, older := release.Version{Minor: lab.KubernetesMinor(t)}.Lacks(release.MutatingPolicies)
	if !older {
		const v1 = "admissionregistration.k8s.io/v1/mutatingadmissionpolic"
		flags = []string{"--runtime-config=admissionregistration.k8s.io/v1beta1=true," + v1 + "ies=false," + v1 + "ybindings=false", "--disable-admission-plugins=MutatingAdmissionPolicy"}
	}
	config := betaAPIServer(t, flags...)
	objects, _, err := manifest.Parse("policies.yaml", []byte(strings.ReplaceAll(mutating("m", label("added", "'x'"), "", ""), "admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1")))
	if err != nil {
		t.Fatal(err)
	}
	if err := created(t, config, objects); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(config, "default")
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, nil, strings.ReplaceAll(pod, "team-a", "default"), func(r *chain.Run) { r.Request.Namespace, r.Request.UserInfo.Username = "default", "" })
	if r.Resources, err = resources.OfCluster(c.Client.Discovery()); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadCluster(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.DryRun = nil // which would decide what is unknown
	got, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if unknown := strings.Contains(strings.Join(got.Unknown, "\n"), "v1beta1"); unknown == older {
		t.Errorf("unknown: %q", got.Unknown)
	}
	if changed := outcomes(got) == "m: changed"; changed != older {
		t.Errorf("%s", outcomes(got))
	}
	if strings.Contains(strings.Join(got.Notes, "\n"), "feature-gates") {
		t.Errorf("the cluster serves them, and a note says: %q", got.Notes)
	}
}
