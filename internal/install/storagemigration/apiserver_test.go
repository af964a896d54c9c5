// SPDX-License-Identifier: Apache-2.0

package storagemigration_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
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
	"github.com/sallyport-io/sallyport/internal/install/storagemigration"
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
	"widgets": "Widget", "gadgets": "Gadget", "bolts": "Bolt", "screws": "Screw", "levers": "Lever", "nuts": "Nut", "rivets": "Rivet",
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
	// broken makes the conversion of objects fail that are named so.
	broken atomic.Bool
	logs   lab.Log // of migrators
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

// open starts a shop of some kinds.
func open(t *testing.T, plurals []string, options []sallyport.Option, start ...sallyporttest.StartOption) *shop {
	t.Helper()
	s := &shop{}
	s.broken.Store(true)
	for _, plural := range plurals {
		options = append(options, sallyport.WithCRDs(definition(plural)), sallyport.WithConverters(
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
	if object.GetName() == "broken" && s.broken.Load() {
		return errors.New("spec.size: is not a number")
	}
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
	s.edit(t, plural, types.JSONPatchType, patch)
}

func (s *shop) edit(t *testing.T, plural string, of types.PatchType, patch string) {
	t.Helper()
	if _, err := s.crds.ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), plural+"."+group, of, []byte(patch), metav1.PatchOptions{}); err != nil {
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
func (s *shop) ask(t *testing.T, method string, question, answer any) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.etcd+"/v3/kv/"+method, bytes.NewReader(body))
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
type etcdRange struct {
	Header struct{ Revision string }
	Kvs    []struct{ Value string }
}

// inEtcd counts objects by the version in which they are stored.
func (s *shop) inEtcd(t *testing.T, plural string) map[string]int {
	t.Helper()
	prefix := "/registry/" + group + "/" + plural + "/"
	var answer etcdRange
	s.ask(t, "range", map[string][]byte{"key": []byte(prefix), "range_end": []byte(prefix[:len(prefix)-1] + "0")}, &answer)
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

// always leads.
type always struct{}

func (always) Leading() bool            { return true }
func (always) Changed() <-chan struct{} { return nil }

// run has a migrator work until the test, or what is returned, ends it.
func (s *shop) run(t *testing.T, plural string, pace storagemigration.Pace) (stop func(), metrics *prometheus.Registry) {
	t.Helper()
	metrics = prometheus.NewRegistry()
	pace.Every, pace.Settle = 100*time.Millisecond, 200*time.Millisecond
	m, err := storagemigration.New(storagemigration.Options{
		CRD: plural + "." + group, Client: s.config, Logger: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &s.logs), nil)), Metrics: metrics, Leader: always{}, Pace: pace,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	var stopped bool
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-ended; err != nil {
				t.Errorf("the migrator ended with %v", err)
			}
		}
	}
	t.Cleanup(stop)
	return stop, metrics
}

// count is the value of a metric, with the result if it has one.
func count(t *testing.T, metrics *prometheus.Registry, name, result string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			matches := result == ""
			for _, label := range metric.GetLabel() {
				matches = matches || label.GetValue() == result
			}
			if family.GetName() == "sallyport_storage_migration_"+name && matches {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return 0
}

func eventually(t *testing.T, what string, done func() error) {
	t.Helper()
	if err := lab.Await(t.Context(), 2*time.Minute, what, func(context.Context) error { return done() }); err != nil {
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

// awaitMiddle waits until some objects are stored in a version, and not all.
func (s *shop) awaitMiddle(t *testing.T, plural, version string) {
	t.Helper()
	eventually(t, "some are rewritten", func() error {
		if counts := s.inEtcd(t, plural); counts[version] == 0 || len(counts) < 2 {
			return fmt.Errorf("there are %v", counts)
		}
		return nil
	})
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

// etcd forgets what was listed before all of it is rewritten: the API server answers 410.
func TestMigrationGoesOnAfterACompactionOnARealAPIServer(t *testing.T) {
	t.Parallel()
	s := open(t, []string{"widgets"}, nil, sallyporttest.WithAPIServer(sallyporttest.WithAPIServerFlag("watch-cache", "false"))) // which could answer from memory
	s.fill(t, "widgets", 60)
	s.store(t, "widgets", after)
	s.run(t, "widgets", storagemigration.Pace{Page: 10, PerSecond: 20})
	s.awaitMiddle(t, "widgets", after)
	var now etcdRange
	s.ask(t, "range", map[string][]byte{"key": []byte("/")}, &now)
	s.ask(t, "compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, &struct{}{})
	s.awaitStored(t, "widgets", after)
	if got := s.inEtcd(t, "widgets")[after]; got != 60 {
		t.Errorf("%d objects are left of 60", got)
	}
	if !strings.Contains(s.logs.String(), "goes on with the state of now") {
		t.Error("nothing was forgotten: the API server has not answered 410")
	}
}

// Each of the tests has kinds of its own.
func TestStoredObjectsAreMigratedOnARealAPIServer(t *testing.T) {
	t.Parallel()
	s := open(t, slices.Collect(maps.Keys(kinds)), []sallyport.Option{sallyport.WithStorageMigration("nuts."+group, "rivets."+group)})

	t.Run("all are rewritten and nothing else changes, for two definitions at a time", func(t *testing.T) {
		t.Parallel()
		s.fill(t, "widgets", 300)
		s.fill(t, "gadgets", 20)
		was := s.list(t, "widgets")
		_, widgets := s.run(t, "widgets", storagemigration.Pace{Page: 70, PerSecond: 100})
		for range 2 { // another one works on it too, as Kubernetes' own may
			s.run(t, "gadgets", storagemigration.Pace{PerSecond: 5})
		}
		s.store(t, "widgets", after)
		s.store(t, "gadgets", after)
		s.awaitMiddle(t, "widgets", after)
		if got := s.storedVersions(t, "widgets"); got != before+" "+after {
			t.Errorf("in the middle storedVersions is %s", got)
		}
		if err := s.of("widgets", after).Delete(t.Context(), "o0299", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.create(t, "widgets", "made-meanwhile")
		s.awaitStored(t, "widgets", after)
		s.awaitStored(t, "gadgets", after)
		is := s.list(t, "widgets")
		delete(was, "o0299")
		delete(is, "made-meanwhile")
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("objects have changed, or lost managed fields or their status:\n%s", diff)
		}
		eventually(t, "it is told that all are migrated", func() error {
			if got := s.events(t, "widgets", "StorageMigrated"); !strings.Contains(got, "stored as v1") {
				return fmt.Errorf("the events say %q", got)
			}
			return nil
		})
		if got := count(t, widgets, "objects_total", "rewritten"); got < 299 || got > 301 {
			t.Errorf("%v objects are counted as rewritten", got)
		}
		if got := count(t, widgets, "pending", ""); got != 0 {
			t.Errorf("pending is %v", got)
		}
	})

	t.Run("the next leader goes on where one has died", func(t *testing.T) {
		t.Parallel()
		s.fill(t, "bolts", 60)
		s.store(t, "bolts", after)
		stop, _ := s.run(t, "bolts", storagemigration.Pace{Page: 7, PerSecond: 20})
		s.awaitMiddle(t, "bolts", after)
		stop()
		left := s.inEtcd(t, "bolts")
		if left[before] == 0 || left[after] == 0 {
			t.Fatalf("it was stopped too late: %v", left)
		}
		if got := s.storedVersions(t, "bolts"); got != before+" "+after {
			t.Fatalf("storedVersions is %s, and %v are stored", got, left)
		}
		_, metrics := s.run(t, "bolts", storagemigration.Pace{Page: 7})
		s.awaitStored(t, "bolts", after)
		if got := count(t, metrics, "objects_total", "rewritten"); got != float64(left[before]) {
			t.Errorf("the next one has rewritten %v of %v", got, left)
		}
		if got := count(t, metrics, "objects_total", "unchanged"); got != float64(left[after]) {
			t.Errorf("the next one has found %v of %v as they should be", got, left)
		}
	})

	t.Run("an object that cannot be converted is named, and keeps the old version", func(t *testing.T) {
		t.Parallel()
		s.fill(t, "screws", 5)
		s.create(t, "screws", "broken")
		s.store(t, "screws", after)
		_, metrics := s.run(t, "screws", storagemigration.Pace{})
		eventually(t, "it is told what is wrong", func() error {
			got := s.events(t, "screws", "StorageMigrationBlocked")
			if !strings.Contains(got, "default/broken") || !strings.Contains(got, "spec.size: is not a number") {
				return fmt.Errorf("the events say %q", got)
			}
			return nil
		})
		if diff := cmp.Diff(map[string]int{after: 5, before: 1}, s.inEtcd(t, "screws")); diff != "" {
			t.Errorf("stored are:\n%s", diff)
		}
		if got := s.storedVersions(t, "screws"); got != before+" "+after {
			t.Errorf("storedVersions is %s", got)
		}
		if got := count(t, metrics, "blocked_objects", ""); got != 1 {
			t.Errorf("%v objects are counted as blocked", got)
		}
		s.broken.Store(false)
		s.awaitStored(t, "screws", after)
		if got := s.inEtcd(t, "screws")[after]; got != 6 {
			t.Errorf("%d objects are left of 6", got)
		}
	})

	t.Run("the definition changes in the middle, at last back to the old version", func(t *testing.T) {
		t.Parallel()
		s.fill(t, "levers", 60)
		s.store(t, "levers", after)
		stop, metrics := s.run(t, "levers", storagemigration.Pace{Page: 10, PerSecond: 20})
		s.awaitMiddle(t, "levers", after)
		// As when the authority is rotated: another generation, the same storage version.
		s.edit(t, "levers", types.MergePatchType, `{"spec":{"names":{"shortNames":["lv"]}}}`)
		s.awaitStored(t, "levers", after)
		if got := count(t, metrics, "objects_total", "unchanged"); got < 60 {
			t.Errorf("before it pruned it looked once more at %v of 60 objects", got)
		}
		stop()

		s.store(t, "levers", before)
		stop, _ = s.run(t, "levers", storagemigration.Pace{Page: 10, PerSecond: 20})
		s.awaitMiddle(t, "levers", before)
		s.store(t, "levers", after)
		s.awaitMiddle(t, "levers", after)
		s.store(t, "levers", before)
		s.awaitStored(t, "levers", before)
		stop()
		if got := s.inEtcd(t, "levers")[before]; got != 60 {
			t.Errorf("%d objects are left of 60", got)
		}
	})

	// Two replicas, at the usual pace: the one that leads migrates, with the rights that are printed.
	t.Run("the application has the rights that it needs", func(t *testing.T) {
		t.Parallel()
		s.fill(t, "nuts", 60)
		s.fill(t, "rivets", 1)
		s.store(t, "nuts", after)
		s.store(t, "rivets", after)
		s.awaitStored(t, "nuts", after)
		s.awaitStored(t, "rivets", after)
		if got := s.inEtcd(t, "nuts")[after]; got != 60 {
			t.Errorf("%d objects are left of 60", got)
		}
		eventually(t, "it is told", func() error {
			if got := s.events(t, "nuts", "StorageMigrated"); strings.Count(got, "60 of them were rewritten") != 1 {
				return fmt.Errorf("the events say %q", got)
			}
			return nil
		})
	})
}
