// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/imagepull"
)

// served returns the handler at a path of a server that follows a file, and of one without.
func served(t *testing.T, text, path string) map[string]admission.Handler {
	t.Helper()
	out := map[string]admission.Handler{}
	r := startLive(t, text)
	for _, component := range r.components {
		for _, w := range component.Webhooks {
			if w.Path == path {
				out["a server that follows the file"] = w.Handler
			}
		}
	}
	c, err := Load(file(t, configHead+text), given(t, "--url", "https://127.0.0.1:9443"))
	if err != nil {
		t.Fatal(err)
	}
	webhooks, err := c.Define(NoSources())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range webhooks {
		if w.Path == path {
			out["the definitions"] = w.Handler
		}
	}
	if len(out) != 2 {
		t.Fatalf("%s is served by %d of 2", path, len(out))
	}
	return out
}

func TestAGivenPathAnswersForEachWebhookOfTheEntry(t *testing.T) {
	pods := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespaces := metav1.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	projects := metav1.GroupVersionResource{Group: "project.openshift.io", Version: "v1", Resource: "projectrequests"}
	const badImage = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"a","image":"elsewhere.example/app:1","imagePullPolicy":"Always"}]}}`
	for name, c := range map[string]struct {
		config, path string
		req          admissionv1.AdmissionRequest
		object, old  string
		message      string // of the denial; empty for a patch
		fault        string // of a server that cannot ask the API server; empty for none
	}{
		"projectlimit counts project requests": {
			"webhooks: [{name: projectlimit, path: /validate-project, settings: {limit: 0}}]\n", "/validate-project",
			admissionv1.AdmissionRequest{Resource: projects, Operation: admissionv1.Create}, `{"metadata":{"name":"p"}}`, "", "p", "namespaces are not read yet",
		},
		"projectlimit stamps namespaces": {
			"webhooks: [{name: projectlimit, path: /validate-project}]\n", "/validate-project",
			admissionv1.AdmissionRequest{Resource: namespaces, Operation: admissionv1.Create}, `{"metadata":{"name":"p"}}`, "", "", "",
		},
		"imagepull checks updates": {
			"webhooks: [{name: imagepull, path: /images, settings: {allowedRegistries: [registry.example]}}]\n", "/images",
			admissionv1.AdmissionRequest{Resource: pods, Operation: admissionv1.Update}, badImage, `{"spec":{"containers":[{"name":"a","image":"registry.example/app:1"}]}}`, "registry", "",
		},
		"imagepull without a mutating webhook checks all": {
			"webhooks: [{name: imagepull, path: /images, settings: {alwaysPull: false, allowedRegistries: [registry.example]}}]\n", "/images",
			admissionv1.AdmissionRequest{Resource: pods, Operation: admissionv1.Create}, badImage, "", "registry", "",
		},
		"poddefault checks authors": {
			"webhooks: [{name: poddefault, path: /add-cred}]\n", "/add-cred",
			admissionv1.AdmissionRequest{Resource: metav1.GroupVersionResource{Group: "kubeflow.org", Version: "v1alpha1", Resource: "poddefaults"}, Operation: admissionv1.Create},
			`{"metadata":{"name":"p"},"spec":{"selector":{},"env":[{"name":"a=b"}]}}`, "", "env", "whether the author may create pods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := c.req
			req.UserInfo.Username, req.Namespace, req.Name = "alice", "team", "p"
			req.Object, req.OldObject = runtime.RawExtension{Raw: []byte(c.object)}, runtime.RawExtension{Raw: []byte(c.old)}
			for who, handler := range served(t, c.config, c.path) {
				resp, err := handler.Handle(context.Background(), &req)
				switch {
				case err != nil && c.fault != "" && strings.Contains(err.Error(), c.fault):
				case err != nil:
					t.Errorf("%s: %v", who, err)
				case c.message == "" && (!resp.Allowed || len(resp.Patch) == 0):
					t.Errorf("%s: want a patch, got %+v", who, resp)
				case c.message != "" && (resp.Allowed || resp.Status.Code == 400 || !strings.Contains(resp.Status.Message, c.message)):
					t.Errorf("%s: want a denial, got %+v", who, resp.Status)
				}
			}
		})
	}
}

func TestAGivenPathDecidesOnExcludedPods(t *testing.T) {
	asked := func(w string, answer *admission.Response) admission.Webhook {
		return admission.Webhook{Name: w, Handler: admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) { return answer, nil })}
	}
	index := NoSources()
	c := Default()
	path := "/add-cred"
	c.Webhooks[0].Path = &path
	webhooks, err := c.Define(index)
	if err != nil {
		t.Fatal(err)
	}
	all, ok := webhooks[0].Handler.(halves)
	if !ok {
		t.Fatalf("the handler is a %T", webhooks[0].Handler)
	}
	for i := range all {
		answer := admission.Allowed()
		if all[i].Name == poddefault.ExcludedName {
			answer = admission.DeniedResponse("excluded")
		}
		all[i].Handler = asked(all[i].Name, answer).Handler
	}
	resp, err := all.Handle(context.Background(), &admissionv1.AdmissionRequest{
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Operation: admissionv1.Create,
	})
	if err != nil || resp.Allowed {
		t.Errorf("the webhook for excluded pods was not asked: %+v, %v", resp, err)
	}
}

func TestEachWebhookOfAnEntryCanHaveAPathAndANameOfItsOwn(t *testing.T) {
	r := startLive(t, `webhooks:
- {name: dataset, failurePolicy: Ignore, timeoutSeconds: 7, names: {dataset.sallyport.io: schedulepod.fluid.io}}
- {name: imagepull, paths: {validate.imagepull.sallyport.io: /check-images, imagepull.sallyport.io: /pull}}
`)
	if got := strings.Join(r.registered("dataset"), ","); got != "schedulepod.fluid.io Ignore" {
		t.Errorf("registered are %s", got)
	}
	for _, w := range r.components["dataset"].Registered() {
		if r.adjust(&w); w.TimeoutSeconds != 7 {
			t.Errorf("%s has the timeout %d", w.Name, w.TimeoutSeconds)
		}
	}
	for path, patched := range map[string]bool{"/pull": false, "/check-images": false} {
		if allowed, got, err := r.ask(path, "app"); err != nil || !allowed || got != patched {
			t.Errorf("%s: %v %v %v", path, allowed, got, err)
		}
	}
	if _, _, err := r.ask(imagepull.MutatingPath, "app"); err == nil {
		t.Error("the default path is still served")
	}
}

func TestPathsAndNamesChangeAtTheNextStart(t *testing.T) {
	r := startLive(t, "webhooks: [{name: servicetype, names: {servicetype.sallyport.io: services.example.com}}]\n")
	r.write("webhooks: [{name: servicetype, failurePolicy: Ignore, names: {servicetype.sallyport.io: other.example.com}}]\n")
	select {
	case <-r.changes:
	case <-time.After(30 * time.Second):
		t.Fatal("the file was not read")
	}
	if got := strings.Join(r.registered("servicetype"), ","); got != "services.example.com Ignore" {
		t.Errorf("registered are %s", got)
	}
	if note := *r.detail.Load(); !strings.Contains(note, "paths and names of servicetype") {
		t.Errorf("the note is %q", note)
	}
}

func TestPathsAndNamesThatCannotWorkAreReported(t *testing.T) {
	for text, want := range map[string]string{
		"{name: imagepull, path: /apply-poddefault}":                                                                       ":5: webhooks[1].path: Invalid value: \"/apply-poddefault\": it is the path of poddefault.sallyport.io, too",
		"{name: imagepull, path: /validate-servicetype}":                                                                   "it is the path of servicetype.sallyport.io, too",
		"{name: imagepull, path: /readyz}":                                                                                 "the server's own",
		"{name: imagepull, path: /a, paths: {imagepull.sallyport.io: /b}}":                                                 "path is the path of this webhook",
		"{name: imagepull, paths: {imagepull.sallyport.io: /b, validate.imagepull.sallyport.io: /b}}":                      "set only path",
		"{name: imagepull, paths: {mutate.sallyport.io: /b}}":                                                              ":5: webhooks[1].paths[mutate.sallyport.io]: Unsupported value",
		"{name: imagepull, names: {mutate.sallyport.io: a.example.com}}":                                                   "Unsupported value",
		"{name: imagepull, names: {imagepull.sallyport.io: validate.imagepull.sallyport.io}}":                              "it is the name of ",
		"{name: imagepull, names: {imagepull.sallyport.io: images}}":                                                       "at least three parts",
		"{name: imagepull, paths: {imagepull.sallyport.io: b}}":                                                            "must begin with a slash",
		"{name: poddefault, enabled: true, names: {poddefault.sallyport.io: poddefaults-webhook-deployment.kubeflow.org}}": "find it by its name",
	} {
		entries := "- {name: poddefault}\n- " + text + "\n"
		if strings.Contains(text, "name: poddefault,") {
			entries = "- " + text + "\n"
		}
		_, err := Load(file(t, configHead+"webhooks:\n"+entries), given(t, "--url", "https://127.0.0.1:9443"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
