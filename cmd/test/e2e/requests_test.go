// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// requests makes requests as a user of its own, one after the other.
type requests struct {
	t         *testing.T // of the resource at hand
	client    *http.Client
	host      string
	namespace string
	heard     *journal[shape]
	warnings  *journal[string]
	objects   map[string]map[string]any // testdata/objects.yaml
	fill      *strings.Replacer
	count     int             // of objects, for names
	made      int             // requests that were compared
	covered   map[string]bool // verbs of resources for which one was
}

func newRequests(t *testing.T, w *world, namespace string, heard *journal[shape]) *requests {
	t.Helper()
	config := rest.CopyConfig(w.config)
	config.Impersonate.UserName = shapesUser
	config.Impersonate.Groups = []string{"system:masters", "system:authenticated"}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &requests{t: t, client: client, host: strings.TrimSuffix(config.Host, "/"), namespace: namespace, heard: heard, warnings: &journal[string]{}, covered: map[string]bool{}}
	text, err := os.ReadFile("testdata/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &f.objects); err != nil {
		t.Fatal(err)
	}
	return f
}

// try makes one request.
func (f *requests) try(method, path, contentType string, body []byte) (code int, answer []byte) {
	f.t.Helper()
	request, err := http.NewRequestWithContext(f.t.Context(), method, f.host+path, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := f.client.Do(request)
	if err != nil {
		f.t.Fatal(err)
	}
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = response.Body.Close()
	for _, warning := range response.Header["Warning"] {
		if _, text, ok := strings.Cut(warning, `"`); ok {
			f.warnings.note(strings.TrimSuffix(text, `"`), warning)
		}
	}
	return response.StatusCode, answer
}

const (
	asJSON  = "application/json"
	asMerge = "application/merge-patch+json"
)

// object is a new object of a resource, of a name that no other has.
func (f *requests) object(r *servedResource) *unstructured.Unstructured {
	f.t.Helper()
	template, ok := f.objects[r.key()+"/"+r.Version]
	if !ok {
		template, ok = f.objects[r.key()]
	}
	if !ok {
		f.t.Fatalf("testdata/objects.yaml has no object for %s: add one that the API server accepts", r.key())
	}
	f.count++
	text, err := json.Marshal(template)
	if err != nil {
		f.t.Fatal(err)
	}
	if bytes.Contains(text, []byte("$C")) {
		text = []byte(f.certificates().Replace(string(text)))
	}
	text = []byte(strings.NewReplacer("$NAMESPACE", f.namespace, "$N", strconv.Itoa(f.count)).Replace(string(text)))
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		f.t.Fatal(err)
	}
	object.SetAPIVersion(r.GroupVersion().String())
	object.SetKind(r.kind.Kind)
	if !r.has("get") && !r.has("delete") { // a review, which has no metadata
		return object
	}
	if object.GetName() == "" {
		object.SetName("shape-" + strconv.Itoa(f.count))
	}
	object.SetLabels(map[string]string{"shape": strconv.Itoa(f.count)})
	return object
}

// certificates are what stands for $CSR, $CSRDER and $CA in testdata.
func (f *requests) certificates() *strings.Replacer {
	f.t.Helper()
	if f.fill != nil {
		return f.fill
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "shape"}}, key)
	if err != nil {
		f.t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "shape"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	authority, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	if err != nil {
		f.t.Fatal(err)
	}
	f.fill = strings.NewReplacer(
		"$CSRDER", base64.StdEncoding.EncodeToString(csr),
		"$CSR", base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})),
		"$CA", strings.Trim(string(authority), `"`),
	)
	return f.fill
}

// tour makes the requests of a resource and then those of its sub-resources.
func (f *requests) tour(r *servedResource, all []*servedResource) {
	f.t.Helper()
	f.forget()
	subs := func(do func(sub *servedResource)) {
		for _, sub := range all {
			if sub.sub() != "" && sub.parent() == r.Resource && sub.GroupVersion() == r.GroupVersion() {
				do(sub)
			}
		}
	}
	if !r.has("create") && !r.has("delete") {
		if len(r.verbs) > 0 && !r.has("get") {
			f.t.Errorf("the resource has only the verbs %v", r.verbs)
		}
		subs(func(sub *servedResource) { f.t.Errorf("%s is not reached", sub.Resource) })
		return
	}
	if !r.has("get") { // it is an answer, not an object
		f.answer(r)
		return
	}
	name := f.create(r)
	f.update(r, name)
	f.patch(r, name)
	subs(func(sub *servedResource) { f.subresource(sub, name) })
	f.delete(r, name)
	if r.has("deletecollection") {
		f.deleteCollection(r)
	}
}

// whole is the shape of a request that is about an object of the resource.
func (f *requests) whole(r *servedResource, operation admissionv1.Operation, name string) shape {
	want := shape{Operation: operation, Name: name}
	switch {
	case r.namespaced:
		want.Namespace = f.namespace
	case r.Group == "" && r.parent() == "namespaces":
		want.Namespace = name
	}
	if operation != admissionv1.Delete {
		want.Object = there
	}
	if operation == admissionv1.Update || operation == admissionv1.Delete {
		want.OldObject = there
	}
	return want
}

func (f *requests) create(r *servedResource) (name string) {
	f.t.Helper()
	object := f.object(r)
	f.post(r, f.path(r, ""), object.Object, f.whole(r, admissionv1.Create, object.GetName()))
	return object.GetName()
}

func (f *requests) post(r *servedResource, path string, object any, want shape) {
	f.t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		f.t.Fatal(err)
	}
	f.send(http.MethodPost, path, asJSON, body)
	f.expect(r, want)
	f.cover(r, "create")
}

// cover notes that a verb was tried.
func (f *requests) cover(r *servedResource, verbs ...string) {
	for _, verb := range verbs {
		f.covered[r.GroupVersion().String()+" "+r.Resource+" "+verb] = true
	}
}

// uncovered are the verbs of resources for which no request was made, of those that
// change something or go through admission anyway.
func (f *requests) uncovered(all []*servedResource) (missing []string) {
	for _, r := range all {
		for _, verb := range r.verbs {
			name := r.GroupVersion().String() + " " + r.Resource + " " + verb
			if !slices.Contains([]string{"get", "list", "watch"}, verb) && !f.covered[name] {
				missing = append(missing, name)
			}
		}
	}
	return missing
}

// answer posts what is not stored: bindings, and reviews of who may do what.
func (f *requests) answer(r *servedResource) {
	f.t.Helper()
	object := f.object(r)
	name := ""
	if r.Resource == "bindings" { // it is about a pod
		name = f.quietly(f.pods())
		object.SetName(name)
	}
	f.post(r, f.path(r, ""), object.Object, f.whole(r, admissionv1.Create, name))
	if name != "" {
		f.remove(f.pods(), name)
	}
}

func (f *requests) pods() *servedResource {
	pods := &servedResource{namespaced: true, verbs: metav1.Verbs{"get"}}
	pods.Version, pods.Resource = "v1", "pods"
	pods.kind = pods.GroupVersion().WithKind("Pod")
	return pods
}

// quietly creates an object without a look at what is heard.
func (f *requests) quietly(r *servedResource) (name string) {
	f.t.Helper()
	object := f.object(r)
	body, err := json.Marshal(object.Object)
	if err != nil {
		f.t.Fatal(err)
	}
	f.send(http.MethodPost, f.path(r, ""), asJSON, body)
	f.forget()
	return object.GetName()
}

func (f *requests) forget() { f.heard.take(); f.warnings.take() }

const atOnce = `{"gracePeriodSeconds":0,"propagationPolicy":"Background"}`

// remove deletes an object without a look at what is heard.
func (f *requests) remove(r *servedResource, name string) {
	f.t.Helper()
	f.send(http.MethodDelete, f.path(r, name), asJSON, []byte(atOnce))
	f.forget()
}

// update gets and puts an object. Others write some of them too: after a conflict it
// does so again.
func (f *requests) update(r *servedResource, name string) {
	f.t.Helper()
	if !r.has("update") {
		return
	}
	from := f.path(r, name)
	if r.sub() != "" && !r.has("get") {
		from = strings.TrimSuffix(from, "/"+r.sub())
	}
	for range 20 {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(f.send(http.MethodGet, from, "", nil), &object.Object); err != nil {
			f.t.Fatal(err)
		}
		if object.GetAnnotations() == nil {
			object.SetAnnotations(map[string]string{})
		}
		annotations := object.GetAnnotations()
		annotations["example.com/updated"] = r.Resource
		object.SetAnnotations(annotations)
		body, err := json.Marshal(object.Object)
		if err != nil {
			f.t.Fatal(err)
		}
		f.forget()
		code, answer := f.try(http.MethodPut, f.path(r, name), asJSON, body)
		if code == http.StatusConflict {
			continue
		}
		if code >= http.StatusBadRequest {
			f.t.Fatalf("PUT %s: %d %s", f.path(r, name), code, answer)
		}
		f.expect(r, f.whole(r, admissionv1.Update, name))
		f.cover(r, "update")
		return
	}
	f.t.Fatalf("%s was changed by others all the time", f.path(r, name))
}

func (f *requests) patch(r *servedResource, name string) {
	f.t.Helper()
	if !r.has("patch") {
		return
	}
	f.forget()
	f.send(http.MethodPatch, f.path(r, name), asMerge, []byte(`{"metadata":{"annotations":{"example.com/patched":"true"}}}`))
	f.expect(r, f.whole(r, admissionv1.Update, name))
	f.cover(r, "patch")
}

func (f *requests) delete(r *servedResource, name string) {
	f.t.Helper()
	if !r.has("delete") {
		return
	}
	f.send(http.MethodDelete, f.path(r, name), asJSON, []byte(atOnce))
	f.expect(r, f.whole(r, admissionv1.Delete, name))
	f.cover(r, "delete")
}

// deleteCollection deletes the one object that has the label. Its name is not in the
// request, only in the object.
func (f *requests) deleteCollection(r *servedResource) {
	f.t.Helper()
	f.quietly(r)
	f.send(http.MethodDelete, f.path(r, "")+"?labelSelector=shape%3D"+strconv.Itoa(f.count), asJSON, []byte(atOnce))
	f.expect(r, f.whole(r, admissionv1.Delete, ""))
	f.cover(r, "deletecollection")
}

// subresource makes the requests of a sub-resource of an object.
func (f *requests) subresource(r *servedResource, name string) {
	f.t.Helper()
	switch r.Resource {
	case "pods/attach", "pods/exec", "pods/portforward":
		f.connect(r, name, http.MethodGet, http.MethodPost)
	case "pods/proxy", "services/proxy", "nodes/proxy":
		f.connect(r, name, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete)
	case "pods/binding", "pods/eviction":
		pod := f.quietly(f.pods())
		object := map[string]any{"metadata": map[string]any{"name": pod}}
		if r.sub() == "binding" {
			object["target"] = map[string]any{"kind": "Node", "name": "node"}
		} else {
			object["deleteOptions"] = map[string]any{"gracePeriodSeconds": 0}
		}
		f.post(r, f.path(r, pod), object, f.whole(r, admissionv1.Create, pod))
		if r.sub() == "binding" {
			f.remove(f.pods(), pod)
		}
	case "serviceaccounts/token":
		f.post(r, f.path(r, name), map[string]any{"spec": map[string]any{"audiences": []string{"shapes"}}}, f.whole(r, admissionv1.Create, name))
	default:
		if !r.has("update") && !r.has("patch") && !slices.Equal(r.verbs, []string{"get"}) {
			f.t.Errorf("%s has the verbs %v: there is no request for it", r.Resource, r.verbs)
		}
		f.update(r, name)
		f.patch(r, name)
	}
}

// connect makes requests that go on to a kubelet or a pod, of which there is none: what
// becomes of them after admission does not matter.
func (f *requests) connect(r *servedResource, name string, methods ...string) {
	f.t.Helper()
	for _, method := range methods {
		f.forget()
		f.try(method, f.path(r, name), "", nil)
		f.expect(r, f.whole(r, admissionv1.Connect, name))
	}
	f.cover(r, r.verbs...)
}

// specials makes requests of ConfigMaps and Leases that look otherwise than those of the
// tour.
func (f *requests) specials(all []*servedResource) {
	find := func(resource string) *servedResource {
		return all[slices.IndexFunc(all, func(r *servedResource) bool { return r.Resource == resource })]
	}
	configMaps, leases := find("configmaps"), find("leases")
	for _, special := range []struct {
		name                       string
		resource                   *servedResource
		method, query, contentType string
		change                     func(*unstructured.Unstructured) // of the object that is sent
		toObject                   bool                             // and not to the resource
		want                       func(*shape)
	}{
		{"a name that the API server makes up is not known at first", configMaps, http.MethodPost, "", asJSON,
			func(o *unstructured.Unstructured) { o.SetName(""); o.SetGenerateName(madeUp) }, false, func(s *shape) { s.Name = madeUp }},
		{"a dry run says so", configMaps, http.MethodPost, "?dryRun=All", asJSON, nil, false, func(s *shape) { s.DryRun = true }},
		{"an apply that creates is a creation", configMaps, http.MethodPatch, "?fieldManager=e2e", "application/apply-patch+yaml", nil, true, nil},
		{"an update that creates is a creation", leases, http.MethodPut, "", asJSON, nil, true, nil},
	} {
		f.t.Run(special.name, func(t *testing.T) {
			defer func(outer *testing.T) { f.t = outer }(f.t)
			f.t = t
			f.forget()
			object := f.object(special.resource)
			if special.change != nil {
				special.change(object)
			}
			body, err := json.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			path := f.path(special.resource, "")
			if special.toObject {
				path = f.path(special.resource, object.GetName())
			}
			want := f.whole(special.resource, admissionv1.Create, object.GetName())
			if special.want != nil {
				special.want(&want)
			}
			f.send(special.method, path+special.query, special.contentType, body)
			f.expect(special.resource, want)
		})
	}
}
