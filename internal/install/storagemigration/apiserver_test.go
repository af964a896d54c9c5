// SPDX-License-Identifier: Apache-2.0

package storagemigration_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	group  = "shop.example.com"
	before = "v1alpha1" // has spec.size
	after  = "v1"       // has spec.width
)

// kinds by their plurals.
var kinds = map[string]string{
	"widgets": "Widget", "screws": "Screw", "nuts": "Nut",
}

// definition stores objects in the version before.
func definition(plural string) *apiextensionsv1.CustomResourceDefinition {
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kinds[plural]), Kind: kinds[plural]},
		},
	}
	for _, version := range []string{before, after} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == before,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"spec":   {Type: "object", XPreserveUnknownFields: &yes},
				"status": {Type: "object", XPreserveUnknownFields: &yes},
			}}},
		})
	}
	return crd
}

// shop is an API server with the definitions, an application that converts them, and who looks at
// what is stored.
type shop struct {
	config  *rest.Config
	objects dynamic.Interface
	crds    apiextensionsclient.Interface
	etcd    string
	// installed is done once: the application has the rights that it prints, and no others.
	installed sync.Once
}

// settle gives a replica the rights that the application prints.
func (s *shop) settle(t *testing.T, app *sallyport.App, settings *sallyport.Settings) {
	s.installed.Do(func() {
		admin, err := client.New(settings.Client, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		command := app.Command()
		var printed bytes.Buffer
		command.SetOut(&printed)
		command.SetArgs([]string{"manifests", "--service", "default/shop", "--part", "rbac"})
		if err := command.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(printed.String(), "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), object); err != nil {
				t.Fatal(err)
			}
			if err := admin.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	})
	settings.Client.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:default:shop", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"},
	}
}

// open starts a shop that migrates objects of some kinds.
func open(t *testing.T, plurals []string, start ...sallyporttest.StartOption) *shop {
	t.Helper()
	s := &shop{}
	var options []sallyport.Option
	for _, plural := range plurals {
		options = append(options, sallyport.WithCRDs(definition(plural)), sallyport.WithStorageMigration(plural+"."+group), sallyport.WithConverters(
			conversion.Unstructured(schema.GroupKind{Group: group, Kind: kinds[plural]}, []string{after, before}, s.convert)))
	}
	app, err := sallyport.New("shop", options...)
	if err != nil {
		t.Fatal(err)
	}
	var environment *envtest.Environment
	start = append(start, sallyporttest.WithReplicas(2), sallyporttest.WithAPIServer(func(e *envtest.Environment) { environment = e }),
		sallyporttest.WithSettings(func(settings *sallyport.Settings) { s.settle(t, app, settings) }))
	cluster := sallyporttest.Start(t, app, start...)
	s.config, s.etcd = cluster.Config, environment.ControlPlane.Etcd.URL.String()
	s.objects, s.crds = dynamic.NewForConfigOrDie(cluster.Config), apiextensionsclient.NewForConfigOrDie(cluster.Config)
	return s
}

func (s *shop) convert(_ context.Context, object *unstructured.Unstructured, version string) error {
	from, to := "size", "width"
	if version == before {
		from, to = to, from
	}
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", from)
	if err != nil || !found {
		return err
	}
	unstructured.RemoveNestedField(object.Object, "spec", from)
	return unstructured.SetNestedField(object.Object, value, "spec", to)
}

func (s *shop) of(plural, version string) dynamic.ResourceInterface {
	return s.objects.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Namespace("default")
}

// fill creates n objects with a status in the version before.
func (s *shop) fill(t *testing.T, plural string, n int) {
	t.Helper()
	for i := range n {
		s.create(t, plural, fmt.Sprintf("o%04d", i))
	}
}

func (s *shop) create(t *testing.T, plural, name string) {
	t.Helper()
	object, err := s.of(plural, before).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + before, "kind": kinds[plural],
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(3)},
	}}, metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		t.Fatal(err)
	}
	object.Object["status"] = map[string]any{"phase": "sold"}
	if _, err := s.of(plural, before).UpdateStatus(t.Context(), object, metav1.UpdateOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
}

// store makes a version the storage version.
func (s *shop) store(t *testing.T, plural, version string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/storage","value":%t},{"op":"replace","path":"/spec/versions/1/storage","value":%t}]`, version == before, version == after)
	if _, err := s.crds.ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), plural+"."+group, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// prune removes the other versions from storedVersions.
func (s *shop) prune(t *testing.T, plural, version string) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"storedVersions":[%q]}}`, version)
	if _, err := s.crds.ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), plural+"."+group, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) storedVersions(t *testing.T, plural string) string {
	t.Helper()
	crd, err := s.crds.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), plural+"."+group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(crd.Status.StoredVersions, " ")
}

// ask asks etcd itself, by its JSON gateway.
func (s *shop) ask(t *testing.T, question, answer any) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.etcd+"/v3/kv/range", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("etcd: %s, %v", response.Status, err)
	}
}

// etcdRange is an answer of etcd.
type etcdRange struct{ Kvs []struct{ Value string } }

// inEtcd counts objects by the version in which they are stored.
func (s *shop) inEtcd(t *testing.T, plural string) map[string]int {
	t.Helper()
	prefix := "/registry/" + group + "/" + plural + "/"
	var answer etcdRange
	s.ask(t, map[string][]byte{"key": []byte(prefix), "range_end": []byte(prefix[:len(prefix)-1] + "0")}, &answer)
	counts := map[string]int{}
	for _, kv := range answer.Kvs {
		raw, err := base64.StdEncoding.DecodeString(kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		var object metav1.TypeMeta
		if err := json.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
		counts[strings.TrimPrefix(object.APIVersion, group+"/")]++
	}
	return counts
}

func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	if err := lab.Await(t.Context(), 4*time.Minute, what, func(context.Context) error { return done() }); err != nil {
		t.Fatal(err)
	}
}

func (s *shop) awaitStored(t *testing.T, plural, version string) {
	t.Helper()
	eventually(t, plural+" are migrated to "+version, func() error {
		if got := s.storedVersions(t, plural); got != version {
			return fmt.Errorf("storedVersions is %s", got)
		}
		return nil
	})
	if got := s.inEtcd(t, plural); len(got) != 1 || got[version] == 0 {
		t.Errorf("storedVersions is %s, but objects are stored as %v", version, got)
	}
}

func (s *shop) list(t *testing.T, plural string) map[string]unstructured.Unstructured {
	t.Helper()
	list, err := s.of(plural, before).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]unstructured.Unstructured{}
	for _, object := range list.Items {
		object.SetResourceVersion("")
		objects[object.GetName()] = object
	}
	return objects
}

func (s *shop) events(t *testing.T, plural, reason string) string {
	t.Helper()
	list, err := kubernetes.NewForConfigOrDie(s.config).EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.Name == plural+"."+group && event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return strings.Join(notes, "\n")
}

// awaitEvent waits until an event of the definition says so.
func (s *shop) awaitEvent(t *testing.T, plural, reason, text string) {
	t.Helper()
	eventually(t, "the event "+reason, func() error {
		if got := s.events(t, plural, reason); !strings.Contains(got, text) {
			return fmt.Errorf("the events say %q", got)
		}
		return nil
	})
}

// Two replicas of the application, with the rights that it prints and no others, have Kubernetes
// migrate the objects.
func TestKubernetesMigratesForAnApplicationOnARealAPIServer(t *testing.T) {
	t.Parallel()
	if lab.KubernetesMinor(t) < 37 { // it serves the API by default since then
		saysWhatToDoInstead(t, open(t, []string{"widgets"}), "widgets")
		return
	}
	s := open(t, []string{"widgets", "screws"})
	lab.StartBinary(t, "kube-controller-manager", "--kubeconfig", sallyporttest.Kubeconfig(t, s.config),
		"--leader-elect=false", "--secure-port", "0", "--controllers", "storage-version-migrator-controller,garbage-collector-controller")

	t.Run("all are rewritten, and nothing else changes, twice", func(t *testing.T) {
		t.Parallel()
		s.fill(t, "widgets", 60)
		was := s.list(t, "widgets")
		s.touch(t, "widgets", "touched")
		s.store(t, "widgets", after)
		s.awaitStored(t, "widgets", after)
		s.awaitEvent(t, "widgets", "StorageMigrated", "stored as "+after)
		s.store(t, "widgets", before) // needs another StorageVersionMigration
		s.awaitStored(t, "widgets", before)
		is := s.list(t, "widgets")
		delete(is, "touched")
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("objects have changed, or lost managed fields or their status:\n%s", diff)
		}
	})

	// The migrator of Kubernetes 1.37 prunes storedVersions after this failure, too.
	t.Run("a failure is reported, keeps the old version, and is repeated", func(t *testing.T) {
		t.Parallel()
		s.fill(t, "screws", 3)
		s.create(t, "screws", "broken")
		repair := s.refuse(t, "screws", "broken")
		s.store(t, "screws", after)
		s.touch(t, "screws", "touched")
		s.awaitEvent(t, "screws", "StorageMigrationBlocked", "StorageVersionMigration screws."+group+" has failed and is repeated later")
		if got := s.events(t, "screws", "StorageMigrationBlocked"); strings.Contains(got, "hunter2") {
			t.Errorf("the event repeats what may be a value: %q", got)
		}
		if got := s.storedVersions(t, "screws"); got != before+" "+after {
			t.Errorf("storedVersions is %s", got)
		}
		if got := s.events(t, "screws", "StorageMigrated"); got != "" {
			t.Errorf("an event says %s", got)
		}
		repair()
		s.awaitStored(t, "screws", after)
		s.awaitEvent(t, "screws", "StorageMigrated", "stored as "+after)
		if got := s.inEtcd(t, "screws")[after]; got != 5 {
			t.Errorf("%d objects are left of 5", got)
		}
	})
}

// touch writes an object until the test ends. kube-controller-manager begins when its garbage
// collector has seen something new of the resource, or after a minute or two.
func (s *shop) touch(t *testing.T, plural, name string) {
	t.Helper()
	s.create(t, plural, name)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; lab.Sleep(ctx, 500*time.Millisecond); i++ {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, i)
			if _, err := s.of(plural, before).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		writing.Wait()
	})
}

// refuse has the API server refuse updates of an object, until what it returns is called.
func (s *shop) refuse(t *testing.T, plural, name string) (repair func()) {
	t.Helper()
	policies := kubernetes.NewForConfigOrDie(s.config).AdmissionregistrationV1()
	_, err := policies.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: plural},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{plural}},
			}}}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("object.metadata.name != %q", name), Message: "hunter2"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: plural},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: plural, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "updates are refused", func() error {
		_, err := s.of(plural, before).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			return errors.New("they are not")
		}
		return nil
	})
	return func() {
		if err := policies.ValidatingAdmissionPolicyBindings().Delete(t.Context(), plural, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAPIServerWithoutStorageVersionMigrationOnARealAPIServer(t *testing.T) {
	t.Parallel()
	var start []sallyporttest.StartOption
	if lab.KubernetesMinor(t) >= 37 {
		start = append(start, sallyporttest.WithAPIServer(sallyporttest.WithAPIServerFlag("runtime-config", "storagemigration.k8s.io/v1=false")))
	}
	saysWhatToDoInstead(t, open(t, []string{"nuts"}, start...), "nuts")
}

// saysWhatToDoInstead migrates objects where the API server does not serve the API, as the event
// about it says.
func saysWhatToDoInstead(t *testing.T, s *shop, plural string) {
	s.fill(t, plural, 3)
	s.store(t, plural, after)
	s.awaitEvent(t, plural, "StorageMigrationBlocked", "does not serve storagemigration.k8s.io/v1, as Kubernetes 1.37 does by default: rewrite the objects with kube-storage-version-migrator")
	if got := s.storedVersions(t, plural); got != before+" "+after {
		t.Errorf("storedVersions is %s", got)
	}
	list, err := s.of(plural, before).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items { // as kubectl replace does
		if _, err := s.of(plural, before).Update(t.Context(), &list.Items[i], metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.prune(t, plural, after)
	s.awaitEvent(t, plural, "StorageMigrated", "stored as "+after)
	s.awaitStored(t, plural, after)
}
