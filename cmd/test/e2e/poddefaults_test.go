// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/test/lab"
)

// newFields is a PodDefault that sets all there is to set beyond Kubeflow's fields.
func newFields(namespace string) *kubeflowv1alpha1.PodDefault {
	always := corev1.ContainerRestartPolicyAlways
	zones := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}
	return podDefault(namespace, "new-fields", kubeflowv1alpha1.PodDefaultSpec{
		Priority: 5, ConflictPolicy: kubeflowv1alpha1.ConflictDeny, Mode: kubeflowv1alpha1.ModeEnforce,
		Substitute: true,
		ContainerSelector: &kubeflowv1alpha1.ContainerSelector{
			Types:        []kubeflowv1alpha1.ContainerType{kubeflowv1alpha1.TypeContainer, kubeflowv1alpha1.TypeInitContainer, kubeflowv1alpha1.TypeInjected},
			ExcludeNames: []string{"left-alone"},
		},
		Env:            []corev1.EnvVar{{Name: "WHERE", Value: "${namespace}/${pod.labels['use']} $(HOME)"}},
		InitContainers: []corev1.Container{{Name: "proxy", Image: "proxy", RestartPolicy: &always}},
		Sidecars:       []corev1.Container{{Name: "logs", Image: "logs"}},
		Positions: []kubeflowv1alpha1.ContainerPosition{
			{Name: "proxy", Place: kubeflowv1alpha1.PlaceFirst},
			{Name: "logs", Place: kubeflowv1alpha1.PlaceAfter, Container: "main"},
		},
		NodeSelector: map[string]string{"pool": "gpu"},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{zones}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"use": "true"}}},
			}}},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{}}},
		PodSecurityContext: &corev1.PodSecurityContext{
			FSGroup: new(int64(100)), SupplementalGroups: []int64{7}, Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		ContainerSecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("2048Mi")},
			Claims:   []corev1.ResourceClaim{{Name: "gpu"}},
		},
		PriorityClassName: "important-e2e", RuntimeClassName: new("sandboxed-e2e"),
		Lifecycle:   &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/stop", Port: intstr.FromInt32(8080)}}},
		HostAliases: []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"git.internal"}}},
		DNSConfig: &corev1.PodDNSConfig{
			Nameservers: []string{"10.0.0.53"}, Searches: []string{"corp.internal"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}},
		},
		TerminationGracePeriodSeconds: new(int64(90)),
		ActiveDeadlineSeconds:         new(int64(43200)),
		SchedulerName:                 "batch",
		ShareProcessNamespace:         new(true),
		EnableServiceLinks:            new(false),
		DNSPolicy:                     corev1.DNSNone,
		TerminationMessagePolicy:      corev1.TerminationMessageFallbackToLogsOnError,
		SchedulingGates:               []corev1.PodSchedulingGate{{Name: "example.com/quota"}},
		ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: "example.com/in-balancer"}},
		ResourceClaims:                []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("single-gpu")}},
		Ports:                         []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}},
		Volumes:                       []corev1.Volume{{Name: "block", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "block"}}}},
		VolumeDevices:                 []corev1.VolumeDevice{{Name: "block", DevicePath: "/dev/xvda"}},
	})
}

// testNewFields runs the plugins of the API server before and after the webhook, some
// of which refuse a pod that does not fit to what they computed.
func testNewFields(t *testing.T, e *env) {
	name := e.namespace(t, "new-fields")
	e.create(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "important-e2e"}, Value: 1000})
	e.create(t, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "sandboxed-e2e"}, Handler: "sandboxed",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("100m")}}})
	e.create(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "range"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("50m")}}},
	}})
	e.serve(t, name)
	e.createSoon(t, newFields(name), simplePod(name, "probe"), meta.Mark("new-fields"))

	sent := simplePod(name, "first")
	sent.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}}}},
	}}}
	sent.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "busybox"}}
	sent.Spec.Containers = append(sent.Spec.Containers, corev1.Container{Name: "left-alone", Image: "x"})
	e.create(t, sent)
	got := e.stored(t, sent)
	check := func(what string, ok bool, value any) {
		t.Helper()
		if !ok {
			t.Errorf("%s: got %+v", what, value)
		}
	}
	containers, inits := got.Spec.Containers, got.Spec.InitContainers
	if len(containers) != 3 || len(inits) != 2 {
		t.Fatalf("%d containers and %d init containers", len(containers), len(inits))
	}
	main, logs, alone, proxy, prepare := containers[0], containers[1], containers[2], inits[0], inits[1]
	check("positions", main.Name == "main" && logs.Name == "logs" && alone.Name == "left-alone" && proxy.Name == "proxy" && prepare.Name == "prepare", containers)
	for _, c := range []corev1.Container{main, logs, proxy, prepare} {
		check("env of "+c.Name, len(c.Env) == 1 && c.Env[0].Value == name+"/true $(HOME)", c.Env)
		check("ports of "+c.Name, len(c.Ports) == 1 && c.Ports[0].Protocol == corev1.ProtocolTCP, c.Ports)
		check("devices of "+c.Name, len(c.VolumeDevices) == 1, c.VolumeDevices)
		check("security of "+c.Name, c.SecurityContext != nil && c.SecurityContext.Capabilities.Drop[0] == "ALL" && !*c.SecurityContext.AllowPrivilegeEscalation, c.SecurityContext)
		check("resources of "+c.Name, c.Resources.Requests.Cpu().String() == "250m" && c.Resources.Limits.Memory().String() == "2Gi", c.Resources)
	}
	check("nothing for the excluded one", len(alone.Env) == 0 && len(alone.Ports) == 0 && alone.Resources.Requests.Cpu().String() == "50m", alone)
	check("hooks", main.Lifecycle != nil && proxy.Lifecycle != nil && prepare.Lifecycle == nil, main.Lifecycle)
	check("node selector", got.Spec.NodeSelector["pool"] == "gpu", got.Spec.NodeSelector)
	terms := got.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	check("required node terms", len(terms) == 1 && len(terms[0].MatchExpressions) == 2, terms)
	check("anti-affinity", len(got.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) == 1, got.Spec.Affinity)
	check("spread constraints", len(got.Spec.TopologySpreadConstraints) == 1, got.Spec.TopologySpreadConstraints)
	check("pod security", *got.Spec.SecurityContext.FSGroup == 100 && slices.Equal(got.Spec.SecurityContext.SupplementalGroups, []int64{7}), got.Spec.SecurityContext)
	check("the class and its priority", got.Spec.PriorityClassName == "important-e2e" && *got.Spec.Priority == 1000, got.Spec.Priority)
	check("the class and its overhead", *got.Spec.RuntimeClassName == "sandboxed-e2e" && got.Spec.Overhead.Cpu().String() == "100m", got.Spec.Overhead)
	check("host aliases", len(got.Spec.HostAliases) == 1, got.Spec.HostAliases)
	check("DNS", len(got.Spec.DNSConfig.Nameservers) == 1 && len(got.Spec.DNSConfig.Options) == 1, got.Spec.DNSConfig)
	check("single values", got.Spec.SchedulerName == "batch" && *got.Spec.ShareProcessNamespace && !*got.Spec.EnableServiceLinks &&
		got.Spec.DNSPolicy == corev1.DNSNone && *got.Spec.ActiveDeadlineSeconds == 43200, got.Spec)
	check("messages", main.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError && alone.TerminationMessagePolicy == corev1.TerminationMessageReadFile, main)
	check("gates", len(got.Spec.SchedulingGates) == 1 && len(got.Spec.ReadinessGates) == 1, got.Spec)
	check("claims", len(got.Spec.ResourceClaims) == 1 && len(main.Resources.Claims) == 1 && len(alone.Resources.Claims) == 0, got.Spec.ResourceClaims)
	check("grace period", *got.Spec.TerminationGracePeriodSeconds == 90, got.Spec.TerminationGracePeriodSeconds)

	again := got.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Namespace: name, Name: "second", Labels: got.Labels, Annotations: got.Annotations}
	e.create(t, again)
	second := e.stored(t, again)
	if !equalJSON(t, got.Spec, second.Spec) || !equalJSON(t, got.Annotations, second.Annotations) {
		t.Errorf("the second pass changed the pod:\n%s\n%s", toJSON(t, got), toJSON(t, second))
	}
}

// testClusterPodDefaults follows ClusterPodDefaults into a namespace that is younger
// than they are, and into a pod that excludes itself.
func testClusterPodDefaults(t *testing.T, e *env) {
	name := e.namespace(t, "cluster-old")
	object := func(name string, allowExclude bool, selector *metav1.LabelSelector) *sallyportv1alpha1.ClusterPodDefault {
		cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: name}}
		cpd.Spec.Selector.MatchLabels = map[string]string{"use": "true"}
		cpd.Spec.Env = []corev1.EnvVar{{Name: strings.ToUpper(strings.ReplaceAll(name, "-", "_")), Value: "1"}}
		cpd.Spec.AllowExclude, cpd.Spec.NamespaceSelector = allowExclude, selector
		t.Cleanup(func() { _ = e.client.Delete(context.Background(), cpd) })
		return cpd
	}
	platform := &metav1.LabelSelector{MatchLabels: map[string]string{"platform": "true"}}
	e.create(t, object("cluster-some", false, platform))
	e.create(t, object("cluster-polite", true, platform))
	e.create(t, object("cluster-other", false, &metav1.LabelSelector{MatchLabels: map[string]string{"platform": "other"}}))
	e.serve(t, name, "--namespace-selector", "e2e in ("+name+",cluster-new)")

	eventually(t, "both webhooks to be called", func(ctx context.Context) (bool, error) {
		excluded := simplePod(name, "probe")
		excluded.Annotations = map[string]string{meta.ExcludeAnnotation: "true"}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := e.client.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"platform":"true"}}}`))); err != nil {
			return false, err
		}
		if err := e.client.Create(ctx, excluded, client.DryRunAll); err != nil {
			return false, err
		}
		return strings.Join(envNames(excluded.Spec.Containers[0]), ",") == "CLUSTER_SOME", nil
	})
	e.create(t, envPodDefault(name, "own"))
	eventually(t, "the PodDefault to be applied", func(ctx context.Context) (bool, error) {
		pod := simplePod(name, "probe")
		err := e.client.Create(ctx, pod, client.DryRunAll)
		got := strings.Join(envNames(pod.Spec.Containers[0]), ",")
		return got == "CLUSTER_POLITE,CLUSTER_SOME,FROM_PODDEFAULT" && pod.Annotations[meta.DecisionsAnnotation] == "cluster/cluster-polite,cluster/cluster-some,own", err
	})

	fresh := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-new", Labels: map[string]string{"e2e": "cluster-new", "platform": "true"}}}
	e.create(t, fresh)
	e.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fresh.Name, Name: "default"}})
	pod := simplePod(fresh.Name, "at-once")
	e.create(t, pod)
	if got := strings.Join(envNames(pod.Spec.Containers[0]), ","); got != "CLUSTER_POLITE,CLUSTER_SOME" {
		t.Errorf("in a namespace that is new: env is %s", got)
	}
}

// testConsistent creates a PodDefault and a pod right after it, again and again, and
// changes and deletes some. Several do so at a time: their pods share lists. What counts is
// what a pod gets, not when: each has the longest time there is for its answer.
func testConsistent(t *testing.T, e *env) {
	name := e.namespace(t, "consistent")
	e.serve(t, name, lab.Set("webhooks.poddefault.freshness", poddefault.Consistent), lab.Set("registration.timeoutSeconds", "30"))
	e.createSoon(t, envPodDefault(name, "first"), simplePod(name, "probe"), meta.Mark("first"))
	const atATime = 8
	rounds := 40 * *times
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atATime)
	for i := range rounds {
		group.Go(func() error { return e.writeAndUse(ctx, name, fmt.Sprintf("pd-%d", i), i%5 == 0) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	cpd := &sallyportv1alpha1.ClusterPodDefault{ObjectMeta: metav1.ObjectMeta{Name: "consistent"}}
	cpd.Spec.Selector.MatchLabels = map[string]string{"consistent": "true"}
	cpd.Spec.Env = []corev1.EnvVar{{Name: "CLUSTER", Value: "1"}}
	e.createInCluster(t, cpd)
	t.Cleanup(func() { _ = e.client.Delete(context.Background(), cpd) })
	pod := simplePod(name, "cluster")
	pod.Labels = map[string]string{"consistent": "true"}
	e.create(t, pod)
	if got := strings.Join(envNames(pod.Spec.Containers[0]), ","); got != "CLUSTER" {
		t.Errorf("after the ClusterPodDefault was created env is %q", got)
	}
}

// writeAndUse creates a PodDefault, and on demand changes and deletes it. After each of
// that it creates a pod that the object selects, which must have just what there is.
func (e *env) writeAndUse(ctx context.Context, namespace, name string, whole bool) error {
	pd := envPodDefault(namespace, name)
	pd.Spec.Selector.MatchLabels = map[string]string{name: "true"}
	use := func(what, want string) error {
		pod := simplePod(namespace, name)
		pod.Labels = pd.Spec.Selector.MatchLabels
		if err := e.client.Create(ctx, pod, client.DryRunAll); err != nil {
			return err
		}
		if got := strings.Join(envNames(pod.Spec.Containers[0]), ","); got != want {
			return fmt.Errorf("after %s was %s env is %q, want %q", name, what, got, want)
		}
		return nil
	}
	pd.Spec.Env[0].Name = "CREATED"
	if err := e.client.Create(ctx, pd); err != nil {
		return err
	}
	if err := use("created", "CREATED"); err != nil || !whole {
		return err
	}
	pd.Spec.Env[0].Name = "CHANGED"
	if err := e.client.Update(ctx, pd); err != nil {
		return err
	}
	if err := use("changed", "CHANGED"); err != nil {
		return err
	}
	if err := e.client.Delete(ctx, pd); err != nil {
		return err
	}
	return use("deleted", "")
}
