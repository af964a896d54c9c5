// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

func newPodDefault(namespace, name, label, value string) *kubeflowv1alpha1.PodDefault {
	return &kubeflowv1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}}, Desc: "<script>alert(1)</script>",
			Env: []corev1.EnvVar{{Name: "TOKEN", Value: value}}, Args: []string{"--password=" + value},
			Annotations:  map[string]string{"example.com/large": strings.Repeat("x", 200<<10)},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}, Volumes: []corev1.Volume{{Name: "data"}},
		},
	}
}

func roleFor(user, namespace string, groupResources []string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}}
	for _, each := range groupResources {
		resource, group, _ := strings.Cut(each, ".")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list"}})
	}
	return role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
}

func webhookConfiguration(name string, bundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hook." + name, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/"), CABundle: bundle},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			TimeoutSeconds: ptr.To[int32](1), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func TestConsoleOnARealAPIServer(t *testing.T) {
	w := newWorld(t)
	w.create(t, newNamespace("team-a"), newNamespace("team-b"))
	first := newPodDefault("team-a", "first", "uses-first", "hunter2")
	w.create(t, first, newPodDefault("team-a", "second", "uses-second", "hunter3"), newPodDefault("team-b", "third", "uses-third", "x"))
	w.create(t, &sallyportv1alpha1.ClusterPodDefault{
		ObjectMeta: metav1.ObjectMeta{Name: "everywhere"},
		Spec: sallyportv1alpha1.ClusterPodDefaultSpec{PodDefaultSpec: kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{}, NodeSelector: map[string]string{"pool": "cheap"},
		}},
	})
	selected := map[string]string{"uses-first": "true"}
	w.create(t,
		newPod("team-a", "current", selected, map[string]string{meta.Mark("first"): first.ResourceVersion}),
		newPod("team-a", "old", selected, map[string]string{meta.Mark("first"): "1"}),
		newPod("team-a", "without", selected, nil),
		newPod("team-a", "relabelled", nil, map[string]string{meta.Mark("first"): "1"}),
	)
	w.grant(t, "member", "team-a", "poddefaults.kubeflow.org", "pods")

	t.Run("the overview has what doctor says", func(t *testing.T) {
		has(t, w.page(t, "", "/", http.StatusOK), "api-server", "there is no webhook configuration sallyport", `class="fix badge"`)
	})
	t.Run("webhooks of everybody have their order, policies, calls and findings", func(t *testing.T) {
		w.create(t, webhookConfiguration("b.example.com", w.config.CAData), webhookConfiguration("a.example.com", nil))
		lab.Eventually(t.Context(), t, time.Minute, "a pod to be refused, because no webhook answers", func(ctx context.Context) (bool, error) {
			return w.client.Create(ctx, newPod("team-a", "called", nil, nil), client.DryRunAll) != nil, nil
		})
		body := w.page(t, "", "/webhooks", http.StatusOK)
		has(t, body, "a.example.com", "hook.b.example.com", "Fail", "1 failed", "after 1 s", ">20", `href="https://github.com/sallyport-io/sallyport/blob/main/docs/lint.md#`)
		if strings.Index(body, "hook.b.example.com") < strings.Index(body, "hook.a.example.com") {
			t.Errorf("they are not in the order of calls:\n%s", body)
		}
		has(t, w.page(t, "member", "/webhooks", http.StatusOK), "you may not get the metrics of the API server", "no permission to list mutatingwebhookconfigurations", "!hook.b")
		for _, name := range []string{"a.example.com", "b.example.com"} {
			if err := w.client.Delete(t.Context(), webhookConfiguration(name, nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("PodDefaults are counted by namespace", func(t *testing.T) {
		has(t, w.page(t, "", "/poddefaults", http.StatusOK), `href="poddefaults?namespace=team-a">team-a</a>`, "team-b")
	})
	t.Run("PodDefaults of a namespace have what became of them", func(t *testing.T) {
		body := w.page(t, "", "/poddefaults?namespace=team-a", http.StatusOK)
		has(t, body, "PodDefault first", "ClusterPodDefault everywhere", "uses-first=true", "TOKEN", "data at /data", "env TOKEN",
			"1 pod has the current version", "2 pods have the older version 1", "1 pod was missed", "1 pod has it and would not be selected now",
			"name=without", "get reports.openreports.io sallyport", "&lt;script&gt;", "!<script>", "!hunter2", "!hunter3", "!xxxxx", "!third")
	})
	t.Run("a user sees what the user's rights show", func(t *testing.T) {
		has(t, w.page(t, "member", "/poddefaults?ns=team-a", http.StatusOK), "PodDefault first", "you may not list ClusterPodDefaults", "!everywhere")
		has(t, w.page(t, "member", "/poddefaults?namespace=team-b", http.StatusForbidden), "You may not read this", "!PodDefault third")
		has(t, w.page(t, "stranger", "/poddefaults", http.StatusOK), "Forbidden:", "you may not list poddefaults in all namespaces", "!team-a")
		has(t, w.page(t, "stranger", "/", http.StatusOK), "no permission to")
	})
	t.Run("behind a proxy the console has its users' rights, to read what pages need", func(t *testing.T) {
		if lab.KubernetesMinor(t) < 36 {
			t.Log("constrained impersonation is on by default since Kubernetes 1.36: nothing to test before")
			return
		}
		w.create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "console"}, Rules: append(access.PolicyRules(), access.ImpersonateAnyUser())}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "console"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "console"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "console"}},
		})
		w.await(t, "console", authorizationv1.ResourceAttributes{Verb: "impersonate-on:user-info:list", Group: "kubeflow.org", Resource: "poddefaults"})
		w.grant(t, "reader", "team-a", "secrets", "poddefaults.kubeflow.org", "pods")
		o, proxy := w.options(""), &access.Proxy{UserHeader: "X-User", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
		o.Config = w.configOf(t, "console")
		handler := o.handler(proxy.Identify)
		visit := func(user, target string) (int, string) {
			r := localRequest(http.MethodGet, target, nil)
			r.RemoteAddr = "192.0.2.1:1"
			r.Header.Set("X-User", user)
			response := recorded(handler, r)
			return response.Code, response.Body.String()
		}
		status, body := visit("reader", "/poddefaults?namespace=team-a")
		if has(t, body, "PodDefault first", "1 pod has the current version"); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
		if status, body := visit("reader", "/poddefaults?namespace=team-b"); status != http.StatusForbidden {
			t.Errorf("status %d:\n%s", status, body)
		}
		w.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "creator"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create"}}}},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "creator"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "creator"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "reader"}},
			})
		w.await(t, "reader", authorizationv1.ResourceAttributes{Namespace: "team-a", Verb: "create", Resource: "pods"})
		r := localRequest(http.MethodPost, "/try", strings.NewReader(url.Values{"namespace": {"team-a"}, "manifest": {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {uses-second: 'true'}}\nspec: {containers: [{name: main, image: i}]}\n"}}.Encode()))
		r.RemoteAddr = "192.0.2.1:1"
		r.Header.Set("X-User", "reader")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		has(t, recorded(handler, r).Body.String(), "PodDefault team-a/second", "whether the API server accepts such a pod", "impersonate", "sallyport explain -f FILE")
		for name, tc := range map[string]struct{ user, resource string }{
			"a Secret that the user may read": {"reader", "secrets"}, "pods as a service account": {"system:serviceaccount:team-a:default", "pods"},
		} {
			as := rest.CopyConfig(o.Config)
			as.Impersonate.UserName = tc.user
			clients, err := kubernetes.NewForConfig(as)
			if err != nil {
				t.Fatal(err)
			}
			err = clients.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/team-a", tc.resource).Do(t.Context()).Error()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "impersonate") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("why a pod looks the way it does", func(t *testing.T) { testPodPage(t, w) })
	t.Run("what a manifest would do", func(t *testing.T) { testTryPage(t, w) })
	t.Run("what the API server would refuse of a manifest", func(t *testing.T) { testTryAsks(t, w) })
	t.Run("who gets something", func(t *testing.T) { testWhoPage(t, w) })
	t.Run("each user sees what the user's rights show on each page", func(t *testing.T) { testUsersAndPages(t, w) })
	t.Run("each page as JSON", func(t *testing.T) { testDocuments(t, w) })
	t.Run("what a page costs in a big cluster", func(t *testing.T) { testBigCluster(t, w) })
	t.Run("an API server that goes away is reported, and its return too", func(t *testing.T) {
		w.APIServer.Signal(syscall.SIGKILL)
		<-w.APIServer.Ended
		has(t, w.page(t, "", "/poddefaults", http.StatusServiceUnavailable), "The API server does not answer")
		if err := w.RestartAPIServer(t.Context(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		has(t, w.page(t, "", "/poddefaults", http.StatusOK), "team-a")
	})
}
