// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/sallyport-io/sallyport/sallyporttest"
	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	system = "sallyport-system"
	// image is what each row has, unless it sets another.
	image = "image: {repository: registry.example.com/sallyport, tag: v1}\n"
)

// A variant is a way to set the chart's values, and the flags with which `sallyport
// manifests` prints the same; nil if it has no flag for that.
type variant struct {
	release   string // sallyport if empty
	values    string // YAML
	manifests []string
	config    string   // of --config
	refused   string   // what Helm says instead
	found     []string // rules of lint that this setting is against, on purpose
}

// configHead is what a configuration begins with.
const configHead = "apiVersion: config.sallyport.io/v1alpha1\nkind: SallyportConfiguration\n"

// owned is what the chart does by default.
var owned = []string{"--owner", "clusterrole/sallyport"}

var variants = map[string]variant{
	"defaults":             {manifests: owned},
	"another name":         {release: "hooks", manifests: []string{"--service", system + "/hooks-sallyport", "--configuration-name", "hooks-sallyport", "--service-account", "hooks-sallyport", "--owner", "clusterrole/hooks-sallyport"}, config: configHead + "registration: {ownPods: app.kubernetes.io/name=hooks-sallyport}\n"},
	"a full name":          {values: "fullnameOverride: x", manifests: []string{"--service", system + "/x", "--configuration-name", "x", "--service-account", "x", "--owner", "clusterrole/x"}, config: configHead + "registration: {ownPods: app.kubernetes.io/name=x}\n"},
	"labels on everything": {values: "commonLabels: {team: platform}", manifests: owned},
	"an image of a registry that asks who pulls": {
		values:    "image: {repository: registry.example.com/other, tag: '7', pullPolicy: Always, pullSecrets: [{name: pull}]}",
		manifests: append([]string{"--image", "registry.example.com/other:7"}, owned...),
	},
	"an image by its digest": {
		values:    "image: {digest: 'sha256:" + strings.Repeat("a", 64) + "'}",
		manifests: append([]string{"--image", "registry.example.com/sallyport@sha256:" + strings.Repeat("a", 64)}, owned...),
	},
	"requests of no level of their own": {values: "flowControl: {enabled: false}"},
	"more servers":                      {values: "replicas: 5", manifests: append([]string{"--replicas", "5"}, owned...)},
	"as many as needed":                 {values: "autoscaling: {enabled: true, minReplicas: 3, maxReplicas: 9, averageCPU: '1'}"},
	"every webhook": {
		values:    "webhooks: [poddefault, imagepull, servicetype, projectlimit, dataset, podtemplate]",
		manifests: append([]string{"--webhooks", "poddefault,imagepull,servicetype,projectlimit,dataset,podtemplate"}, owned...),
	},
	"webhooks that only look": {values: "webhooks: [imagepull]", manifests: append([]string{"--webhooks", "imagepull"}, owned...)},
	"a configuration with webhooks": {
		values:    "config: {log: {level: debug}, webhooks: [{name: projectlimit, settings: {limit: 3}}, {name: poddefault, enabled: false}]}",
		config:    configHead + "log: {level: debug}\nwebhooks: [{name: projectlimit, settings: {limit: 3}}, {name: poddefault, enabled: false}]\n",
		manifests: owned,
	},
	"a configuration without webhooks": {
		values:    "config: {certificate: {lifetime: 24h}}",
		config:    configHead + "certificate: {lifetime: 24h}\n",
		manifests: append([]string{"--webhooks", "poddefault"}, owned...),
	},
	"configurations of somebody else": {values: "registration: {mode: None}", manifests: []string{"--registration", "None"}},
	"called otherwise": {
		values:    "registration: {failurePolicy: Ignore, timeoutSeconds: 10, namespaceSelector: 'a in (b,c)', excludedNamespaces: [kube-system, x], sharedNamespace: true, foreignTerms: Refuse}",
		manifests: append([]string{"--failure-policy", "Ignore", "--namespace-selector", "a in (b,c)"}, owned...),
		config:    configHead + "registration: {timeoutSeconds: 10, excludedNamespaces: [kube-system, x], sharedNamespace: true, foreignTerms: Refuse}\n",
		found:     []string{"timeout"}, // that is longer than advised
	},
	"configurations without an owner": {values: "registration: {owned: false}", manifests: []string{}},
	"a certificate in a Secret": {
		values:    "certificate: {source: Secret, secretName: leaf}",
		manifests: append([]string{"--certificate-source", "Files", "--tls-secret", "leaf"}, owned...),
	},
	"a certificate of cert-manager": {
		values:    "certificate: {source: CertManager}",
		manifests: append([]string{"--certificate-source", "Files", "--tls-secret", "sallyport-tls"}, owned...),
	},
	"a certificate of somebody's issuer": {
		values:    "certificate: {source: CertManager, issuerRef: {group: cert-manager.io, kind: ClusterIssuer, name: corp}}",
		manifests: append([]string{"--certificate-source", "Files", "--tls-secret", "sallyport-tls"}, owned...),
	},
	"callers of a CA in a Secret":    {values: "authentication: {mode: ClientCA, clientCASecret: callers, clientCommonNames: [kube-apiserver]}"},
	"callers of a CA in a ConfigMap": {values: "authentication: {mode: ClientCA, clientCAConfigMap: callers}"},
	"callers whom the API server allows": {
		values:    "{authentication: {mode: Delegated}, webhooks: [poddefault, imagepull]}",
		manifests: append([]string{"--authentication", "Delegated", "--webhooks", "poddefault,imagepull"}, owned...),
	},
	"metrics for whom the API server allows": {
		values:    "metrics: {authentication: Delegated}",
		manifests: append([]string{"--metrics-authentication", "Delegated"}, owned...),
	},
	"recent reviews for whom the API server allows": {
		values: "{metrics: {authentication: Delegated}, config: {recording: {recentReviews: 100, samplingRatePerMillion: 1000000}}}",
	},
	"callers and readers whom the API server allows": {
		values: "{authentication: {mode: Delegated}, metrics: {authentication: Delegated, serviceMonitor: {enabled: true}}}",
	},
	"private paths":                   {values: "authentication: {privatePaths: Always}"},
	"paths for everybody":             {values: "authentication: {privatePaths: Never}"},
	"paths for some":                  {values: "authentication: {privatePaths: some}", refused: "privatePaths"},
	"a log in JSON":                   {values: "log: {level: debug, format: json}"},
	"a shorter drain":                 {values: "drain: {minSeconds: 5, maxSeconds: 30}"},
	"ports":                           {values: "{port: 10250, service: {port: 8443, annotations: {a: b}}}", manifests: append([]string{"--secure-port", "10250", "--service", system + "/sallyport:8443"}, owned...)},
	"an account of its own":           {values: "serviceAccount: {name: robot, annotations: {a: b}}", manifests: append([]string{"--service-account", "robot"}, owned...)},
	"rights of somebody else":         {values: "{serviceAccount: {create: false, name: robot}, rbac: {create: false}}"},
	"roles of users stay as they are": {values: "rbac: {userRoles: false}"},
	"no definitions":                  {values: "crds: {install: false}"},
	"definitions that go":             {values: "crds: {keep: false}", manifests: owned},
	"other resources":                 {values: "resources: {requests: {cpu: '1'}, limits: {memory: 1Gi}}"},
	"no priority":                     {values: "priorityClassName: ''", manifests: append([]string{"--priority-class", ""}, owned...)},
	"another priority":                {values: "priorityClassName: system-node-critical", manifests: append([]string{"--priority-class", "system-node-critical"}, owned...)},
	"certain nodes": {values: "{nodeSelector: {a: b}, tolerations: [{operator: Exists}], affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: " +
		"[{weight: 1, podAffinityTerm: {topologyKey: rack, labelSelector: {matchLabels: {a: b}}}}]}}, topologySpreadConstraints: " +
		"[{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]}"},
	"labels of pods":        {values: "{podAnnotations: {a: b}, podLabels: {c: d}}"},
	"no disruption budget":  {values: "podDisruptionBudget: {enabled: false}", found: []string{"workload-pdb"}},
	"a disruption budget":   {values: "podDisruptionBudget: {maxUnavailable: 50%}"},
	"a network policy":      {values: "networkPolicy: {apiServerCIDRs: [10.0.0.1/32]}", manifests: append([]string{"--api-server-cidrs", "10.0.0.1/32"}, owned...)},
	"metrics for nobody":    {values: "networkPolicy: {metricsFrom: []}", manifests: append([]string{"--metrics-from", ""}, owned...)},
	"metrics for others":    {values: "networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {team: sre}}}]}", manifests: append([]string{"--metrics-from", "team=sre"}, owned...)},
	"no network policy":     {values: "networkPolicy: {enabled: false}", manifests: append([]string{"--network-policy=false"}, owned...)},
	"everything to look at": {values: "metrics: {serviceMonitor: {enabled: true, labels: {release: p}, interval: 1m}, prometheusRule: {enabled: true, labels: {release: p}}, dashboard: {enabled: true, labels: {g: d}}}"},
	"whatever else":         {values: "{extraArgs: [--verbosity=1], extraEnv: [{name: A, value: b}], extraVolumes: [{name: v, emptyDir: {}}], extraVolumeMounts: [{name: v, mountPath: /v}]}"},
	"a console behind Kubeflow's gateway": {
		values: "console: {enabled: true, userHeader: kubeflow-userid, trustedNetworks: [10.0.0.0/8, 'fd00::/8'], prefix: /sallyport, replicas: 2, from: [{podSelector: {}}], resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}}",
	},
	"a console for proxies with certificates": {
		values: "console: {enabled: true, userHeader: X-User, groupsHeader: X-Groups, tlsSecret: console, clientCASecret: proxies, clientCommonNames: [gateway, 'a b'], users: [anna@example.com], groups: [dev]}",
	},
	"a console of an older cluster": {
		values: "console: {enabled: true, userHeader: X-User, trustedNetworks: [10.0.0.0/8], impersonation: legacy, users: [anna], groups: [dev]}",
	},
	"a console for whom nobody names":                 {values: "console: {enabled: true}", refused: "console.userHeader is needed"},
	"a console that believes everybody":               {values: "console: {enabled: true, userHeader: X-User}", refused: "any client can send the header"},
	"a console for certificates without TLS":          {values: "console: {enabled: true, userHeader: X-User, clientCASecret: c}", refused: "needs console.tlsSecret"},
	"a console that may act as anybody":               {values: "console: {enabled: true, userHeader: X-User, trustedNetworks: [10.0.0.0/8], impersonation: legacy}", refused: "needs console.users"},
	"a console for components of Kubernetes":          {values: "console: {users: ['system:admin']}", refused: "users"},
	"a console for the administrators of the cluster": {values: "console: {groups: ['system:masters']}", refused: "groups"},

	"a value that is not known":           {values: "replica: 3", refused: "replica"},
	"a section that is not known":         {values: "config: {servng: {idleTimeout: 10s}}", refused: "servng"},
	"a field of a webhook misspelt":       {values: "config: {webhooks: [{name: imagepull, failurePolcy: Ignore}]}", refused: "failurePolcy"},
	"a setting of another webhook":        {values: "config: {webhooks: [{name: imagepull, settings: {limit: 3}}]}", refused: "limit"},
	"an invalid choice":                   {values: "config: {log: {level: loud}}", refused: "level"},
	"no image":                            {values: "image: {repository: ''}", refused: "image.repository is needed"},
	"a webhook that does not exist":       {values: "webhooks: [poddefaults]", refused: "webhooks"},
	"no webhook":                          {values: "webhooks: []", refused: "webhooks"},
	"a timeout that is too long":          {values: "registration: {timeoutSeconds: 31}", refused: "timeoutSeconds"},
	"the port of metrics for webhooks":    {values: "port: 8080", refused: "port"},
	"callers of no CA":                    {values: "authentication: {mode: ClientCA}", refused: "clientCASecret"},
	"a Secret without a name":             {values: "certificate: {source: Secret}", refused: "certificate.secretName is needed"},
	"a drain that the pods do not know":   {values: "config: {serving: {drainTimeout: 10s}}", refused: "drain.maxSeconds"},
	"readers that the probes do not know": {values: "config: {authentication: {metrics: Delegated}}", refused: "metrics.authentication"},
	"callers without rights":              {values: "config: {authentication: {mode: Delegated}}", refused: "authentication.mode"},
	"readers of a CA":                     {values: "metrics: {authentication: ClientCA}", refused: "authentication"},
	"an account of nobody":                {values: "serviceAccount: {create: false}", refused: "serviceAccount.name is needed"},
	"invalid addresses":                   {values: "networkPolicy: {apiServerCIDRs: [everywhere]}", refused: "apiServerCIDRs"},
}

// kustomizations are folders below config, alone or with components.
var kustomizations = map[string]struct {
	folder     string
	components []string
	manifests  []string
}{
	"base":                              {folder: "base", manifests: []string{}},
	"cert-manager":                      {folder: "cert-manager", manifests: []string{"--certificate-source", "Files", "--tls-secret", "sallyport-tls"}},
	"kubeflow":                          {folder: "kubeflow"},
	"static":                            {folder: "static"},
	"base with a console":               {folder: "base", components: []string{"console"}},
	"base with autoscaling":             {folder: "base", components: []string{"autoscaling"}},
	"cert-manager with every component": {folder: "cert-manager", components: []string{"autoscaling", "monitoring", "metrics-authentication-cert-manager"}},
	"metrics for whom the API server allows": {
		folder: "base", components: []string{"metrics-authentication"}, manifests: []string{"--metrics-authentication", "Delegated"},
	},
}

// TestEveryVariantIsWhatManifestsPrintsAndTheAPIServerTakesIt renders with Helm and
// kustomize themselves.
func TestEveryVariantIsWhatManifestsPrintsAndTheAPIServerTakesIt(t *testing.T) {
	t.Parallel()
	helm, kustomize, binary := lab.Binary(t, "helm"), lab.Binary(t, "kustomize"), sallyport(t)
	server := connect(t, sallyporttest.StartAPIServer(t, sallyporttest.WithCRDs(otherDefinitions(t)...)))
	for _, name := range []string{system, "kubeflow"} {
		server.namespace(t, name, nil)
	}
	server.namespace(t, restricted, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	printed := func(t *testing.T, config string, args []string) []*unstructured.Unstructured {
		t.Helper()
		all := []string{"manifests", "--part", "crd,rbac,user-roles,flowcontrol,workload"}
		if !slices.Contains(args, "--service") {
			all = append(all, "--service", system+"/sallyport")
		}
		if !slices.Contains(args, "--image") {
			all = append(all, "--image", "registry.example.com/sallyport:v1")
		}
		if config != "" {
			all = append(all, "--config", file(t, "sallyport.yaml", config))
		}
		return parse(t, output(t, binary, append(all, args...)...))
	}

	for name, v := range variants {
		t.Run("chart, "+name, func(t *testing.T) {
			release := v.release
			if release == "" {
				release = "sallyport"
			}
			args := []string{"template", release, filepath.Join(top, "charts/sallyport"), "--namespace", system, "--kube-version", "1.37.2", "--values", file(t, "image.yaml", image), "--values", file(t, "values.yaml", v.values)}
			if v.refused != "" {
				var stderr bytes.Buffer
				cmd := exec.CommandContext(t.Context(), helm, args...)
				cmd.Stderr = &stderr
				if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), v.refused) {
					t.Errorf("got %v, want a refusal that names %q:\n%s", err, v.refused, stderr.String())
				}
				return
			}
			text := output(t, helm, args...)
			rendered := parse(t, text)
			server.dryRun(t, rendered)
			if v.manifests != nil {
				text += "\n---\n" + registered(t, binary, v.config, v.manifests)
			}
			linted(t, binary, text, v.found)
			if v.manifests != nil {
				want, got := comparable(t, printed(t, v.config, v.manifests)), comparable(t, rendered)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the chart differs (-manifests +chart):\n%s", diff)
				}
			}
		})
	}
	for name, k := range kustomizations {
		t.Run("kustomization, "+name, func(t *testing.T) {
			text := output(t, kustomize, "build", overlay(t, k.folder, k.components))
			rendered := parse(t, text)
			server.dryRun(t, rendered)
			if k.manifests != nil {
				text += "\n---\n" + registered(t, binary, "", k.manifests)
			}
			linted(t, binary, text, nil)
			if k.manifests != nil {
				want, got := comparable(t, printed(t, "", append([]string{"--image", "registry.example.com/sallyport:v1"}, k.manifests...))), comparable(t, rendered)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the kustomization differs (-manifests +kustomize):\n%s", diff)
				}
			}
		})
	}
	t.Run("the pod of hosts of the control plane", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(top, "config/static/host/sallyport.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		server.dryRun(t, parse(t, string(text)))
		linted(t, binary, string(text), nil)
	})
	t.Run("the chart has no mistakes", func(t *testing.T) {
		output(t, helm, "lint", "--strict", filepath.Join(top, "charts/sallyport"), "--values", file(t, "image.yaml", image))
	})
}

// registered are the configurations that a server with such flags writes, whose caBundle
// it fills in.
func registered(t *testing.T, binary, config string, args []string) string {
	t.Helper()
	all := []string{"manifests", "--part", "configurations"}
	if !slices.Contains(args, "--service") {
		all = append(all, "--service", system+"/sallyport")
	}
	if config != "" {
		all = append(all, "--config", file(t, "sallyport.yaml", config))
	}
	return output(t, binary, append(all, args...)...)
}

// linted lets sallyport lint look at what is installed.
func linted(t *testing.T, binary, text string, want []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "lint", "--output", "json", "-f", "-")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Findings []struct{ Rule, Object, Webhook, Message string }
		Errors   []string
		Checked  map[string]int
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for _, f := range report.Findings {
		if !slices.Contains(got, f.Rule) {
			got = append(got, f.Rule)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(report.Errors) > 0 || len(report.Checked) == 0 {
		t.Errorf("lint finds %q, want %q: %+v, %q", got, want, report.Findings, report.Errors)
	}
}

// TestEveryValueOfTheChartIsInSomeVariant finds values that nobody tries.
func TestEveryValueOfTheChartIsInSomeVariant(t *testing.T) {
	tried := map[string]bool{}
	for _, v := range variants {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(v.values), &values); err != nil {
			t.Fatal(err)
		}
		for path := range flatten(values, "") {
			tried[path] = true
		}
	}
	text, err := os.ReadFile(filepath.Join(top, "charts/sallyport/values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	free := []string{"resources", "metrics.dashboard.labels"} // what is in these is the user's
	for _, path := range slices.Sorted(maps.Keys(flatten(values, ""))) {
		if !tried[path] && !slices.ContainsFunc(free, func(f string) bool { return strings.HasPrefix(path, f) }) {
			t.Errorf("no variant sets %s", path)
		}
	}
}

// flatten returns the paths of all leaves, and of all that is above them.
func flatten(values map[string]any, prefix string) map[string]bool {
	out := map[string]bool{}
	for key, value := range values {
		out[prefix+key] = true
		if inner, ok := value.(map[string]any); ok {
			maps.Copy(out, flatten(inner, prefix+key+"."))
		}
	}
	return out
}

// overlay is the folder of a kustomization with components and the image of the rows.
func overlay(t *testing.T, folder string, components []string) string {
	t.Helper()
	out := t.TempDir()
	relative := func(parts ...string) string {
		absolute, err := filepath.Abs(filepath.Join(append([]string{top, "config"}, parts...)...))
		if err != nil {
			t.Fatal(err)
		}
		path, err := filepath.Rel(out, absolute)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	kustomization := map[string]any{
		"resources": []string{relative(folder)},
		"images":    []map[string]string{{"name": "sallyport", "newName": "registry.example.com/sallyport", "newTag": "v1"}},
	}
	var paths []string
	for _, component := range components {
		paths = append(paths, relative("components", component))
	}
	if paths != nil {
		kustomization["components"] = paths
	}
	text, err := yaml.Marshal(kustomization)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "kustomization.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// comparable returns what matters of the objects that manifests prints too: not labels
// and annotations on the objects, nor the order of arguments.
func comparable(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "Namespace" || object.GroupVersionKind().Group == "cert-manager.io" {
			continue
		}
		object.SetLabels(nil)
		object.SetAnnotations(nil)
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		delete(object.Object, "status")
		switch object.GetKind() {
		case "Deployment":
			comparablePod(t, object)
		case "ConfigMap":
			data, _, _ := unstructured.NestedString(object.Object, "data", "sallyport.yaml")
			var config map[string]any
			if err := yaml.Unmarshal([]byte(data), &config); err != nil {
				t.Fatal(err)
			}
			object.Object["data"] = config
		case "ClusterRole":
			rules := []string{} // whose order says nothing
			list, _, _ := unstructured.NestedSlice(object.Object, "rules")
			for _, rule := range list {
				text, err := yaml.Marshal(rule)
				if err != nil {
					t.Fatal(err)
				}
				rules = append(rules, string(text))
			}
			slices.Sort(rules)
			object.Object["rules"] = rules
		}
		out[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = object.Object
	}
	return out
}

func comparablePod(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	template := deployment.Object["spec"].(map[string]any)["template"].(map[string]any)
	pod := template["spec"].(map[string]any)
	delete(pod, "imagePullSecrets")
	container := pod["containers"].([]any)[0].(map[string]any)
	delete(container, "imagePullPolicy")
	var args []string
	for _, arg := range container["args"].([]any) {
		if arg != "--webhooks=poddefault" && arg != "--webhooks=" { // what holds without it
			args = append(args, arg.(string))
		}
	}
	slices.Sort(args)
	container["args"] = args
	annotations := template["metadata"].(map[string]any)["annotations"].(map[string]any)
	delete(annotations, "sallyport.io/settings") // with which Helm rolls out what manifests leaves to people
	drain, err := time.ParseDuration(annotations["lint.sallyport.io/drain"].(string))
	if err != nil {
		t.Fatal(err)
	}
	annotations["lint.sallyport.io/drain"] = drain.String()
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
