// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cloud-provider/options"
	"k8s.io/component-base/cli/flag"

	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/internal/registration"
)

type cliflagFlag = pflag.Flag

var testIP = net.IPv4(127, 0, 0, 9)

func TestFlagsThatAreWrongAreRefusedWithARemedy(t *testing.T) {
	for _, tc := range []struct {
		name  string
		flags []string
		want  []string
	}{
		{"port 0", []string{"--webhook-secure-port=0"}, []string{"--webhook-secure-port: serving.securePort: Invalid value: 0: serves no webhooks", "set a port, or omit --webhooks"}},
		{"the port of the controllers", []string{"--webhook-secure-port=10258"}, []string{"cannot be the same value as --secure-port"}},
		{"an invalid port", []string{"--webhook-secure-port=70000"}, []string{"must be between 0 and 65535"}},
		{"an unknown webhook", []string{"--webhooks=foo"}, []string{`--webhooks: Unsupported value: "foo"`, "persistentvolumelabel"}},
		{"an open listener", []string{"--webhook-bind-address=0.0.0.0"}, []string{"any client on the network", "--webhook-authentication: authentication.mode: Required value"}},
		{"an open listener of IPv6", []string{"--webhook-bind-address=::"}, []string{"any client on the network"}},
		{"a key without certificate", []string{"--webhook-tls-private-key-file=/a"}, []string{"--webhook-tls-private-key-file: certificate.privateKeyFile: Forbidden: only with the source Files"}},
		{"files that are not there", []string{"--webhook-tls-private-key-file=/not/there", "--webhook-tls-cert-file=/not/there"}, []string{"--webhook-tls-cert-file", "no such file"}},
		{"a CA without a certificate", []string{"--webhook-tls-ca-file=/a"}, []string{"--webhook-tls-ca-file: certificate.caFile: Forbidden"}},
		{"an invalid cipher suite", []string{"--webhook-tls-cipher-suites=ROT13"}, []string{"--webhook-tls-cipher-suites", "ROT13"}},
		{"an invalid version", []string{"--webhook-tls-min-version=SSL"}, []string{"--webhook-tls-min-version"}},
		{"an invalid authentication", []string{"--webhook-authentication=password"}, []string{"--webhook-authentication", "ClientCA"}},
		{"a client CA that is missing", []string{"--webhook-authentication=ClientCA"}, []string{"--webhook-client-ca-file: authentication.clientCAFile: Required value: the mode ClientCA needs it"}},
		{"a client CA that is not there", []string{"--webhook-authentication=ClientCA", "--webhook-client-ca-file=/not/there"}, []string{"--webhook-client-ca-file", "no such file"}},
		{"a client CA without the authentication for it", []string{"--webhook-client-ca-file=/a"}, []string{"--webhook-client-ca-file: authentication.clientCAFile: Forbidden: only with the mode ClientCA"}},
		{"an invalid policy", []string{"--webhook-failure-policy=Maybe"}, []string{`--webhook-failure-policy: registration.failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"`}},
		{"a timeout that is too long", []string{"--webhook-timeout=31"}, []string{"1 to 30 seconds"}},
		{"two endpoints", []string{"--webhook-url=https://a", "--webhook-service=a/b"}, []string{"--webhook-url: registration.url: Forbidden: not together with service"}},
		{"a URL without TLS", []string{"--webhook-url=http://a"}, []string{"--webhook-url", "https"}},
		{"an invalid Service", []string{"--webhook-service=a"}, []string{"--webhook-service"}},
		{"an invalid port of a Service", []string{"--webhook-service=a/b:c"}, []string{"from 1 to 65535"}},
		{"manifests without a folder", []string{"--webhook-registration=Manifest"}, []string{"--webhook-static-manifests-dir"}},
		{"manifests for a Service", []string{"--webhook-registration=Manifest", "--webhook-static-manifests-dir=/a", "--webhook-service=a/b"}, []string{"takes no Service in static manifests"}},
		{"a folder without the registration for it", []string{"--webhook-static-manifests-dir=/a"}, []string{"--webhook-static-manifests-dir: registration.staticManifestsDir: Forbidden: only with the mode Manifest"}},
		{"an invalid Secret", []string{"--webhook-authority-secret=a"}, []string{"--webhook-authority-secret: certificate.authoritySecret: Invalid value: \"a\": write NAMESPACE/NAME"}},
		{"an invalid registration", []string{"--webhook-registration=mail"}, []string{`"API", "Manifest", "None"`}},
		{"nothing at all", []string{"--webhooks=-pvl"}, []string{"nothing to run"}},
		{"the gate off, alone", []string{gateOff}, []string{"webhooks are enabled, but not served", "--feature-gates=CloudControllerManagerWebhook=true"}},
		{"an invalid limit", []string{"--webhook-max-body-bytes=0"}, []string{"--webhook-max-body-bytes: serving.maxBodyBytes: Invalid value: 0: must be positive"}},
		{"no provider", []string{"--cloud-provider="}, []string{"--cloud-provider cannot be empty"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			port := freeport.For(t)
			refused(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), slices.Concat(tc.flags, aloneFlags(t, port), tc.flags), tc.want...)
			if isOpen(port) {
				t.Error("the port is open")
			}
		})
	}
}

func TestWhichWebhooksAreEnabled(t *testing.T) {
	var webhooks []*Webhook
	for _, w := range []Webhook{{Name: "a", Aliases: []string{"first"}}, {Name: "b"}, {Name: "c", DisabledByDefault: true}} {
		webhooks = append(webhooks, &w)
	}
	for _, tc := range []struct {
		selection string
		choice    bool
		want      string
	}{
		{"", true, ""},
		{"*", true, "ab"},
		{"*,c", true, "abc"},
		{"c", true, "c"},
		{"first", true, "a"},
		{"*,-first", true, "b"},
		{"-a,*", true, "b"},
		{"", false, "ab"},
	} {
		s := &settings{}
		if tc.selection != "" {
			s.webhooks = strings.Split(tc.selection, ",")
		}
		got := ""
		for _, w := range s.enabled(webhooks, tc.choice) {
			got += w.Name
		}
		if got != tc.want {
			t.Errorf("--webhooks=%s (%v): %q, want %q", tc.selection, tc.choice, got, tc.want)
		}
	}
}

func TestNoControllers(t *testing.T) {
	for selection, want := range map[string]bool{"": true, "-*": true, "-foo": true, "*": false, "foo": false, "-foo,*": false, "-foo,bar": false} {
		if got := noControllers(strings.Split(selection, ",")); got != want {
			t.Errorf("--controllers=%s: %v", selection, got)
		}
	}
}

func TestWhereTheAPIServerFindsTheWebhooks(t *testing.T) {
	for _, tc := range []struct {
		address, url, service string
		want                  string
		hosts                 []string
	}{
		{"127.0.0.1", "", "", "https://127.0.0.1:10260", []string{"localhost", "127.0.0.1"}},
		{"0.0.0.0", "", "", "https://127.0.0.1:10260", []string{"localhost", "127.0.0.1"}},
		{"::", "", "", "https://[::1]:10260", []string{"localhost", "127.0.0.1", "::1"}},
		{"192.0.2.1", "", "", "https://192.0.2.1:10260", []string{"localhost", "127.0.0.1", "192.0.2.1"}},
		{"0.0.0.0", "https://ccm.example.com:1", "", "https://ccm.example.com:1", []string{"localhost", "ccm.example.com", "127.0.0.1"}},
		{"0.0.0.0", "", "a/b:444", "a/b:444", []string{"localhost", "b.a.svc", "127.0.0.1"}},
	} {
		s := &settings{}
		s.Serving.BindAddress, s.Serving.SecurePort, s.Registration.URL = tc.address, 10260, tc.url
		if tc.service != "" {
			s.Registration.Service = &registration.Service{Namespace: "a", Name: "b", Port: 444}
		}
		config := s.config()
		got := config.Endpoint.URL
		if service := config.Endpoint.Service; service != nil {
			got = fmt.Sprintf("%s/%s:%d", service.Namespace, service.Name, service.Port)
		}
		names, addresses := s.hosts(config.Endpoint)
		for _, address := range addresses {
			names = append(names, address.String())
		}
		if got != tc.want || !slices.Equal(names, tc.hosts) {
			t.Errorf("%+v: %s, %v", tc, got, names)
		}
	}
}

func TestTheSecretOfTheAuthority(t *testing.T) {
	for _, tc := range []struct{ registration, secret, service, want string }{
		{"API", "", "", "kube-system/cloud-controller-manager-webhook-authority"},
		{"API", "", "a/b", "a/cloud-controller-manager-webhook-authority"},
		{"API", "c/d", "a/b", "c/d"},
		{"None", "c/d", "", "c/d"},
		{"API", "none", "", "/"},
		{"None", "", "", "/"},
		{"Manifest", "", "", "/"},
	} {
		s := &settings{}
		s.Certificate.DefaultSecret, s.Certificate.AuthoritySecret = pairName+"-authority", tc.secret
		s.Registration.Mode = registration.Mode(tc.registration)
		if tc.service != "" {
			s.Registration.Service = &registration.Service{Namespace: "a", Name: "b"}
		}
		namespace, name := s.secret()
		if got := namespace + "/" + name; got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

func TestPrintWebhookConfiguration(t *testing.T) {
	run := func(flags ...string) string {
		t.Helper()
		command := build(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), nil)
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetArgs(append([]string{"--print-webhook-configuration", "--webhooks=*"}, flags...))
		if err := command.Execute(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	printed := run()
	for _, want := range []string{
		"kind: MutatingWebhookConfiguration", "name: cloud-webhooks", "expression: has(object.spec.gcePersistentDisk)", "failurePolicy: Ignore",
		"url: https://127.0.0.1:10260/mutate-persistentvolumelabel", "timeoutSeconds: 10",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in\n%s", want, printed)
		}
	}
	printed = run("--webhook-registration=Manifest", "--webhook-static-manifests-dir=/etc/kubernetes/admission", "--webhook-failure-policy=Fail", "--webhook-timeout=5")
	for _, want := range []string{"name: cloud-webhooks.static.k8s.io", "failurePolicy: Fail", "timeoutSeconds: 5"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in\n%s", want, printed)
		}
	}
	refused(t, registry(t, PersistentVolumeLabel("gce")), labelling(zoneOf), []string{"--print-webhook-configuration"}, "--webhooks enables none")
}

// FuzzSelection passes any text to --webhooks.
func FuzzSelection(f *testing.F) {
	for _, text := range []string{"*", "pvl,-persistentvolumelabel", "-*", ",", "\"a\",b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		opts, err := options.NewCloudControllerManagerOptions()
		if err != nil {
			t.Fatal(err)
		}
		s := takeSettings(opts)
		webhook := PersistentVolumeLabel("gce")
		fss := flag.NamedFlagSets{}
		s.addFlags(&fss, []*Webhook{&webhook}, true)
		if fss.FlagSet("webhook").Set("webhooks", text) != nil {
			return
		}
		enabled := s.enabled([]*Webhook{&webhook}, true)
		if s.validateSelection([]*Webhook{&webhook}) == nil && len(enabled) > 0 && !strings.ContainsAny(text, "*p") {
			t.Errorf("%q enables the webhook", text)
		}
	})
}
