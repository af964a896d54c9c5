// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/admission"
	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/source"
)

// rights lists the namespaces in which the user alice may create pods; "" means all.
type rights struct {
	namespaces []string
	err        error
	asked      []string
}

func (r *rights) May(_ context.Context, user *authenticationv1.UserInfo, access *authorizationv1.ResourceAttributes) (bool, string, error) {
	namespace := access.Namespace
	r.asked = append(r.asked, user.Username+" "+namespace)
	for _, n := range r.namespaces {
		if n == namespace {
			return true, "", r.err
		}
	}
	return false, "no role says so", r.err
}

func request(t testing.TB, operation admissionv1.Operation, resource schema.GroupVersionResource, object, old string) *admissionv1.AdmissionRequest {
	t.Helper()
	req := &admissionv1.AdmissionRequest{
		UID: "1", Operation: operation, Resource: metav1.GroupVersionResource(resource),
		Kind: metav1.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: "PodDefault"},
		Name: "proxy", Namespace: "team-a", UserInfo: authenticationv1.UserInfo{Username: "alice"},
	}
	if resource == clusterPodDefaults {
		req.Kind.Kind, req.Namespace = "ClusterPodDefault", ""
	}
	raw := func(text string) runtime.RawExtension {
		if text == "" {
			return runtime.RawExtension{}
		}
		out, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: out}
	}
	req.Object, req.OldObject = raw(object), raw(old)
	return req
}

func handle(t testing.TB, authorizer Authorizer, mode Mode, req *admissionv1.AdmissionRequest) *admission.Response {
	t.Helper()
	webhook, err := New(authorizer, nil, mode)
	if err == nil {
		err = webhook.Problems()
	}
	if err != nil {
		t.Fatal(err)
	}
	resp, err := webhook.Handler.Handle(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

const good = "metadata: {name: proxy, namespace: team-a}\nspec: {selector: {matchLabels: {proxy: 'true'}}, env: [{name: A, value: secret-value}]}"

func TestWhoMayWrite(t *testing.T) {
	other := strings.Replace(good, "secret-value", "another-value", 1)
	relabelled := strings.Replace(good, "{name: proxy,", "{name: proxy, labels: {a: b},", 1)
	withStatus := good + "\nstatus: {observedGeneration: 3}"
	for name, tc := range map[string]struct {
		operation     admissionv1.Operation
		resource      schema.GroupVersionResource
		object, old   string
		mode          Mode
		may           []string
		allowed       bool
		asked, warned int
		says          string
	}{
		"who may create pods may create a PodDefault":             {admissionv1.Create, podDefaults, good, "", Enforce, []string{"team-a"}, true, 1, 0, ""},
		"who may not is refused, with the way to find out":        {admissionv1.Create, podDefaults, good, "", Enforce, nil, false, 1, 0, `PodDefault team-a/proxy: it adds to pods, and "alice" may not create pods in the namespace team-a; ask for that right (kubectl auth can-i create pods -n team-a)`},
		"rights in another namespace do not count":                {admissionv1.Create, podDefaults, good, "", Enforce, []string{"team-b"}, false, 1, 0, "team-a"},
		"a changed spec is asked about":                           {admissionv1.Update, podDefaults, other, good, Enforce, nil, false, 1, 0, "may not create pods"},
		"a spec that comes is asked about":                        {admissionv1.Update, podDefaults, good, "metadata: {name: proxy}", Enforce, nil, false, 1, 0, "may not create pods"},
		"a spec that goes is asked about":                         {admissionv1.Update, podDefaults, "metadata: {name: proxy}", good, Enforce, nil, false, 1, 0, "may not create pods"},
		"labels may be changed by anybody":                        {admissionv1.Update, podDefaults, relabelled, good, Enforce, nil, true, 0, 0, ""},
		"a status may be written by anybody":                      {admissionv1.Update, podDefaults, withStatus, good, Enforce, nil, true, 0, 0, ""},
		"a deletion is nobody's business":                         {admissionv1.Delete, podDefaults, "", good, Enforce, nil, true, 0, 0, ""},
		"a ClusterPodDefault needs the right everywhere":          {admissionv1.Create, clusterPodDefaults, good, "", Enforce, []string{"team-a"}, false, 1, 0, "may not create pods in every namespace; ask for that right (kubectl auth can-i create pods --all-namespaces)"},
		"who may create pods everywhere may do so":                {admissionv1.Create, clusterPodDefaults, good, "", Enforce, []string{""}, true, 1, 0, ""},
		"with warn it is a warning":                               {admissionv1.Create, podDefaults, good, "", Warn, nil, true, 1, 1, ""},
		"with off nobody is asked":                                {admissionv1.Create, podDefaults, good, "", Off, nil, true, 0, 0, ""},
		"a request for something else is an error in the rules":   {admissionv1.Create, schema.GroupVersionResource{Version: "v1", Resource: "pods"}, good, "", Enforce, nil, false, 0, 0, "correct the rules"},
		"an invalid object is refused":                            {admissionv1.Create, podDefaults, "[]", "", Enforce, []string{"team-a"}, false, 0, 0, "is not a PodDefault"},
		"a field of another type is refused and its value hidden": {admissionv1.Create, podDefaults, "spec: {env: secret-value}", "", Enforce, []string{"team-a"}, false, 1, 0, "/env is of another type"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rights{namespaces: tc.may}
			resp := handle(t, r, tc.mode, request(t, tc.operation, tc.resource, tc.object, tc.old))
			if resp.Allowed != tc.allowed || len(r.asked) != tc.asked || len(resp.Warnings) != tc.warned {
				t.Errorf("allowed %v, asked %q, warned %q, status %+v", resp.Allowed, r.asked, resp.Warnings, resp.Status)
			}
			if !tc.allowed && (!strings.Contains(resp.Status.Message, tc.says) || strings.Contains(resp.Status.Message, "-value")) {
				t.Errorf("message %q, want %q", resp.Status.Message, tc.says)
			}
		})
	}
}

func TestWhoCannotBeAskedIsAFault(t *testing.T) {
	webhook, err := New(&rights{err: errors.New("away")}, nil, Enforce)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := webhook.Handler.Handle(t.Context(), request(t, admissionv1.Create, podDefaults, good, "")); err == nil {
		t.Errorf("answered %+v", resp)
	}
	if webhook.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("failure policy %s", webhook.FailurePolicy)
	}
	for _, mode := range []Mode{Warn, Off} {
		if webhook, err := New(&rights{}, nil, mode); err != nil || webhook.FailurePolicy != admissionregistrationv1.Ignore {
			t.Errorf("%s: failure policy %s, %v", mode, webhook.FailurePolicy, err)
		}
	}
	if _, err := New(nil, nil, "maybe"); err == nil || !strings.Contains(err.Error(), `supported values: "enforce", "warn", "off"`) || !strings.Contains(err.Error(), "authorizer for the creation of pods is missing") {
		t.Errorf("problems: %v", err)
	}
}

// reviewer answers one SubjectAccessReview.
type reviewer struct {
	status authorizationv1.SubjectAccessReviewStatus
	err    error
	got    []authorizationv1.SubjectAccessReviewSpec
}

func (r *reviewer) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.got = append(r.got, review.Spec)
	out := review.DeepCopy()
	out.Status = r.status
	return out, r.err
}

func TestOneSubjectAccessReviewIsAskedForTheWholeUser(t *testing.T) {
	r := &reviewer{status: authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "role"}}
	user := &authenticationv1.UserInfo{Username: "alice", UID: "7", Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}}}
	pods := &authorizationv1.ResourceAttributes{Namespace: "team-a", Verb: "create", Resource: "pods"}
	allowed, reason, err := BySubjectAccessReview(r).May(t.Context(), user, pods)
	if !allowed || reason != "role" || err != nil || len(r.got) != 1 {
		t.Fatalf("%v %q %v, %d reviews", allowed, reason, err, len(r.got))
	}
	got := fmt.Sprintf("%s %s %v %v %+v", r.got[0].User, r.got[0].UID, r.got[0].Groups, r.got[0].Extra, *r.got[0].ResourceAttributes)
	if want := "alice 7 [team] map[scopes:[a b]]"; !strings.HasPrefix(got, want) || !strings.Contains(got, "Namespace:team-a Verb:create") || !strings.Contains(got, "Resource:pods") {
		t.Errorf("asked %s", got)
	}
	r.status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}
	if allowed, _, err := BySubjectAccessReview(r).May(t.Context(), user, pods); allowed || err != nil {
		t.Errorf("what is denied is allowed (%v)", err)
	}
	r.err = errors.New("away")
	_, _, err = BySubjectAccessReview(r).May(t.Context(), user, pods)
	if after, again := admission.RetryAfter(err); !again || after != time.Second {
		t.Errorf("no other try: %v", err)
	}
}

func TestWhatIsJudged(t *testing.T) {
	many := func(n int) string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("key-%d: v", i))
		}
		return strings.Join(out, ", ")
	}
	for name, tc := range map[string]struct {
		resource schema.GroupVersionResource
		spec     string
		fields   string // of the causes, with commas
		warns    string // part of the warnings
	}{
		"a good one":                                              {podDefaults, `{selector: {matchLabels: {a: "true"}}, env: [{name: A, value: x}]}`, "", ""},
		"a name that stands there twice":                          {podDefaults, `{selector: {matchLabels: {a: "true"}}, env: [{name: A, value: x}, {name: A, value: z}]}`, "spec.env[1].name", ""},
		"a selector that does not parse":                          {podDefaults, `{selector: {matchExpressions: [{key: a, operator: Like}]}}`, "spec.selector.matchExpressions[0].operator", ""},
		"a mount without a volume":                                {podDefaults, `{selector: {matchLabels: {a: "true"}}, volumeMounts: [{name: data, mountPath: /data}]}`, "", "mounted but not defined"},
		"a selector that no form can offer":                       {podDefaults, `{selector: {matchExpressions: [{key: a, operator: Exists}]}}`, "", "no matchLabels"},
		"a mirror pod":                                            {podDefaults, `{selector: {matchLabels: {a: "true"}}, annotations: {kubernetes.io/config.mirror: x}}`, "spec.annotations[kubernetes.io/config.mirror]", ""},
		"a mark of this webhook":                                  {podDefaults, `{selector: {matchLabels: {a: "true"}}, annotations: {Sallyport.io/poddefaults: x, poddefault.admission.kubeflow.org/exclude: "true"}}`, "spec.annotations[Sallyport.io/poddefaults],spec.annotations[poddefault.admission.kubeflow.org/exclude]", ""},
		"a label of a controller's":                               {podDefaults, `{selector: {matchLabels: {a: "true"}}, labels: {pod-template-hash: x}}`, "spec.labels[pod-template-hash]", ""},
		"a key that networks trust":                               {podDefaults, `{selector: {matchLabels: {a: "true"}}, annotations: {k8s.v1.cni.cncf.io/networks: x}}`, "", "cni.cncf.io"},
		"a key that Kubernetes trusts":                            {podDefaults, `{selector: {matchLabels: {a: "true"}}, annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}}`, "", "components of Kubernetes"},
		"nodes of the control plane":                              {podDefaults, `{selector: {matchLabels: {a: "true"}}, nodeSelector: {node-role.kubernetes.io/control-plane: ""}}`, "spec.nodeSelector[node-role.kubernetes.io/control-plane]", ""},
		"those by affinity":                                       {podDefaults, `{selector: {matchLabels: {a: "true"}}, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: node-role.kubernetes.io/master, operator: Exists}]}}]}}}`, "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0]", ""},
		"away from them":                                          {podDefaults, `{selector: {matchLabels: {a: "true"}}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: node-role.kubernetes.io/master, operator: DoesNotExist}]}]}}}}`, "", ""},
		"those for the cluster":                                   {clusterPodDefaults, `{selector: {matchLabels: {a: "true"}}, nodeSelector: {node-role.kubernetes.io/control-plane: ""}}`, "", "chooses nodes that run the cluster"},
		"every taint":                                             {podDefaults, `{selector: {matchLabels: {a: "true"}}, tolerations: [{operator: Exists}]}`, "", "tolerates every taint"},
		"their taint":                                             {podDefaults, `{selector: {matchLabels: {a: "true"}}, tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}`, "", "nodes that run the cluster"},
		"more labels than it may":                                 {podDefaults, `{selector: {matchLabels: {` + many(65) + `}}}`, "spec.selector", ""},
		"more values than it may":                                 {podDefaults, `{selector: {matchExpressions: [{key: a, operator: In, values: [` + strings.Repeat("v, ", 1025) + `]}]}}`, "spec.selector.matchExpressions", ""},
		"a Secret that a label names":                             {podDefaults, `{selector: {matchLabels: {a: "true"}}, substitute: true, env: [{name: A, valueFrom: {secretKeyRef: {name: "${pod.labels['s']}", key: k}}}, {name: B, value: "${namespace}"}], volumes: [{name: v, secret: {secretName: "x-${namespace}"}}]}`, "spec.env[0].valueFrom.secretKeyRef.name,spec.env[0].valueFrom.secretKeyRef.name,spec.volumes[0].secret.secretName", ""},
		"placeholders where none are replaced":                    {podDefaults, `{selector: {matchLabels: {a: "true"}}, desc: "for ${namespace}", substitute: true, sidecars: [{name: s, image: "i-${namespace}", command: ["${pod.labels['a']}", "$${namespace}", "${HOME}"], args: ["${namespace}"]}]}`, "spec.sidecars[0].command[0],spec.sidecars[0].image", ""},
		"placeholders that nobody asked for":                      {podDefaults, `{selector: {matchLabels: {a: "true"}}, sidecars: [{name: s, image: i, command: ["${namespace}"]}]}`, "", ""},
		"a node by its name":                                      {podDefaults, `{selector: {matchLabels: {a: "true"}}, nodeSelector: {kubernetes.io/hostname: gpu-0}}`, "", "chooses single nodes by name"},
		"a node by its name, and the taints of the control plane": {podDefaults, `{selector: {matchLabels: {a: "true"}}, nodeSelector: {kubernetes.io/hostname: cp-0}, tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]}`, "spec.nodeSelector[kubernetes.io/hostname]", ""},
		"a node by its name, and every taint": {podDefaults, `{selector: {matchLabels: {a: "true"}}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [cp-0]}]}, {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [cp-0]}]}]}}}, tolerations: [{operator: Exists}]}`,
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0],spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0]", ""},
		"a node by its name for the cluster, and every taint": {clusterPodDefaults, `{selector: {matchLabels: {a: "true"}}, nodeSelector: {kubernetes.io/hostname: cp-0}, tolerations: [{operator: Exists}]}`, "", "chooses single nodes by name"},
		"a namespace selector that is bad":                    {clusterPodDefaults, `{selector: {matchLabels: {a: "true"}}, namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}`, "spec.namespaceSelector.matchExpressions[0].values", ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp := handle(t, &rights{namespaces: []string{"team-a", ""}}, Enforce, request(t, admissionv1.Create, tc.resource, "spec: "+tc.spec, ""))
			var fields []string
			if !resp.Allowed {
				if resp.Status.Code != 422 || resp.Status.Details == nil {
					t.Fatalf("status %+v", resp.Status)
				}
				for _, cause := range resp.Status.Details.Causes {
					fields = append(fields, cause.Field)
				}
			}
			if got := strings.Join(fields, ","); got != tc.fields {
				t.Errorf("causes %q, want %q", got, tc.fields)
			}
			if all := strings.Join(resp.Warnings, "\n"); !strings.Contains(all, tc.warns) || tc.warns == "" && all != "" && tc.fields == "" {
				t.Errorf("warnings %q", all)
			}
		})
	}
}

func TestAnOldProblemDoesNotKeepAnObjectFromBeingCorrected(t *testing.T) {
	two := `spec: {selector: {matchLabels: {a: "true"}}, env: [{name: A}, {name: A, value: b}], labels: {pod-template-hash: x}}`
	one := `spec: {selector: {matchLabels: {a: "true"}}, env: [{name: A}], labels: {pod-template-hash: x}}`
	all := &rights{namespaces: []string{"team-a"}}
	if resp := handle(t, all, Enforce, request(t, admissionv1.Update, podDefaults, one, two)); !resp.Allowed || len(resp.Warnings) != 1 || !strings.HasPrefix(resp.Warnings[0], "as before: ") {
		t.Errorf("%+v, warnings %q", resp.Status, resp.Warnings)
	}
	if resp := handle(t, all, Enforce, request(t, admissionv1.Update, podDefaults, two, one)); resp.Allowed {
		t.Error("a new problem is admitted")
	}
}

func TestNeighboursThatDisagreeAreNamed(t *testing.T) {
	index := source.NewIndex()
	index.SetNamespace("team-a", map[string]string{"team": "a"})
	for _, name := range []string{"proxy", "other"} {
		pd := &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name}}
		pd.Spec.Env = []corev1.EnvVar{{Name: "A", Value: "another-value"}}
		index.Set(plan.Compile(pd))
	}
	for name, team := range map[string]string{"here": "a", "elsewhere": "b"} {
		cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cpd.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}
		cpd.Spec.Env = []corev1.EnvVar{{Name: "A", Value: "a-third-value"}}
		index.Set(plan.CompileCluster(cpd))
	}
	webhook, err := New(&rights{namespaces: []string{"team-a"}}, index, Enforce)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := webhook.Handler.Handle(t.Context(), request(t, admissionv1.Create, podDefaults, good, ""))
	if err != nil || !resp.Allowed {
		t.Fatalf("%+v, %v", resp, err)
	}
	want := "ClusterPodDefault here and PodDefault team-a/proxy both set env A; pods selected by both are denied. Change one selector, or set spec.conflictPolicy of proxy\n" +
		"PodDefaults other and proxy both set env A; pods selected by both are denied. Change one selector, or set spec.conflictPolicy of proxy"
	if got := strings.Join(resp.Warnings, "\n"); got != want {
		t.Errorf("warnings\n%s\nwant\n%s", got, want)
	}
}

// blind is an index whose server has lost the right to read.
type blind struct{ *source.Index }

func (blind) Trouble() error { return errors.New("poddefaults.kubeflow.org is forbidden") }

func TestAuthorsAreToldThatTheServerMayNotRead(t *testing.T) {
	webhook, err := New(&rights{namespaces: []string{"team-a"}}, blind{source.NewIndex()}, Enforce)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := webhook.Handler.Handle(t.Context(), request(t, admissionv1.Create, podDefaults, good, ""))
	if err != nil || !resp.Allowed || len(resp.Warnings) != 1 || !strings.Contains(resp.Warnings[0], "no effect on pods for now") ||
		!strings.Contains(resp.Warnings[0], "poddefaults.kubeflow.org is forbidden") {
		t.Errorf("%+v, %v", resp, err)
	}
}

// unconnected is an index whose server does not know Secrets.
type unconnected struct{ *source.Index }

func (unconnected) Connections() error { return errors.New("set dataConnections") }

func TestAuthorsAreToldThatPodsGetNoSecretsByLabels(t *testing.T) {
	webhook, err := New(&rights{namespaces: []string{"team-a"}}, unconnected{source.NewIndex()}, Enforce)
	if err != nil {
		t.Fatal(err)
	}
	for spec, told := range map[string]bool{
		"{}": false, "{envFromSecretSelector: null}": false, "{envFromSecretSelector: {}}": true,
		"{volumesFromSecretSelector: {matchLabels: {a: b}}, secretsMountPath: /a}": true,
	} {
		object := "metadata: {name: proxy, namespace: team-a}\nspec: " + strings.Replace(spec, "{", "{selector: {matchLabels: {proxy: 'true'}}, ", 1)
		resp, err := webhook.Handler.Handle(t.Context(), request(t, admissionv1.Create, podDefaults, object, ""))
		if err != nil || !resp.Allowed || slices.Contains(resp.Warnings, "it is left out: set dataConnections") != told {
			t.Errorf("%s: %+v, %v", spec, resp, err)
		}
	}
	wide := "metadata: {name: proxy}\nspec: {selector: {}, envFromSecretSelector: {matchExpressions: [{key: a, operator: In, values: [" + strings.Repeat("x, ", maxValues) + "x]}]}}"
	resp, err := webhook.Handler.Handle(t.Context(), request(t, admissionv1.Create, podDefaults, wide, ""))
	if err != nil || resp.Allowed || !strings.Contains(resp.Status.Message, "spec.envFromSecretSelector.matchExpressions: Too many") {
		t.Errorf("a selector with %d values: %+v, %v", maxValues+1, resp, err)
	}
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"selector":{"matchLabels":{"a":"true"}},"env":[{"name":"A","value":"b"}]}`))
	f.Add([]byte(`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":null}}}`))
	f.Fuzz(func(t *testing.T, spec []byte) {
		for _, cluster := range []bool{false, true} {
			errs, err := Refusals(cluster, spec)
			again, errAgain := Refusals(cluster, spec)
			if (err == nil) != (errAgain == nil) || fmt.Sprint(errs) != fmt.Sprint(again) {
				t.Errorf("twice the same spec: %v %v and %v %v", errs, err, again, errAgain)
			}
		}
	})
}
