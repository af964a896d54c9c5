// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/registration"
)

func TestBuildConversionsReportsEveryProblem(t *testing.T) {
	config := outside("mistakes")
	config.ConversionEndpoint = &registration.Endpoint{URL: "http://127.0.0.1"}
	_, err := registration.BuildConversions(config, []registration.Conversion{
		{CRD: "crontabs", Path: "convert"},
		{CRD: "crontabs.example.com", Path: "/convert", ReviewVersions: []string{"v2", "v1", "v1"}},
		{CRD: "crontabs.example.com", Path: "/convert?x"},
	}, []byte("no PEM"))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"must be https", "<plural>.<group>", `"convert" must begin`, `"v2" is not supported`, `duplicate "v1"`,
		"duplicate definition", `"/convert?x" must begin`, "no PEM certificate",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestBuildConversionsHasTheStanzaAndNothingElse(t *testing.T) {
	config := outside("stanza")
	config.ConversionEndpoint = &registration.Endpoint{Service: &registration.Service{Namespace: "system", Name: "converters"}}
	ca := authority(t, "stanza")
	got, err := registration.BuildConversions(config, []registration.Conversion{{CRD: "crontabs.example.com", Path: "/convert"}}, ca)
	if err != nil {
		t.Fatal(err)
	}
	stanza := got["crontabs.example.com"]
	if stanza.Spec.Group != nil || stanza.Spec.Names != nil || stanza.Spec.Versions != nil || stanza.Labels != nil {
		t.Errorf("fields that are not ours: %+v", stanza)
	}
	webhook := stanza.Spec.Conversion.Webhook
	service := webhook.ClientConfig.Service
	if *service.Namespace != "system" || *service.Name != "converters" || *service.Path != "/convert" || *service.Port != 443 {
		t.Errorf("service %+v", service)
	}
	if diff := cmp.Diff([]string{"v1"}, webhook.ConversionReviewVersions); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if !bytes.Equal(ca, webhook.ClientConfig.CABundle) {
		t.Error("another CA bundle")
	}
}

func TestConversionsNeedAClientForDefinitions(t *testing.T) {
	options := registration.Options{Conversions: func() []registration.Conversion { return nil }}
	if _, err := registration.NewController(options); err == nil || !strings.Contains(err.Error(), "CRDs") {
		t.Errorf("accepted: %v", err)
	}
}

// definition returns a CustomResourceDefinition with two versions.
func definition(plural string) *apiextensionsv1.CustomResourceDefinition {
	const group = "conversion.example.com"
	version := func(name string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: strings.ToUpper(plural[:1]) + plural[1:]},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", false)},
		},
	}
}

// converter is a controller of conversion stanzas, with the test's definitions.
type converter struct {
	*harness
	crds        apiextensionsclient.CustomResourceDefinitionInterface
	conversions atomic.Pointer[[]registration.Conversion]
}

func newConverter(t *testing.T, config *rest.Config, name string, crds ...string) *converter {
	t.Helper()
	c := &converter{harness: newController(t, config, name, nil), crds: apiextensionsclient.NewForConfigOrDie(config).CustomResourceDefinitions()}
	c.convert(crds...)
	c.options.CRDs = c.crds
	c.options.Conversions = func() []registration.Conversion { return *c.conversions.Load() }
	return c
}

func (c *converter) convert(crds ...string) {
	conversions := []registration.Conversion{}
	for _, crd := range crds {
		conversions = append(conversions, registration.Conversion{CRD: crd + ".conversion.example.com", Path: "/convert"})
	}
	c.conversions.Store(&conversions)
	if c.controller != nil {
		c.controller.Notify()
	}
}

func (c *converter) create(crd *apiextensionsv1.CustomResourceDefinition) {
	c.t.Helper()
	if _, err := c.crds.Create(c.t.Context(), crd, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// stanza returns nil without a webhook.
func (c *converter) stanza(plural string) *apiextensionsv1.WebhookConversion {
	c.t.Helper()
	crd, err := c.crds.Get(c.t.Context(), plural+".conversion.example.com", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return crd.Spec.Conversion.Webhook
}

func testConversion(t *testing.T, config *rest.Config) {
	c := newConverter(t, config, "conversion", "gears")
	c.options.Config.ConversionEndpoint = &registration.Endpoint{Service: &registration.Service{Namespace: "system", Name: "converters"}}
	c.start()
	c.eventually("the missing definition is the status", func() bool {
		err := c.controller.Registered()
		return err != nil && strings.Contains(err.Error(), "gears.conversion.example.com does not exist yet")
	})
	if _, err := c.crds.Get(t.Context(), "gears.conversion.example.com", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("a definition was created: %v", err)
	}

	crd := definition("gears")
	c.create(crd)
	c.registered()
	stanza := c.stanza("gears")
	if stanza == nil || stanza.ClientConfig.Service == nil || stanza.ClientConfig.Service.Name != "converters" ||
		!bytes.Equal(stanza.ClientConfig.CABundle, c.bundle()) || !cmp.Equal(stanza.ConversionReviewVersions, []string{"v1"}) {
		t.Fatalf("stanza %+v", stanza)
	}
	live, err := c.crds.Get(t.Context(), crd.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range live.ManagedFields {
		if entry.Manager != "sallyport" {
			continue
		}
		if fields := string(must(entry.FieldsV1.MarshalJSON())); strings.Contains(fields, "f:versions") || !strings.Contains(fields, "f:conversion") {
			t.Errorf("owns %s", fields)
		}
	}

	// Apply the definition as its project ships it.
	merge := `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`
	if _, err := c.crds.Patch(t.Context(), crd.Name, types.MergePatchType, []byte(merge), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	c.eventually("the stanza is back", func() bool { return c.stanza("gears") != nil })
	c.eventually("the repair is counted and logged", func() bool {
		return c.metric("sallyport_registration_repairs_total") == 1 && strings.Contains(c.log.String(), "manager=somebody")
	})

	next := authority(t, "next")
	c.setBundle(next, nil)
	c.controller.Notify()
	c.registered()
	if !bytes.Equal(c.stanza("gears").ClientConfig.CABundle, next) {
		t.Error("another CA bundle")
	}

	// A recreated definition gets its stanza again.
	if err := c.crds.Delete(t.Context(), crd.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("the deleted definition is the status", func() bool { return c.controller.Registered() != nil })
	c.create(crd)
	c.registered()
	if c.stanza("gears") == nil {
		t.Error("no stanza")
	}

	// Add a definition, then drop all: dropped stanzas stay unchanged.
	c.create(definition("wheels"))
	c.convert("gears", "wheels")
	c.eventually("the second one has its stanza", func() bool { return c.stanza("wheels") != nil })
	c.convert()
	c.eventually("it is logged that they are left", func() bool { return strings.Count(c.log.String(), "left as it is") == 2 })
	c.registered()
	if c.stanza("gears") == nil || c.stanza("wheels") == nil {
		t.Error("a stanza is gone")
	}
}

func testConversionBeforeWebhooks(t *testing.T, config *rest.Config) {
	c := newConverter(t, config, "early", "levers")
	c.define(webhook(admission.TypeMutating, "a.early.example.com"))
	ca := c.bundle()
	c.setBundle(nil, errors.New("a cache is not filled yet"))
	c.options.ConversionCABundle = func() ([]byte, error) { return ca, nil }
	c.create(definition("levers"))
	c.start()
	c.eventually("the stanza is there", func() bool { return c.stanza("levers") != nil })
	if !c.gone() {
		t.Error("webhooks were registered too")
	}
	if err := c.controller.Registered(); err == nil || !strings.Contains(err.Error(), "not filled yet") {
		t.Errorf("status %v", err)
	}
	c.setBundle(ca, nil)
	c.controller.Notify()
	c.registered()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
