// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

// A setting that is wrong is reported in the same words, with the field's path, whether it comes from
// a flag of serve, a flag of an application, the file or Go code.
func TestAFlagAFileAndAGoValueReportTheSameProblem(t *testing.T) {
	app, err := frontdoor.New("sallyport", frontdoor.WithWebhooks(admission.Mutating("a.example.com",
		admission.Rules(corev1.SchemeGroupVersion.WithResource("pods"), admissionregistrationv1.Create), admission.Mutate(func(context.Context, *corev1.Pod) error { return nil }))),
		frontdoor.WithAuthentication(AuthenticationDelegated, delegatedAuthentication))
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{} // the fields that serve has flags for
	for _, f := range Flags() {
		ours[f.Field] = true
	}
	for _, tc := range []struct {
		flag, field, value string
		set                func(*frontdoor.Settings)
	}{
		{"registration", "registration.mode", "mail", func(s *frontdoor.Settings) { s.Registration.Mode = "mail" }},
		{"static-manifests-dir", "registration.staticManifestsDir", "/a", func(s *frontdoor.Settings) { s.Registration.StaticManifestsDir = "/a" }},
		{"owner", "registration.owner", "role/a", func(s *frontdoor.Settings) { s.Registration.Owner = "role/a" }},
		{"url", "registration.url", "http://a", func(s *frontdoor.Settings) { s.Registration.Service, s.Registration.URL = nil, "http://a" }},
		{"configuration-name", "registration.name", "A", func(s *frontdoor.Settings) { s.Registration.Name = "A" }},
		{"excluded-namespaces", "registration.excludedNamespaces", "A", func(s *frontdoor.Settings) { s.Registration.ExcludedNamespaces = []string{"A"} }},
		{"own-pods", "registration.ownPods", "a", func(s *frontdoor.Settings) { s.Registration.OwnPods = "a" }},
		{"failure-policy", "registration.failurePolicy", "Maybe", func(s *frontdoor.Settings) { s.Registration.FailurePolicy = "Maybe" }},
		{"webhook-timeout", "registration.timeoutSeconds", "31", func(s *frontdoor.Settings) { s.Registration.TimeoutSeconds = 31 }},
		{"review-versions", "registration.reviewVersions", "v2", func(s *frontdoor.Settings) { s.Registration.ReviewVersions = []string{"v2"} }},
		{"certificate-source", "certificate.source", "air", func(s *frontdoor.Settings) { s.Certificate.Source = "air" }},
		{"authority-secret", "certificate.authoritySecret", "a", func(s *frontdoor.Settings) { s.Certificate.AuthoritySecret = "a" }},
		{"tls-cert-file", "certificate.certFile", "/a", func(s *frontdoor.Settings) { s.Certificate.CertFile = "/a" }},
		{"ca-propagation", "certificate.caPropagation", "-1s", func(s *frontdoor.Settings) { s.Certificate.CAPropagation = -time.Second }},
		{"leader-elect-lease-duration", "leaderElection.leaseDuration", "1s", func(s *frontdoor.Settings) { s.LeaderElection.LeaseDuration = time.Second }},
		{"leader-elect-renew-deadline", "leaderElection.renewDeadline", "1s", func(s *frontdoor.Settings) { s.LeaderElection.RenewDeadline = time.Second }},
		{"authentication", "authentication.mode", "password", func(s *frontdoor.Settings) { s.Authentication.Mode = "password" }},
		{"client-ca-file", "authentication.clientCAFile", "/a", func(s *frontdoor.Settings) { s.Authentication.ClientCAFile = "/a" }},
		{"metrics-authentication", "authentication.metrics", "ClientCA", func(s *frontdoor.Settings) { s.Authentication.Metrics = "ClientCA" }},
		{"private-paths", "authentication.privatePaths", "some", func(s *frontdoor.Settings) { s.Authentication.PrivatePaths = "some" }},
		{"bind-address", "serving.bindAddress", "999.1.1.1", func(s *frontdoor.Settings) { s.Serving.BindAddress = "999.1.1.1" }},
		{"secure-port", "serving.securePort", "65536", func(s *frontdoor.Settings) { s.Serving.SecurePort = 65536 }},
		{"metrics-bind-address", "serving.metricsBindAddress", "a", func(s *frontdoor.Settings) { s.Serving.MetricsBindAddress = "a" }},
		{"tls-min-version", "serving.tlsMinVersion", "a", func(s *frontdoor.Settings) { s.Serving.TLSMinVersion = "a" }},
		{"tls-cipher-suites", "serving.tlsCipherSuites", "ROT13", func(s *frontdoor.Settings) { s.Serving.TLSCipherSuites = []string{"ROT13"} }},
		{"max-body-bytes", "serving.maxBodyBytes", "-1", func(s *frontdoor.Settings) { s.Serving.MaxBodyBytes = -1 }},
		{"idle-timeout", "serving.idleTimeout", "90s", func(s *frontdoor.Settings) { s.Serving.IdleTimeout = 90 * time.Second }},
		{"drain-timeout", "serving.drainTimeout", "1s", func(s *frontdoor.Settings) { s.Serving.DrainTimeout = time.Second }},
	} {
		t.Run(tc.field, func(t *testing.T) {
			settings := app.DefaultSettings()
			settings.Client, settings.Registration.Service = &rest.Config{}, &registration.Service{Namespace: "a", Name: "b"}
			tc.set(&settings)
			err := app.Validate(settings)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), tc.field) {
				t.Fatalf("the Go value: %v", err)
			}
			want := err.Error()

			endpoint := []string{"--service=a/b"}
			if tc.flag == "url" {
				endpoint = nil
			}
			command := app.Command()
			command.SetArgs(append([]string{"config", "--" + tc.flag + "=" + tc.value}, endpoint...))
			command.SilenceErrors = true
			if err := command.Execute(); err == nil || err.Error() != "--"+tc.flag+": "+want {
				t.Errorf("the flag of an application: %v\nwant --%s: %s", err, tc.flag, want)
			}
			if ours[tc.field] {
				if _, err := Load("", given(t, append([]string{"--" + tc.flag + "=" + tc.value}, endpoint...)...)); err == nil || err.Error() != "--"+tc.flag+": "+want {
					t.Errorf("the flag of serve: %v\nwant --%s: %s", err, tc.flag, want)
				}
			}

			section, name, _ := strings.Cut(tc.field, ".")
			value := strconv.Quote(tc.value)
			switch kind := setting.Lookup(Default(), tc.field); {
			case kind.Kind() == reflect.Slice:
				value = "[" + value + "]"
			case kind.Kind() == reflect.Int32, kind.Kind() == reflect.Int64 && kind.Type() != reflect.TypeFor[time.Duration]():
				value = tc.value
			}
			text := configHead + section + ": {" + name + ": " + value
			switch {
			case section == "registration" && tc.flag != "url":
				text += ", service: {namespace: a, name: b}}\n"
			case tc.flag == "url":
				text += "}\n"
			default:
				text += "}\nregistration: {service: {namespace: a, name: b}}\n"
			}
			path := file(t, text)
			if _, err := Load(path, nil); err == nil || err.Error() != path+":3: "+want {
				t.Errorf("the file: %v\nwant %s:3: %s", err, path, want)
			}
		})
	}
}

func TestEveryFlagSetsAFieldOfTheSettingsOnce(t *testing.T) {
	fields, names := map[string]bool{}, map[string]bool{}
	for _, f := range hosting.Flags(&Default().SallyportConfiguration, "app", authenticationModes) {
		setting.Lookup(Default(), f.Field) // or it panics
		if fields[f.Field] || names[f.Name] || f.Usage == "" {
			t.Errorf("--%s, of the field %s, is there twice, or has no help", f.Name, f.Field)
		}
		fields[f.Field], names[f.Name] = true, true
	}
}

// settingsIn are the folders of the types of the configuration.
var settingsIn = map[string]string{
	"registration.Settings": "registration", "registration.LeaderElectionSettings": "registration", "certificate.Settings": "serving/certificate",
	"serving.Settings": "serving", "serving.AuthenticationSettings": "serving", "logging.Settings": "internal/hosting/logging", "tracing.Settings": "cmd/internal/serve/tracing",
}

var documentedDefault = regexp.MustCompile(`(?:Default|defaults to) ([^.;]*?(?:\.[0-9]+[^.;]*?)?)(?:: |; |, because|\.$|\. |$)`)

// Each setting is documented where it is declared, and nowhere else in Go; the documented default is
// the one that serve has.
func TestEverySettingHasOneDocAndTheDefaultThatItNames(t *testing.T) {
	told := map[string]string{
		"registration.name": "Default the name of the application", "registration.ownPods": "Default app.kubernetes.io/name and the name of the application",
		"certificate.caLifetime": "Default ten years", "authentication.privatePaths": "Auto for serve",
	}
	config := reflect.TypeOf(Default().SallyportConfiguration)
	for i := range config.NumField() {
		section := config.Field(i)
		folder, ok := settingsIn[section.Type.String()]
		if !ok {
			continue
		}
		docs := docsOf(t, filepath.Join("..", "..", "..", folder), section.Type.Name())
		for name, f := range tags.Fields(section.Type) {
			path := strings.Split(section.Tag.Get("json"), ",")[0] + "." + name
			doc := docs[f.Name]
			if !strings.HasPrefix(doc, name+" ") {
				t.Errorf("%s: the comment does not begin with %s: %q", path, name, doc)
			}
			value := setting.Lookup(Default(), path)
			doc = strings.ReplaceAll(doc, "\n", " ")
			found := documentedDefault.FindStringSubmatch(doc)
			switch {
			case told[path] != "":
				if !strings.Contains(doc, told[path]) {
					t.Errorf("%s: the comment does not say %q: %q", path, told[path], doc)
				}
			case found == nil && !value.IsZero() && (value.Kind() != reflect.Slice || value.Len() > 0):
				t.Errorf("%s: the comment does not name the default %v: %q", path, value, doc)
			case found == nil:
			case found[1] != shown(value):
				t.Errorf("%s: the comment says the default is %q, and it is %q", path, found[1], shown(value))
			}
		}
	}
}

// shown is a value as a comment writes it.
func shown(value reflect.Value) string {
	switch v := value.Interface().(type) {
	case time.Duration:
		if v%time.Minute != 0 {
			return strconv.Itoa(int(v.Seconds())) + "s"
		}
		return strings.TrimSuffix(strings.TrimSuffix(v.String(), "0s"), "0m")
	case []string:
		return strings.TrimSuffix(strings.Join(v[:len(v)-1], ", ")+" and "+v[len(v)-1], " and ")
	}
	text, _ := json.Marshal(value.Interface())
	return strings.Trim(string(text), `"`)
}

// docsOf returns the comments of the fields of a struct.
func docsOf(t *testing.T, folder, name string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			for _, f := range spec.Type.(*ast.StructType).Fields.List {
				for _, ident := range f.Names {
					docs[ident.Name] = strings.TrimSpace(f.Doc.Text())
				}
			}
			return false
		})
	}
	return docs
}
