// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/sidebyside"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
)

const markup = `"><img src=x onerror=alert(1)><script>alert(1)</script>`

func newDeployment(namespace, name string, labels map[string]string) *appsv1.Deployment {
	pod := newPod(namespace, name, labels, nil)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
}

// credentials is a PodDefault that brings a Secret.
func credentials(namespace string) *kubeflowv1alpha1.PodDefault {
	return &kubeflowv1alpha1.PodDefault{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"},
		Spec: kubeflowv1alpha1.PodDefaultSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"uses-credentials": "true"}}, Desc: markup,
			Env:     []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter4"}},
			Volumes: []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "user-gcp-sa"}}}},
		},
	}
}

func testPodPage(t *testing.T, w *world) {
	w.create(t, newNamespace("team-c"))
	pd := credentials("team-c")
	w.create(t, pd, newPodDefault("team-c", "other", "uses-other", "hunter5"))
	selected := map[string]string{"uses-credentials": "true"}
	stored := newPod("team-c", "web-0", selected, map[string]string{
		meta.Mark("credentials"): pd.ResourceVersion, meta.DecisionsAnnotation: "credentials",
		"example.com/markup": markup, "example.com/large": strings.Repeat("y", 200<<10),
	})
	stored.Spec.Volumes = pd.Spec.Volumes
	stored.Spec.Containers[0].Env = slices.Concat(pd.Spec.Env, []corev1.EnvVar{{Name: "MARKUP", Value: markup}})
	w.create(t, stored, newDeployment("team-c", "web", selected))

	has(t, w.page(t, "", "/pod?namespace=team-c", http.StatusOK), "web-0", "credentials", "!hunter")
	body := w.page(t, "", "/pod?namespace=team-c&type=pod&name=web-0", http.StatusOK)
	has(t, body, "PodDefault team-c/credentials", "current revision", "label uses-other: it wants &#34;true&#34;, the pod has no such label",
		"<ins>    - name: PASSWORD</ins></td><td role=\"cell\" class=\"origin o0\">PodDefault team-c/credentials</td>", "spec.volumes[credentials]", "it is shown as it is stored, without what PodDefaults added",
		"hidden ", "Webhooks and policies", "!hunter", "!<img", "!<script>", "!onerror", "!yyyy")
	body = w.page(t, "", "/pod?namespace=team-c&type=pod&name=web-0&values=show", http.StatusOK)
	has(t, body, "hunter4", "onerror", "bytes in all", "!<img", "!<script>", "!hidden ", "!"+strings.Repeat("y", 2*sidebyside.MaxCharacters))
	has(t, w.page(t, "", "/pod?namespace=team-c&type=deploy&name=web", http.StatusOK), "Pod team-c/web-", "applied", "<ins>    - name: PASSWORD</ins>", "!hunter4")

	has(t, w.page(t, "", "/pod?namespace=team-c&type=pod&name=gone", http.StatusNotFound), "There is no such object")
	has(t, w.page(t, "", "/pod?namespace=team-c&type=secret&name=user-gcp-sa", http.StatusBadRequest), "no kind &#34;secret&#34; that has pods is known")
	w.page(t, "", "/pod?namespace=team-c&type=pod&name=..", http.StatusBadRequest)
	w.page(t, "", "/pod?namespace=team-c&type=pod&name=a%2f..%2f..%2fsecrets", http.StatusBadRequest)
}

// post sends a form with a text or a file.
func (w *world) post(t *testing.T, user, text string, file bool, want int, pairs ...string) string {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(pairs); i += 2 {
		_ = form.WriteField(pairs[i], pairs[i+1]) // into memory
	}
	if file {
		part, err := form.CreateFormFile("file", "manifest.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte(text)) // into memory
	} else {
		_ = form.WriteField("manifest", text)
	}
	_ = form.Close()
	r := localRequest(http.MethodPost, "/try", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	response, page := visitPage(t, w.options(user), r)
	if response.StatusCode != want {
		t.Fatalf("status %d, want %d:\n%s", response.StatusCode, want, page)
	}
	return page
}

const triedDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: new}
spec:
  selector: {matchLabels: {uses-credentials: "true"}}
  template:
    metadata: {labels: {uses-credentials: "true"}}
    spec: {containers: [{name: main, image: example.com/main}]}
`

func testTryPage(t *testing.T, w *world) {
	for _, file := range []bool{false, true} {
		has(t, w.post(t, "", triedDeployment, file, http.StatusOK, "namespace", "team-c"),
			"PodDefault team-c/credentials", "<ins>    - name: PASSWORD</ins>", "kubectl apply --namespace team-c -f - &lt;&lt;&#39;END&#39;", "!hunter4")
	}
	has(t, w.post(t, "", triedDeployment, false, http.StatusOK, "namespace", "team-c", "values", "show"), "hunter4")
	notebook := "apiVersion: kubeflow.org/v1\nkind: Notebook\nmetadata: {name: nb, namespace: team-c, labels: {uses-credentials: 'true'}}\nspec: {template: {spec: {containers: [{name: nb, image: x}]}}}\n"
	has(t, w.post(t, "", notebook, false, http.StatusOK, "namespace", "team-c"), "Pod team-c/nb-0 of Notebook", "<ins>    - name: PASSWORD</ins>")

	// A PodDefault as it is, and edited.
	loaded := w.page(t, "", "/try?namespace=team-c&type=PodDefault&name=credentials", http.StatusOK)
	has(t, loaded, "hunter4", "!resourceVersion", "!managedFields", "!<img", "!<script>")
	edited := "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: credentials, namespace: team-c}\nspec: {selector: {matchLabels: {uses-credentials: 'true'}}, env: [{name: PASSWORD, value: hunter6}, {name: MORE, value: x}]}\n"
	has(t, w.post(t, "", edited, false, http.StatusOK, "namespace", "team-c"),
		"1 of 2 workloads would change, 1 would be denied", "Pod team-c/web-0", "Deployment team-c/web", "<ins>    - name: MORE</ins>", "PodDefault team-c/credentials", "Running pods stay as they are")
	var after kubeflowv1alpha1.PodDefault
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "team-c", Name: "credentials"}, &after); err != nil || len(after.Spec.Env) != 1 {
		t.Errorf("the PodDefault has changed: %v, %v", after.Spec.Env, err)
	}

	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"no YAML":              {"a: [", "manifest:1: "},
		"not an object":        {"a: b", "not a Kubernetes object: it has no apiVersion and no kind"},
		"nothing":              {"", "manifest: there is nothing to try"},
		"an unknown field":     {strings.Replace(triedDeployment, "image:", "imago:", 1), "manifest:8: unknown field"},
		"an object of no pods": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "it makes no pods"},
		"markup":               {"apiVersion: v1\nkind: '" + markup + "'\n", "&lt;img"},
	} {
		t.Run(name, func(t *testing.T) {
			has(t, w.post(t, "", tc.text, false, http.StatusOK, "namespace", "team-c"), "This cannot be tried", tc.want, "!<img", "!<script>")
		})
	}
	large := "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {a: '" + strings.Repeat("z", 1<<20) + "'}}\nspec: {containers: [{name: c, image: x}]}\n"
	body := w.post(t, "", large, true, http.StatusOK, "namespace", "team-c")
	if has(t, body, "The text has 1024 KiB. It was tried, and is too long to be repeated here", "Too long: may not be more than 262144 bytes"); len(body) > 64<<10 {
		t.Errorf("the page has %d bytes", len(body))
	}
	has(t, w.post(t, "", strings.Repeat(triedDeployment+"---\n", 300), false, http.StatusOK, "namespace", "team-c"),
		"This cannot be tried", "manifest: it has 300 objects: try at most 50 at a time", "!Pod team-c/new")
	has(t, w.post(t, "", strings.Repeat(triedDeployment+"---\n", maxObjects), false, http.StatusOK, "namespace", "team-c"), "!This cannot be tried", "PodDefault team-c/credentials")
	wide := strings.Replace(triedDeployment, "containers: [", "containers: ["+strings.Repeat("{name: c, image: x, args: ["+strings.Repeat("a,", 100)+"a]}, ", 20), 1)
	has(t, w.post(t, "", strings.Repeat(wide+"---\n", maxObjects), true, http.StatusBadRequest, "namespace", "team-c"), "This page is too large", "or use the command line")
	groups := "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray}\nspec:\n  headGroupSpec: {template: {spec: {containers: [{name: c, image: x}]}}}\n  workerGroupSpecs:\n"
	for i := range 2 * maxObjects {
		groups += fmt.Sprintf("  - {groupName: g%d, template: {spec: {containers: [{name: c, image: x}]}}}\n", i)
	}
	has(t, w.post(t, "", groups, true, http.StatusOK, "namespace", "team-c"), "the objects make more than 50 pods, and only as many are shown")
	has(t, w.post(t, "", strings.Repeat("z", maxBytes), true, http.StatusBadRequest), "the form has more than")
}

// testTryAsks tries objects whose pods the API server would refuse.
func testTryAsks(t *testing.T, w *world) {
	secured := newNamespace("team-d")
	secured.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
	w.create(t, secured)
	bring := func(name string, spec kubeflowv1alpha1.PodDefaultSpec) {
		spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"use": name}}
		w.create(t, &kubeflowv1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: "team-d", Name: name}, Spec: spec})
	}
	bring("host", kubeflowv1alpha1.PodDefaultSpec{Volumes: []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}}}})
	bring("class", kubeflowv1alpha1.PodDefaultSpec{PriorityClassName: "missing"})
	bring("fine", kubeflowv1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "A", Value: "hunter2"}}})
	w.create(t, newDeployment("team-d", "web", map[string]string{"use": "nothing-yet"}))
	pod := func(use string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-d, labels: {use: " + use + "}}\nspec: {containers: [{name: main, image: i}]}\n"
	}
	try := func(user, text string) string {
		t.Helper()
		return w.post(t, user, text, false, http.StatusOK, "namespace", "team-d")
	}
	const denied, notKnown = "Such a pod would be denied", "whether the API server accepts such a pod"
	has(t, try("", pod("host")), denied, "violates PodSecurity &#34;baseline:latest&#34;", "PodDefault team-d/host")
	has(t, try("", pod("class")), denied, "no PriorityClass with name missing was found; spec.priorityClassName comes from PodDefault team-d/class")
	has(t, try("", pod("fine")), "!"+denied, "!"+notKnown, "The API server is asked by dry runs, with your own rights", "!hunter2")
	edited := "apiVersion: kubeflow.org/v1alpha1\nkind: PodDefault\nmetadata: {name: more, namespace: team-d}\nspec: {selector: {matchLabels: {use: nothing-yet}}, priorityClassName: missing}\n"
	has(t, try("", edited), "1 would be denied", "spec.priorityClassName comes from PodDefault team-d/more")

	w.grant(t, "dora", "team-d", "poddefaults.kubeflow.org", "namespaces", "pods", "deployments.apps")
	has(t, try("dora", pod("fine")), "!"+denied, notKnown, "cannot create resource &#34;pods&#34;")
	fine := strings.Replace(edited, "priorityClassName: missing", "env: [{name: A, value: x}]", 1)
	has(t, try("dora", fine), "would change, as far as is known", "whether the API server accepts the pods of 1 workload", "cannot create resource &#34;pods&#34;")
	has(t, try("dora", pod("host")), denied, "violates PodSecurity") // which the console evaluates

	var groups strings.Builder
	groups.WriteString("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: ray, namespace: team-d}\nspec:\n  workerGroupSpecs:\n")
	for i := range maxObjects {
		fmt.Fprintf(&groups, "  - {groupName: g%d, template: {metadata: {labels: {use: fine}}, spec: {containers: [{name: c%d, image: x}]}}}\n", i, i)
	}
	has(t, try("", groups.String()), "!"+notKnown)
	var pods corev1.PodList
	if err := w.client.List(t.Context(), &pods, client.InNamespace("team-d")); err != nil || len(pods.Items) > 0 {
		t.Errorf("pods were created: %v, %v", pods.Items, err)
	}
}

func testWhoPage(t *testing.T, w *world) {
	for _, namespace := range []string{"", "team-c"} {
		has(t, w.page(t, "", "/who?kind=Secret&text=gcp&namespace="+namespace, http.StatusOK),
			"PodDefault team-c/credentials", "spec.volumes[credentials].secret.secretName: user-gcp-sa", "1 pod has", `name=web-0`, "!hunter", "!<img")
	}
	has(t, w.page(t, "", "/who?kind=Secret&text=none", http.StatusOK), "brings such a Secret")
	has(t, w.page(t, "", "/who?kind=Volume&namespace=team-b", http.StatusOK), "PodDefault team-b/third", "!PodDefault team-c")
	has(t, w.page(t, "", "/who?kind=Pod", http.StatusBadRequest), "choose one of the list")
	if body := w.page(t, "", "/who?kind=Secret&text="+url.QueryEscape(markup), http.StatusOK); strings.Contains(body, "<img") {
		t.Errorf("markup in\n%s", body)
	}
}

// testUsersAndPages requests each page as each user.
func testUsersAndPages(t *testing.T, w *world) {
	w.grant(t, "alice", "team-c", "poddefaults.kubeflow.org", "pods", "deployments.apps")
	const hidden, shown = "", "PodDefault team-c/credentials"
	pages := []string{
		"/pod?namespace=team-c&type=pod&name=web-0", "/who?kind=Secret&namespace=team-c", "/who?kind=Secret", "/try?type=poddefault&name=credentials&namespace=team-c",
		"/poddefaults?namespace=team-c",
	}
	for user, want := range map[string][]string{
		"":         {shown, shown, shown, "hunter4", "PodDefault credentials"},
		"alice":    {shown, shown, hidden, "hunter4", "PodDefault credentials"}, // without a namespace it is the default one, of which she has no rights
		"member":   {hidden, hidden, hidden, hidden, hidden},
		"stranger": {hidden, hidden, hidden, hidden, hidden},
	} {
		for i, page := range pages {
			t.Run(fmt.Sprintf("%s as %q", page, user), func(t *testing.T) {
				if want[i] != hidden {
					has(t, w.page(t, user, page, http.StatusOK), want[i])
					return
				}
				has(t, w.page(t, user, page, http.StatusForbidden), "You may not read this", "!user-gcp-sa", "!hunter", "!web-0</")
			})
		}
	}
	for _, user := range []string{"alice", "member", "stranger"} { // pages about the cluster have what the user may read
		for _, page := range []string{"/", "/poddefaults", "/webhooks", "/pod", "/try", "/who"} {
			has(t, w.page(t, user, page, http.StatusOK), "!team-c", "!credentials", "!web-0", "!hunter", "!sallyport-test")
		}
	}
	has(t, w.page(t, "alice", "/pod?namespace=team-c&type=pod&name=web-0", http.StatusOK), "no permission to list", "you may not get the metrics")
	has(t, w.page(t, "alice", "/pod?namespace=team-a&type=pod&name=current", http.StatusForbidden), "!PodDefault team-a")
	has(t, w.page(t, "alice", "/pod?namespace=team-a", http.StatusOK), "you may not list pods of the namespace team-a", "!current</a>")
	has(t, w.post(t, "alice", triedDeployment, false, http.StatusForbidden, "namespace", "team-a"), "!first")
}
