// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/imagepull"
	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/hosting"
	"github.com/sallyport-io/sallyport/internal/registration"
)

const configHead = "apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\n"

// maxFlags is the most flags that a reader can scan.
const maxFlags = 28

// file writes a configuration to a file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sallyport.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// given returns the flags of serve after parsing args.
func given(t *testing.T, args ...string) *setting.Given {
	t.Helper()
	flags, defaults := pflag.NewFlagSet("serve", pflag.ContinueOnError), Default()
	for _, f := range Flags() {
		setting.AddTo(flags, defaults, f)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return setting.GivenTo(flags)
}

func TestFlagsOverrideTheFileWhichOverridesTheDefaults(t *testing.T) {
	path := file(t, configHead+`registration: {service: {namespace: a, name: b}, name: hooks, excludedNamespaces: [], timeoutSeconds: 7}
serving: {securePort: 1, drainMin: 1s}
authentication: {privatePaths: Always}
leaderElection: {leaderElect: false}
controllers: null
webhooks: [{name: imagepull, settings: {forbidLatest: true}}, {name: servicetype}]
`)
	c, err := Load(path, given(t, "--configuration-name", "other", "--secure-port=2", "--private-paths=Never", "--leader-elect", "--webhooks", "poddefault", "--webhooks=imagepull", "-v", "3"))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Registration.Service, want.Registration.Name, want.Registration.ExcludedNamespaces, want.Registration.TimeoutSeconds = &registration.Service{Namespace: "a", Name: "b"}, "other", []string{}, 7
	want.Serving.SecurePort, want.Serving.DrainMin = 2, 1e9
	want.Authentication.PrivatePaths = hosting.PrivatePathsNever
	want.Log.Verbosity = 3
	want.Webhooks = c.Webhooks
	if diff := cmp.Diff(want.SallyportConfiguration, c.SallyportConfiguration, cmpopts.IgnoreFields(registration.Settings{}, "Adjust")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, enabled := range map[string]bool{"poddefault": true, "imagepull": true, "servicetype": false, "projectlimit": false} {
		if c.Has(name) != enabled {
			t.Errorf("%s is enabled: %v", name, !enabled)
		}
	}
	if s := c.Settings["imagepull"].(*imagepull.Settings); !s.ForbidLatest || !s.AlwaysPull {
		t.Errorf("the settings of imagepull are %+v", c.Settings["imagepull"])
	}
}

func TestAProblemNamesTheFlagThatHasSetTheField(t *testing.T) {
	path := file(t, configHead+"registration: {service: {namespace: a, name: b}, failurePolicy: Ignore}\nserving:\n  securePort: -1\n")
	_, err := Load(path, given(t, "--failure-policy", "fail", "--metrics-bind-address", "8080"))
	want := path + ":5: serving.securePort: Invalid value: -1: must be between 0 and 65535\n" +
		"--failure-policy: registration.failurePolicy: Unsupported value: \"fail\": supported values: \"Fail\", \"Ignore\"\n" +
		"--metrics-bind-address: serving.metricsBindAddress: Invalid value: \"8080\": write HOST:PORT or :PORT, or 0 to disable it"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestEveryFlagIsAField(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Flags() {
		setting.Lookup(Default(), f.Field) // or it panics
		if seen[f.Field] {
			t.Errorf("--%s is for the field %s, which has another flag", f.Name, f.Field)
		}
		seen[f.Field] = true
	}
	if n := len(Flags()) + 1; n > maxFlags { // and --config
		t.Errorf("serve has %d flags: at most %d, the rest is for the file", n, maxFlags)
	}
}

// TestEveryFieldIsValidated breaks one field after another.
func TestEveryFieldIsValidated(t *testing.T) {
	for text, want := range map[string]string{
		"registration: {mode: both}":                                                               `registration.mode: Unsupported value: "both": supported values: "API", "Manifest", "None"`,
		"registration: {staticManifestsDir: /a}":                                                   "registration.staticManifestsDir: Forbidden: only with the mode Manifest",
		"registration: {mode: Manifest, service: {namespace: a, name: b}}":                         "registration.staticManifestsDir: Required value",
		"registration: {mode: Manifest, staticManifestsDir: a}":                                    `registration.staticManifestsDir: Invalid value: "a": must be an absolute path`,
		"registration: {mode: Manifest, staticManifestsDir: /a, service: {namespace: a, name: b}}": "registration.service: Forbidden: the mode Manifest needs url",
		"registration: {owner: role/a}":                                                            `registration.owner: Invalid value: "role/a": write clusterrole/NAME`,
		"registration: {mode: None, owner: clusterrole/a}":                                         "registration.owner: Forbidden: only with the mode API",
		"registration: {service: webhooks}":                                                        "registration.service: want",
		"registration: {service: {namespace: a, name: b.c}}":                                       "registration.service.name: Invalid value",
		"registration: {service: {namespace: a, name: b, port: 65536}}":                            "registration.service.port: Invalid value: 65536",
		"registration: {service: {namespace: a, name: b}, url: 'https://a'}":                       "registration.url: Forbidden: not together with service",
		"registration: {url: 'http://a'}":                                                          "registration.url: Invalid value: ",
		"registration: {name: A}":                                                                  "registration.name: Invalid value",
		"registration: {namespaceSelector: {matchExpressions: [{key: a, operator: Is}]}}":          "registration.namespaceSelector: Invalid value",
		"registration: {excludedNamespaces: [b, A]}":                                               `registration.excludedNamespaces[1]: Invalid value: "A"`,
		"registration: {ownPods: a}":                                                               `registration.ownPods: Invalid value: "a": write KEY=VALUE`,
		"registration: {failurePolicy: fail}":                                                      `registration.failurePolicy: Unsupported value: "fail"`,
		"registration: {timeoutSeconds: 31}":                                                       "registration.timeoutSeconds: Invalid value: 31: the API server allows 1 to 30 seconds",
		"registration: {foreignTerms: keep}":                                                       `registration.foreignTerms: Unsupported value: "keep": supported values: "Keep", "Refuse"`,
		"registration: {mode: None, service: {namespace: a, name: b}, foreignTerms: Refuse}":       "registration.foreignTerms: Forbidden: only with the mode API",
		"registration: {reviewVersions: [v1, v2, v1]}":                                             `registration.reviewVersions[1]: Unsupported value: "v2"`,
		"registration: {reviewVersions: [v1, v1]}":                                                 `registration.reviewVersions[1]: Duplicate value: "v1"`,
		"certificate: {source: vault}":                                                             `certificate.source: Unsupported value: "vault"`,
		"certificate: {source: Files, certFile: a}":                                                "certificate.privateKeyFile: Required value",
		"certificate: {source: Files, certFile: a, privateKeyFile: b, authoritySecret: a/b}":       "certificate.authoritySecret: Forbidden: only with the source Authority",
		"certificate: {caFile: a}":                                                                 "certificate.caFile: Forbidden: only with the source Files",
		"certificate: {authoritySecret: a}":                                                        `certificate.authoritySecret: Invalid value: "a": write NAMESPACE/NAME`,
		"certificate: {lifetime: -1s}":                                                             "certificate.lifetime: Invalid value: \"-1s\": must be positive",
		"certificate: {caPropagation: -1s}":                                                        "certificate.caPropagation: Invalid value",
		"certificate: {caLifetime: 1h}":                                                            `certificate.lifetime: Invalid value: "48h0m0s": must be at most caLifetime, 1h0m0s`,
		"leaderElection: {leaseDuration: 1s}":                                                      `leaderElection.leaseDuration: Invalid value: "1s": must be longer than renewDeadline, 10s`,
		"leaderElection: {renewDeadline: 2s}":                                                      "leaderElection.renewDeadline: Invalid value: \"2s\": must be longer than 2.4s",
		"leaderElection: {retryPeriod: 0s}":                                                        "leaderElection.retryPeriod: Invalid value: \"0s\": must be positive",
		"authentication: {mode: token}":                                                            `authentication.mode: Unsupported value: "token"`,
		"authentication: {mode: ClientCA}":                                                         "authentication.clientCAFile: Required value",
		"authentication: {clientCAFile: a}":                                                        "authentication.clientCAFile: Forbidden: only with the mode ClientCA",
		"authentication: {clientCommonNames: [a]}":                                                 "authentication.clientCommonNames: Forbidden",
		"authentication: {metrics: ClientCA}":                                                      `authentication.metrics: Unsupported value: "ClientCA": supported values: "None", "Delegated"`,
		"recording: {recentReviews: 1, samplingRatePerMillion: 1}":                                 "recording.recentReviews: Forbidden: only with authentication.metrics Delegated",
		"authentication: {metrics: Delegated}\nserving: {metricsBindAddress: '0'}":                 "authentication.metrics: Forbidden: serving.metricsBindAddress disables metrics",
		"authentication: {privatePaths: Always}\nregistration: {mode: None}":                       "authentication.privatePaths: Forbidden: needs the registration mode API",
		"authentication: {privatePaths: Always}\ncertificate: {source: Files}":                     "authentication.privatePaths: Forbidden: needs the certificate source Authority",
		"serving: {securePort: 65536}":                                                             "serving.securePort: Invalid value: 65536",
		"serving: {metricsBindAddress: '8080'}":                                                    "serving.metricsBindAddress: Invalid value",
		"serving: {readHeaderTimeout: -1s}":                                                        "serving.readHeaderTimeout: Invalid value: \"-1s\": must be positive",
		"serving: {readTimeout: 0s}":                                                               "serving.readTimeout: Invalid value",
		"serving: {writeTimeout: 5s}":                                                              "serving.writeTimeout: Invalid value: \"5s\": must be at least 30s",
		"serving: {idleTimeout: 90s}":                                                              "serving.idleTimeout: Invalid value: \"1m30s\": must be above 1m30s",
		"serving: {maxHeaderBytes: 0}":                                                             "serving.maxHeaderBytes: Invalid value: 0: must be positive",
		"serving: {maxBodyBytes: -1}":                                                              "serving.maxBodyBytes: Invalid value: -1: must be positive",
		"serving: {maxBytesInFlight: 8}":                                                           "serving.maxBytesInFlight: Invalid value: 8: must be above maxBodyBytes",
		"serving: {minBodyRate: -1}":                                                               "serving.minBodyRate: Invalid value",
		"serving: {maxConcurrentReviews: -1}":                                                      "serving.maxConcurrentReviews: Invalid value",
		"serving: {maxWaitingReviews: -1}":                                                         "serving.maxWaitingReviews: Invalid value",
		"serving: {maxConnections: -1}":                                                            "serving.maxConnections: Invalid value",
		"serving: {maxMetricsConnections: -1}":                                                     "serving.maxMetricsConnections: Invalid value",
		"serving: {bindAddress: 999.1.1.1}":                                                        `serving.bindAddress: Invalid value: "999.1.1.1": must be an IP address or a host name`,
		"serving: {drainMin: -1s}":                                                                 "serving.drainMin: Invalid value",
		"serving: {drainTimeout: 1s}":                                                              `serving.drainTimeout: Invalid value: "1s": must not be below drainMin, 15s`,
		"log: {level: loud}":                                                                       `log.level: Unsupported value: "loud"`,
		"log: {format: xml}":                                                                       `log.format: Unsupported value: "xml"`,
		"log: {verbosity: -1}":                                                                     "log.verbosity: Invalid value",
		"tracing: {endpoint: a}":                                                                   `tracing.endpoint: Invalid value: "a": write HOST:PORT`,
		"tracing: {samplingRatePerMillion: 1}":                                                     "tracing.samplingRatePerMillion: Forbidden: has no effect without endpoint",
		"tracing: {endpoint: 'a:1', samplingRatePerMillion: 1000001}":                              "tracing.samplingRatePerMillion: Invalid value: 1000001",
		"controllers: [nope]":                                                                      `controllers: Unsupported value: "nope"`,
		"webhooks: []":                                                                             "webhooks: Required value: enables none",
		"webhooks: [{name: poddefault, settings: {guard: Backstop}}]\ncontrollers: []":             "webhooks[0].settings.guard: Forbidden: a backstop needs the controller poddefault-index",
		"webhooks: [{name: poddefault, settings: {guard: Backstop}}]\nregistration: {mode: Manifest, staticManifestsDir: /a, url: 'https://a'}": "webhooks[0].settings.guard: Forbidden: a backstop is not for the registration mode Manifest",
		"webhooks: [{name: poddefault, settings: {guard: Open}}]":                                                                               `webhooks[0].settings.guard: Unsupported value: "Open": supported values: "Backstop", "Fail"`,
		"webhooks: [{name: poddefault, settings: {authorizeAuthors: maybe}}]":                                                                   `webhooks[0].settings.authorizeAuthors: Unsupported value: "maybe"`,
		"webhooks: [{name: servicetype, reinvocationPolicy: Never}]":                                                                            "reinvocationPolicy is for mutating webhooks",
		"webhooks: [{name: imagepull, matchConditions: [{name: a b, expression: 'true'}]}]":                                                     "webhooks[0]: Invalid value: ",
		"webhooks: [{name: poddefault, matchConditions: [{name: a, expression: object.}]}]":                                                     "webhooks[0].matchConditions[0].expression: Invalid value: \"object.\": compilation failed: ERROR: <input>:1:8: Syntax error",
		"webhooks: [{name: poddefault, matchConditions: [{name: a, expression: '1'}]}]":                                                         "webhooks[0].matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool",
		"webhooks: [{name: poddefault, objectSelector: {matchExpressions: [{key: a, operator: Is}]}}]":                                          "webhooks[0].objectSelector: Invalid value: ",
		"webhooks: [{name: poddefault, timeoutSeconds: 0}]":                                                                                     "webhooks[0].timeoutSeconds: Invalid value: 0",
		"webhooks: [{name: poddefault, failurePolicy: a, matchPolicy: Exact, reinvocationPolicy: Never}]":                                       `webhooks[0].failurePolicy: Unsupported value: "a"`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Load(file(t, configHead+text+"\n"), nil, "registration.service")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
		})
	}
	if _, err := Load("", nil); err == nil || !strings.Contains(err.Error(), "registration.service: Required value: set it or url") {
		t.Errorf("without an endpoint: %v", err)
	}
	if _, err := Load("", nil, OfDeployment...); err != nil {
		t.Errorf("for a command that starts no server: %v", err)
	}
	if _, err := Load("", given(t, "--url", "https://me:s3cret@127.0.0.1")); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a password in the URL: %v", err)
	}
}

// FuzzConfig reads any text as a configuration. Load must not panic. A valid configuration is
// complete and can be written.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(configHead))
	f.Add([]byte(configHead + "webhooks: [{name: projectlimit, settings: {limits: [{user: a, limit: 1}]}}]\n"))
	f.Add([]byte(configHead + "registration: {excludedNamespaces: null, timeoutSeconds: 1e3}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, p := Default(), &problems{}
		if p.parse("fuzzed.yaml", data, c) != nil {
			return
		}
		for i := range c.Webhooks {
			p.readSettings(c, i)
		}
		for _, err := range c.validate() {
			p.field(c, err)
		}
		if p.err() != nil {
			return
		}
		if _, err := c.Complete(); err != nil {
			t.Fatal(err)
		}
	})
}

// A Namespace that the webhook for exemptions does not see may be selected later, with an
// annotation that nobody has checked.
func TestTheWebhookForExemptionsSeesEveryNamespace(t *testing.T) {
	c, err := Load(file(t, configHead+`registration: {service: {namespace: a, name: b}, namespaceSelector: {matchLabels: {team: a}}, failurePolicy: Ignore}
webhooks: [{name: poddefault, failurePolicy: Ignore, namespaceSelector: {matchLabels: {x: z}}, objectSelector: {matchLabels: {x: z}},
  matchConditions: [{name: a, expression: 'false'}], settings: {maxExemption: 24h, authorizeAuthors: "off"}}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	webhooks, err := c.Define(NoSources())
	if err != nil {
		t.Fatal(err)
	}
	settings := c.AppRegistration()
	if webhooks, err = hosting.Apply(&settings, webhooks); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(webhooks, func(w admission.Webhook) bool { return w.Name == author.ExemptName })
	if i < 0 {
		t.Fatal("there is no such webhook")
	}
	w := webhooks[i]
	if w.NamespaceSelector != nil || w.ObjectSelector != nil || len(w.MatchConditions) != 1 || w.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("%v, %v, %v, %v", w.NamespaceSelector, w.ObjectSelector, w.MatchConditions, w.FailurePolicy)
	}
	if !slices.ContainsFunc(c.Rights(), func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "subjectaccessreviews") }) {
		t.Error("the server may not ask what users may do")
	}
	if _, err := Load(file(t, configHead+"webhooks: [{name: poddefault, settings: {maxExemption: -1h}}]"), nil); err == nil || !strings.Contains(err.Error(), "must not be negative") {
		t.Errorf("a negative duration: %v", err)
	}
}
