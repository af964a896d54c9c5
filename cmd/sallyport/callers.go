// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	frontdoor "github.com/sallyport-io/sallyport"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/registration"
	"github.com/sallyport-io/sallyport/serving/delegated"
)

// callerManifests are what is installed so that only the API server can call.
type callerManifests struct {
	authentication string
	metrics        string // who may read them
	networkPolicy  bool
	cidrs          []string
	metricsFrom    string
	podSelector    string
}

var authentications = []string{frontdoor.AuthenticationNone, frontdoor.AuthenticationClientCA, authenticationDelegated}

var metricsAuthentications = []string{frontdoor.AuthenticationNone, authenticationDelegated}

func (c *callerManifests) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.authentication, "authentication", frontdoor.AuthenticationNone,
		"`who` may call admission webhooks, as serve is told; delegated needs rights to ask the API server")
	flags.StringVar(&c.metrics, "metrics-authentication", frontdoor.AuthenticationNone,
		"`who` may read /metrics, as serve is told; delegated needs rights to ask the API server")
	cli.CompleteChoices(cmd, "metrics-authentication", metricsAuthentications)
	flags.BoolVar(&c.networkPolicy, "network-policy", true,
		"print a NetworkPolicy with --part workload, and with any other part if this flag is given")
	flags.StringSliceVar(&c.cidrs, "api-server-cidrs", nil,
		"in the NetworkPolicy: `addresses` from which the API servers call, for example 10.0.0.1/32; may be repeated; empty admits any address to the webhooks")
	flags.StringVar(&c.metricsFrom, "metrics-from", "kubernetes.io/metadata.name=monitoring",
		"in the NetworkPolicy: label `selector` of the namespaces whose pods may read metrics; empty for none")
	flags.StringVar(&c.podSelector, "pod-selector", "",
		"in the NetworkPolicy: label `selector` of the server's pods; empty for those of --part workload")
	cli.CompleteChoices(cmd, "authentication", authentications)
}

func (c *callerManifests) validate() error {
	errs := []error{
		cli.Choice("authentication", c.authentication, authentications),
		cli.Choice("metrics-authentication", c.metrics, metricsAuthentications),
	}
	if !c.networkPolicy && len(c.cidrs) > 0 {
		errs = append(errs, errors.New("--api-server-cidrs: of no use with --network-policy=false"))
	}
	for _, cidr := range c.cidrs {
		if prefix, err := netip.ParsePrefix(cidr); err != nil || prefix != prefix.Masked() {
			errs = append(errs, fmt.Errorf("--api-server-cidrs %q: write an address and its prefix length, for example 10.0.0.1/32", cidr))
		}
	}
	if _, err := metav1.ParseToLabelSelector(c.podSelector); err != nil {
		errs = append(errs, fmt.Errorf("--pod-selector: %w", err))
	}
	if _, err := metav1.ParseToLabelSelector(c.metricsFrom); err != nil {
		errs = append(errs, fmt.Errorf("--metrics-from: %w", err))
	}
	return errors.Join(errs...)
}

// rights let the server ask the API server who calls, and are what a caller needs:
// the ClusterRole ending in "-caller" is for the user as whom the API server calls,
// and is bound by whoever has said which one that is.
func (c *callerManifests) rights(config registration.Config, serviceAccount string, webhooks builtinSelection, settings *builtinSettings) ([]runtime.Object, error) {
	if c.authentication != authenticationDelegated && c.metrics != authenticationDelegated {
		return nil, nil
	}
	kind := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	meta := func(namespace, suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: config.Name + suffix,
			Labels: map[string]string{registration.ManagedByLabel: registration.ManagedByValue},
		}
	}
	role := func(suffix, verb string, paths ...string) runtime.Object {
		return &rbacv1.ClusterRole{
			TypeMeta: kind("ClusterRole"), ObjectMeta: meta("", suffix),
			Rules: []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{verb}}},
		}
	}
	var objects []runtime.Object
	if c.authentication == authenticationDelegated {
		paths, err := webhooks.paths(settings)
		if err != nil {
			return nil, err
		}
		objects = append(objects, role("-caller", delegated.Verb, paths...))
	}
	if c.metrics == authenticationDelegated {
		objects = append(objects, role("-metrics-reader", delegated.MetricsVerb, "/metrics"))
	}
	if config.Endpoint.Service == nil {
		return objects, nil
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: config.Endpoint.Service.Namespace, Name: serviceAccount}}
	return append(objects,
		&rbacv1.ClusterRoleBinding{
			TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: meta("", "-auth-delegator"), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		},
		&rbacv1.RoleBinding{
			TypeMeta: kind("RoleBinding"), ObjectMeta: meta(metav1.NamespaceSystem, "-authentication-reader"), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		}), nil
}

// paths are those of the webhooks that serve has, whatever settings of their own they have.
func (s builtinSelection) paths(configured *builtinSettings) ([]string, error) {
	settings := defaultBuiltinSettings()
	settings.entries = configured.entries
	for _, b := range s.enabled() {
		if b.widen != nil {
			b.widen(&settings)
		}
	}
	webhooks, err := s.define(&settings, noSources())
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, webhook := range webhooks {
		paths = append(paths, webhook.Path)
	}
	slices.Sort(paths)
	return paths, nil
}

// policy lets the API servers reach the webhooks, or everybody if their addresses are
// not known: peers cannot say "no pods" in a way that every network plugin reads alike,
// and an ipBlock that matches no API server is an outage. The metrics are for whoever
// scrapes them, and for the API servers, which proxy to them; kubelets always reach the
// probes of their own node.
func (c *callerManifests) policy(config registration.Config, pods map[string]string) ([]runtime.Object, error) {
	if config.Endpoint.Service == nil {
		return nil, errors.New("--network-policy is for a server in the cluster: give --service")
	}
	selector := &metav1.LabelSelector{MatchLabels: pods}
	if c.podSelector != "" {
		var err error
		if selector, err = metav1.ParseToLabelSelector(c.podSelector); err != nil {
			return nil, fmt.Errorf("--pod-selector: %w", err)
		}
	}
	var servers []networkingv1.NetworkPolicyPeer
	for _, cidr := range c.cidrs {
		servers = append(servers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
	}
	port := func(name string) []networkingv1.NetworkPolicyPort {
		named := intstr.FromString(name)
		return []networkingv1.NetworkPolicyPort{{Port: &named}}
	}
	ingress := []networkingv1.NetworkPolicyIngressRule{{From: servers, Ports: port(webhooksPort)}}
	readers := slices.Clone(servers)
	if c.metricsFrom != "" {
		namespaces, err := metav1.ParseToLabelSelector(c.metricsFrom)
		if err != nil {
			return nil, fmt.Errorf("--metrics-from: %w", err)
		}
		readers = append(readers, networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaces})
	}
	if len(readers) > 0 { // none would be everybody
		ingress = append(ingress, networkingv1.NetworkPolicyIngressRule{From: readers, Ports: port(metricsPort)})
	}
	return []runtime.Object{&networkingv1.NetworkPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: config.Endpoint.Service.Namespace, Name: config.Name,
			Labels: map[string]string{registration.ManagedByLabel: registration.ManagedByValue},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *selector,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     ingress,
		},
	}}, nil
}
