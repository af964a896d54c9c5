// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
)

var services = []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Service")}

func allowing(Dependencies) (admission.Handler, error) {
	return admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	}), nil
}

func TestRegisterMakesADefinitionOfKinds(t *testing.T) {
	r := registry(t)
	err := r.Register("addresses", append(services, schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}), allowing,
		WithAliases("addr"), WithInitializedCloud(), WithDisabledByDefault(),
		WithDefinition(admission.AtPath("/addr"), admission.WithMatchCondition("a", "true")))
	if err != nil {
		t.Fatal(err)
	}
	w := r.webhooks[0]
	var resources []string
	for _, rule := range w.Definition.Rules {
		resources = append(resources, rule.APIGroups[0]+"/"+rule.APIVersions[0]+"/"+rule.Resources[0])
	}
	if diff := cmp.Diff([]string{"/v1/services", "networking.k8s.io/v1/ingresses"}, resources); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.Definition.FailurePolicy != admissionregistrationv1.Ignore || w.Definition.Name != "addresses.cloud.sallyport.io" ||
		w.Definition.Path != "/addr" || !w.NeedsInitializedCloud || !w.DisabledByDefault || w.Aliases[0] != "addr" {
		t.Errorf("%+v", w)
	}
}

func TestWhatIsRegisteredTwiceOrWrongIsAnError(t *testing.T) {
	r := registry(t, PersistentVolumeLabel("gce"))
	if err := r.Register("addresses", services, allowing, WithAliases("addr")); err != nil {
		t.Fatal(err)
	}
	other := WithDefinition(admission.AtPath("/other"))
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a name":               {r.Register("addresses", services, allowing, other), `the name "addresses" is taken`},
		"a name that is alias": {r.Register("pvl", services, allowing), `the name "pvl" is taken by webhook "persistentvolumelabel"`},
		"an alias":             {r.Register("a", services, allowing, WithAliases("addr")), `the name "addr" is taken`},
		"an alias of its own":  {r.Register("a", services, allowing, WithAliases("a")), `duplicate alias "a"`},
		"a path":               {r.Register("a", services, allowing, WithDefinition(admission.AtPath("/addresses"))), "path /addresses is taken"},
		"a name of the API": {r.Register("a", services, allowing, WithDefinition(func(w *admission.Webhook) { w.Name = "addresses.cloud.sallyport.io" })),
			"addresses.cloud.sallyport.io is webhook"},
		"no kinds":                       {r.Register("a", nil, allowing), "rules: are missing"},
		"no handler":                     {r.Register("a", services, nil), "New is required"},
		"an invalid name":                {r.Register("No Name", services, allowing), `name "No Name"`},
		"a provider without a source":    {r.RegisterWebhook(PersistentVolumeLabel("external")), `no volume source of provider "external"`},
		"a webhook that is not there":    {r.DeregisterWebhook("b"), `there is no webhook "b"`},
		"a controller that is not there": {r.DeregisterController("b"), `there is no controller "b"`},
		"a controller without a name":    {r.RegisterController("", app.ControllerInitFuncConstructor{}), "name and constructor are required"},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: %v; want %q", name, tc.err, tc.want)
		}
	}
	if _, err := New(PersistentVolumeLabel("gce"), PersistentVolumeLabel("aws"), PersistentVolumeLabel("none")); err == nil ||
		!strings.Contains(err.Error(), `"persistentvolumelabel" is taken`) || !strings.Contains(err.Error(), `provider "none"`) {
		t.Errorf("New reports %v", err)
	}
}

func TestWhatIsDeregisteredCanBeRegisteredAgain(t *testing.T) {
	r := registry(t, PersistentVolumeLabel("gce"))
	if err := r.DeregisterWebhook("pvl"); err != nil { // by its alias
		t.Fatal(err)
	}
	if err := r.RegisterWebhook(PersistentVolumeLabel("aws")); err != nil {
		t.Error(err)
	}
	if err := r.RegisterDefaultControllers(); err != nil {
		t.Fatal(err)
	}
	if err := r.RegisterDefaultControllers(); err == nil {
		t.Error("the controllers are registered twice")
	}
	if diff := cmp.Diff(names.CCMControllerAliases(), r.aliases); diff != "" {
		t.Errorf("aliases of the controllers (-want +got):\n%s", diff)
	}
	if err := r.DeregisterController("service"); err != nil { // an alias
		t.Error(err)
	}
	if _, there := r.controllers[names.ServiceLBController]; there || len(r.controllers) != len(app.DefaultInitFuncConstructors)-1 {
		t.Error("the service controller is still there, or another one is not")
	}
	if err := r.RegisterController(names.ServiceLBController, app.DefaultInitFuncConstructors[names.ServiceLBController], "service"); err != nil {
		t.Error(err)
	}
	if err := r.RegisterController("service", app.DefaultInitFuncConstructors[names.ServiceLBController]); err == nil {
		t.Error("a controller has the name of an alias")
	}
}

func TestCommandReportsEveryProblem(t *testing.T) {
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := registry(t).Command(nil, nil, nil, nil, cliflag.NamedFlagSets{}, nil); err == nil ||
		!strings.Contains(err.Error(), "options are required") || !strings.Contains(err.Error(), "initializer is required") ||
		!strings.Contains(err.Error(), "neither webhooks nor controllers") {
		t.Errorf("%v", err)
	}
	r := registry(t, PersistentVolumeLabel("gce"))
	if err := r.RegisterDefaultControllers(); err != nil {
		t.Fatal(err)
	}
	_, err = r.Command(opts, labelling(zoneOf), app.DefaultInitFuncConstructors, map[string]string{"service": "another"}, cliflag.NamedFlagSets{}, nil)
	if err == nil || !strings.Contains(err.Error(), "is registered and also passed to Command") || !strings.Contains(err.Error(), `"service" is an alias of the controllers`) {
		t.Errorf("%v", err)
	}
	if _, err := r.Build(app.NewBuilder(), nil, labelling(zoneOf), cliflag.NamedFlagSets{}, nil); err == nil || !strings.Contains(err.Error(), "the builder has the controllers") {
		t.Errorf("%v", err)
	}
	if _, err := r.Command(opts, labelling(zoneOf), nil, nil, cliflag.NamedFlagSets{}, nil); err != nil {
		t.Error(err)
	}
	if _, err := r.Command(opts, labelling(zoneOf), nil, nil, cliflag.NamedFlagSets{}, nil); err == nil || !strings.Contains(err.Error(), "already made a command") {
		t.Errorf("%v", err)
	}
}

// helpOf returns the output of --help.
func helpOf(t *testing.T, r *Registry, controllers map[string]app.ControllerInitFuncConstructor) string {
	t.Helper()
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	fss := cliflag.NamedFlagSets{}
	fss.FlagSet("provider").String("of-the-provider", "", "A flag of the provider.")
	command, err := r.Command(opts, labelling(zoneOf), controllers, names.CCMControllerAliases(), fss, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs([]string{"--help"})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFlagsAppearForWhatIsRegistered(t *testing.T) {
	for _, tc := range []struct {
		name            string
		webhooks        []Webhook
		controllers     map[string]app.ControllerInitFuncConstructor
		there, notThere []string
	}{
		{
			"both kinds", []Webhook{PersistentVolumeLabel("gce")}, app.DefaultInitFuncConstructors,
			[]string{"--webhooks", "--controllers", "(default [*])", "--webhook-secure-port", "--webhook-registration", "All webhooks: persistentvolumelabel", "CloudWebhookServer=", "CloudControllerManagerWebhook=", "--of-the-provider"}, nil,
		},
		{"controllers only", nil, app.DefaultInitFuncConstructors, []string{"--controllers", "--of-the-provider"}, []string{"--webhook"}},
		{
			"webhooks only", []Webhook{PersistentVolumeLabel("gce")}, nil,
			[]string{"--webhook-secure-port", "--of-the-provider"}, []string{"--webhooks", "--controllers", "--leader-elect", "--secure-port int"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			help := helpOf(t, registry(t, tc.webhooks...), tc.controllers)
			for _, flag := range tc.there {
				if !strings.Contains(help, flag) {
					t.Errorf("%s is missing", flag)
				}
			}
			for _, flag := range tc.notThere {
				if strings.Contains(help, " "+flag) {
					t.Errorf("%s is there", flag)
				}
			}
		})
	}
}

func TestEveryFlagOfUpstreamIsThere(t *testing.T) {
	opts, err := options.NewCloudControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	upstream := opts.Flags(nil, nil, nil, nil, nil)
	command := build(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), nil)
	for _, set := range []string{"webhook", "webhook serving"} {
		upstream.FlagSet(set).VisitAll(func(flag *cliflagFlag) {
			ours := command.Flags().Lookup(flag.Name)
			// The same values, of a field that other hosts have too.
			types := strings.NewReplacer("int32", "int", "string", "ip")
			if ours == nil {
				t.Errorf("--%s is missing", flag.Name)
			} else if types.Replace(ours.Value.Type()) != types.Replace(flag.Value.Type()) || ours.DefValue != flag.DefValue && flag.Name != "webhook-bind-address" {
				t.Errorf("--%s is a %s with default %q, upstream a %s with %q", flag.Name, ours.Value.Type(), ours.DefValue, flag.Value.Type(), flag.DefValue)
			}
		})
	}
}

func TestDefaultsOfAProviderAreKept(t *testing.T) {
	port, address := 10999, testIP
	opts, err := options.NewCloudControllerManagerOptionsWithProviderDefaults(options.ProviderDefaults{WebhookBindPort: &port, WebhookBindAddress: &address})
	if err != nil {
		t.Fatal(err)
	}
	command, err := registry(t, PersistentVolumeLabel("gce")).Command(opts, labelling(zoneOf), nil, nil, cliflag.NamedFlagSets{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"webhook-secure-port": "10999", "webhook-bind-address": testIP.String()} {
		if got := command.Flags().Lookup(flag).DefValue; got != want {
			t.Errorf("--%s is %s", flag, got)
		}
	}
}

func TestACloudOfWhichNothingCanBeAskedIsToldAtOnce(t *testing.T) {
	noLabels := func(*config.CompletedConfig) cloudprovider.Interface { return &withoutLabels{} }
	refused(t, registry(t, PersistentVolumeLabel("gce")), noLabels, aloneFlags(t, freeport.For(t)),
		"webhook persistentvolumelabel", "cloud provider plain does not implement PV labeling", "remove the webhook from --webhooks")
	nothing := func(*config.CompletedConfig) cloudprovider.Interface { return nil }
	refused(t, registry(t, PersistentVolumeLabel("gce")), nothing, aloneFlags(t, freeport.For(t)), "returned no cloud: set --cloud-provider")
}

// withoutLabels is a cloud that labels nothing.
type withoutLabels struct{ cloudprovider.Interface }

func (*withoutLabels) ProviderName() string { return "plain" }

func TestWebhooksOfABuilderAreListedAndCollide(t *testing.T) {
	build := func(configs map[string]string) (string, error) {
		builder := app.NewBuilder()
		for name, path := range configs {
			builder.RegisterWebhook(name, app.WebhookConfig{Path: path})
		}
		command, err := registry(t, PersistentVolumeLabel("gce")).Build(builder, nil, labelling(zoneOf), cliflag.NamedFlagSets{}, nil)
		if err != nil {
			return "", err
		}
		return command.Flags().Lookup("webhooks").Usage, nil
	}
	if usage, err := build(map[string]string{"greeter": "/greet"}); err != nil || !strings.Contains(usage, "All webhooks: persistentvolumelabel, greeter\n") {
		t.Errorf("%v: %s", err, usage)
	}
	for name, path := range map[string]string{"pvl": "/x", "greeter": pvlPath, "other": "greet"} {
		if _, err := build(map[string]string{name: path}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s at %s: %v", name, path, err)
		}
	}
}
