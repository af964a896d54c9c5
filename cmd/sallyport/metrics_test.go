// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/author"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/reports"
	"github.com/sallyport-io/sallyport/cmd/internal/serve"
	"github.com/sallyport-io/sallyport/internal/certificate"
	"github.com/sallyport-io/sallyport/internal/hosting/persistentvolumelabel"
	"github.com/sallyport-io/sallyport/internal/registration"
	"github.com/sallyport-io/sallyport/internal/wire"
	"github.com/sallyport-io/sallyport/serving"
)

// recorder is a registry that records all registered metrics. A scrape would omit those without
// a value.
type recorder struct {
	*prometheus.Registry
	described map[string]string   // help by name
	labels    map[string][]string // by name
}

var description = regexp.MustCompile(`fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", .*variableLabels: \{([^}]*)\}`)

func (r *recorder) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() { c.Describe(descs); close(descs) }()
	for desc := range descs {
		if m := description.FindStringSubmatch(desc.String()); m != nil {
			r.described[m[1]], r.labels[m[1]] = m[2], strings.FieldsFunc(m[3], func(c rune) bool { return c == ',' || c == ' ' })
		}
	}
	return r.Registry.Register(c)
}

// nobody never leads.
type nobody struct{}

func (nobody) Leading() bool            { return false }
func (nobody) Changed() <-chan struct{} { return nil }

// everyMetric creates every part of a server that has metrics.
func everyMetric(t *testing.T) (help map[string]string, labels map[string][]string) {
	t.Helper()
	r := &recorder{prometheus.NewRegistry(), map[string]string{}, map[string][]string{}}
	logger := slog.New(slog.DiscardHandler)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Register(collectors.NewGoCollector()))
	must(r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))

	config := serve.Default()
	must(config.Select("*"))
	config.Controllers = append(config.Controllers, reports.Name)
	config.Recording.Directory, config.Recording.SamplingRatePerMillion = t.TempDir(), 1
	env := frontdoor.Environment{Client: &rest.Config{}, Logger: logger, Metrics: r, Changed: func() {}}
	env.Leader = func() frontdoor.Leader { return nobody{} }
	for _, build := range serve.Components("sallyport.yaml", config) {
		_, err := build(env)
		must(err)
	}
	_, err := wire.NewMetrics(r)
	must(err)
	_, err = persistentvolumelabel.NewMetrics(r, "webhook") // hosted by cloud controller managers
	must(err)
	authority, err := certificate.NewAuthority(certificate.AuthorityOptions{DNSNames: []string{"a.b.svc"}, Logger: logger, Registry: r})
	must(err)
	options := serving.DefaultOptions()
	options.Logger, options.Registry = logger, r
	options.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
	options.CertificateNotAfter = func() time.Time { return time.Time{} }
	_, err = serving.New(options)
	must(err)
	_, err = serving.NewClientCA(serving.ClientCAOptions{File: file(t, "ca.crt", string(authority.CABundle())), Logger: logger, Registry: r})
	must(err)
	_, err = registration.NewController(registration.Options{
		Config: registration.Config{Name: "a", Endpoint: registration.Endpoint{URL: "https://127.0.0.1"}},
		Client: fake.NewClientset().AdmissionregistrationV1(), Webhooks: func() []admission.Webhook { return nil },
		CABundle: func() ([]byte, error) { return nil, nil }, Logger: logger, Registry: r,
	})
	must(err)
	return r.described, r.labels
}

// ofTheAPIServer are the kube-apiserver metrics in queries, from
// k8s.io/apiserver/pkg/admission/metrics.
var ofTheAPIServer = []string{
	"apiserver_admission_webhook_admission_duration_seconds", "apiserver_admission_webhook_fail_open_count", "apiserver_admission_webhook_rejection_count",
}

var monitoringFiles = []string{"config/components/monitoring/prometheusrule.yaml", "config/components/monitoring/dashboard.json"}

func TestAlertsAndDashboardAskForMetricsThatThereAre(t *testing.T) {
	there, labels := everyMetric(t)
	asked := map[string]bool{}
	for _, file := range monitoringFiles {
		text, err := os.ReadFile(filepath.Join(topFolder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(?:sallyport|apiserver|process|go)_[a-z0-9_]+\b`).FindAllString(string(text), -1) {
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
			asked[base], asked[name] = true, true
			_, ours := there[name]
			_, oursToo := there[base]
			if !ours && !oursToo && !slices.Contains(ofTheAPIServer, name) && !slices.Contains(ofTheAPIServer, base) {
				t.Errorf("%s asks for %s, which nobody registers", file, name)
			}
		}
	}
	// Labels in queries are the metric's own, or those that Prometheus adds to a scrape.
	ofTargets := []string{"namespace", "pod", "job", "le"}
	selected := regexp.MustCompile(`\b(sallyport_[a-z0-9_]+)\{([^}]*)\}`)
	for _, file := range monitoringFiles {
		text, err := os.ReadFile(filepath.Join(topFolder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range selected.FindAllStringSubmatch(string(text), -1) {
			base := strings.TrimSuffix(strings.TrimSuffix(m[1], "_bucket"), "_count")
			for _, label := range regexp.MustCompile(`([a-z_]+)(?:=|!=)`).FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(labels[m[1]], label[1]) && !slices.Contains(labels[base], label[1]) && !slices.Contains(ofTargets, label[1]) {
					t.Errorf("%s asks for %s, which has no label %s, but %q", file, m[0], label[1], labels[m[1]])
				}
			}
			for _, webhook := range regexp.MustCompile(`webhook=\\?"([^"\\]*)`).FindAllStringSubmatch(m[2], -1) {
				if webhook[1] != author.Name {
					t.Errorf("%s asks for the webhook %s", file, webhook[1])
				}
			}
		}
	}
	if len(labels["sallyport_poddefault_decisions_total"]) != 3 {
		t.Errorf("the labels of a metric are read as %q", labels["sallyport_poddefault_decisions_total"])
	}
	for name := range there {
		if strings.HasPrefix(name, "sallyport_") && !asked[name] {
			t.Errorf("neither an alert nor the dashboard shows %s", name)
		}
	}
}

// TestMetricsAreDocumentedAndGenerated generates docs/metrics.md.
func TestMetricsAreDocumentedAndGenerated(t *testing.T) {
	there, _ := everyMetric(t)
	text := "# Metrics\n\nThe server serves these at `/metrics` on a port of its own, 8080, without TLS, together with the metrics of the Go runtime\n" +
		"and of the process. [config/components/monitoring](../config/components/monitoring) has alerts and a dashboard that use them;\n" +
		"each alert has a [runbook](runbooks/README.md). `make generate` generates this page.\n\n| metric | meaning |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if strings.HasPrefix(name, "sallyport_") {
			text += "| `" + name + "` | " + there[name] + " |\n"
		}
	}
	generated(t, "docs/metrics.md", text)
}

func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(topFolder, monitoringFiles[0]))
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &rule); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(topFolder, "docs/runbooks/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	there, _ := everyMetric(t)
	pages := map[string]bool{"README.md": true}
	for _, group := range rule.Spec.Groups {
		for _, alert := range group.Rules {
			page := alert.Alert + ".md"
			pages[page] = true
			if !slices.ContainsFunc(regexp.MustCompile(`[a-z]+(?:_[a-z0-9]+)+`).FindAllString(alert.Expr, -1), func(name string) bool {
				_, ours := there[name]
				return ours || slices.Contains(ofTheAPIServer, name) || strings.HasSuffix(name, "_bucket")
			}) {
				t.Errorf("%s asks for no metric that there is: %s", alert.Alert, alert.Expr)
			}
			if !strings.HasSuffix(alert.Annotations["runbook_url"], "/docs/runbooks/"+page) {
				t.Errorf("%s refers to %q", alert.Alert, alert.Annotations["runbook_url"])
			}
			if alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" || !slices.Contains([]string{"critical", "warning"}, alert.Labels["severity"]) {
				t.Errorf("%s lacks a summary, a description or a severity: %+v", alert.Alert, alert)
			}
			text, err := os.ReadFile(filepath.Join(topFolder, "docs/runbooks", page))
			if err != nil {
				t.Errorf("%s has no runbook: %v", alert.Alert, err)
				continue
			}
			for _, heading := range []string{"# " + alert.Alert + "\n", "\n## What it means\n", "\n## What to do\n", "```sh\n"} {
				if !strings.Contains(string(text), heading) {
					t.Errorf("%s has no %q", page, strings.TrimSpace(heading))
				}
			}
			if !strings.Contains(string(list), "("+page+")") {
				t.Errorf("docs/runbooks/README.md does not list %s", page)
			}
		}
	}
	files, err := os.ReadDir(filepath.Join(topFolder, "docs/runbooks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		// Pages of alerts are called as these are; others are listed, for whatever brings one there.
		if strings.HasPrefix(file.Name(), "Sallyport") && !pages[file.Name()] {
			t.Errorf("docs/runbooks/%s is the page of no alert", file.Name())
		}
		if file.Name() != "README.md" && !strings.Contains(string(list), "("+file.Name()+")") {
			t.Errorf("docs/runbooks/README.md does not list %s", file.Name())
		}
	}
}

func TestPanelsOfTheDashboardStandBesideEachOther(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(topFolder, monitoringFiles[1]))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: its number is used twice, or it has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("panel %q is over %q, or beside the grid", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(dashboard.Panels) == 0 {
		t.Error("there is no panel")
	}
}
