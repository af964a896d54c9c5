// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/registration"
)

// registrationOptions say how the API server reaches the webhooks, and when it
// calls them. They are the same for serve and manifests.
type registrationOptions struct {
	name               string
	service, url       string
	namespaceSelector  string
	excludedNamespaces []string
	failurePolicy      string
	timeoutSeconds     int32
	reviewVersions     []string
}

var (
	failurePolicies = []string{string(admissionregistrationv1.Fail), string(admissionregistrationv1.Ignore)}
	reviewVersions  = []string{"v1", "v1beta1"}
)

// addModeFlag adds the flag that says who writes the webhook configurations.
func addModeFlag(cmd *cobra.Command, mode *registration.Mode) {
	*mode = registration.ModeAPI
	cmd.Flags().Var(mode, "registration", "`who` writes the webhook configurations: the server itself (api) or somebody else (none)")
	completeChoices(cmd, "registration", []string{string(registration.ModeAPI), string(registration.ModeNone)})
}

// addEndpointFlags adds the flags that say where the API server finds the server.
func (o *registrationOptions) addEndpointFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.service, "service", "",
		"the Service by which the API server reaches the server inside the cluster, `namespace/name[:port]`")
	flags.StringVar(&o.url, "url", "",
		"the `url` by which the API server reaches the server outside of the cluster, for example https://127.0.0.1:9443")
}

func (o *registrationOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.name, "configuration-name", "sallyport",
		"`name` of the webhook configurations; the API server calls mutating ones in the order of their names")
	flags.StringVar(&o.namespaceSelector, "namespace-selector", "",
		"label `selector` of the namespaces that the webhooks are for, for example app.kubernetes.io/part-of=kubeflow-profile; empty for all")
	flags.StringSliceVar(&o.excludedNamespaces, "excluded-namespaces", []string{metav1.NamespaceSystem, corev1.NamespaceNodeLease},
		"`namespaces` that the webhooks are never called for; that of --service is excluded as well")
	flags.StringVar(&o.failurePolicy, "failure-policy", failurePolicies[0],
		"`policy` for an object whose webhook fails: refuse it (Fail) or admit it as it is (Ignore)")
	flags.Int32Var(&o.timeoutSeconds, "webhook-timeout", 5, "`seconds` that the API server waits for a webhook, from 1 to 30")
	flags.StringSliceVar(&o.reviewVersions, "review-versions", reviewVersions,
		"`versions` of AdmissionReview that are spoken, the preferred one first")
	completeChoices(cmd, "failure-policy", failurePolicies)
	completeChoices(cmd, "review-versions", reviewVersions)
}

// noEndpoint tells whether nothing says where the server is.
func (o *registrationOptions) noEndpoint() bool { return o.service == "" && o.url == "" }

// validateEndpoint reports every mistake in --service and --url.
func (o *registrationOptions) validateEndpoint() error {
	switch {
	case o.noEndpoint():
		return errors.New("--service or --url is needed: the API server must know where the webhooks are")
	case o.service != "" && o.url != "":
		return errors.New("--service and --url exclude each other: choose --service for a server in the cluster")
	case o.url != "":
		if err := (registration.Endpoint{URL: o.url}).Validate(); err != nil {
			return fmt.Errorf("--url: %w", err)
		}
		return nil
	}
	service, err := parseService(o.service)
	if err == nil {
		err = registration.Endpoint{Service: service}.Validate()
	}
	if err != nil {
		return fmt.Errorf("--service: %w", err)
	}
	return nil
}

// validate reports every mistake in the other flags.
func (o *registrationOptions) validate() error {
	errs := []error{choice("failure-policy", o.failurePolicy, failurePolicies)}
	// The rest of the configuration is good; what remains is about the name.
	named := registration.Config{Name: o.name, Endpoint: registration.Endpoint{URL: "https://127.0.0.1"}}
	if err := named.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--configuration-name: %w", err))
	}
	for _, namespace := range o.excludedNamespaces {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, fmt.Errorf("--excluded-namespaces: %q: %s", namespace, problem))
		}
	}
	if _, err := o.selector(); err != nil {
		errs = append(errs, err)
	}
	if o.timeoutSeconds < 1 || o.timeoutSeconds > 30 {
		errs = append(errs, fmt.Errorf("--webhook-timeout %d: the API server allows 1 to 30 seconds", o.timeoutSeconds))
	}
	if len(o.reviewVersions) == 0 {
		errs = append(errs, fmt.Errorf("--review-versions is empty: choose %s", oneOf(reviewVersions)))
	}
	for i, version := range o.reviewVersions {
		errs = append(errs, choice("review-versions", version, reviewVersions))
		if slices.Contains(o.reviewVersions[:i], version) {
			errs = append(errs, fmt.Errorf("--review-versions: %s stands there twice", version))
		}
	}
	return errors.Join(errs...)
}

// config is what the flags say about the configuration objects; they were
// validated.
func (o *registrationOptions) config() registration.Config {
	config := registration.Config{Name: o.name, Endpoint: registration.Endpoint{URL: o.url}}
	if service, err := parseService(o.service); err == nil {
		config.Endpoint.Service = service
	}
	return config
}

func parseService(value string) (*registration.Service, error) {
	namespace, rest, ok := strings.Cut(value, "/")
	name, port, hasPort := strings.Cut(rest, ":")
	if !ok || namespace == "" || name == "" {
		return nil, fmt.Errorf("%q: write NAMESPACE/NAME or NAMESPACE/NAME:PORT", value)
	}
	service := &registration.Service{Namespace: namespace, Name: name}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q: the port must be a number from 1 to 65535", value)
		}
		service.Port = int32(n)
	}
	return service, nil
}

// apply returns the definitions as the flags want them registered.
func (o *registrationOptions) apply(webhooks []admission.Webhook) ([]admission.Webhook, error) {
	selector, err := o.selector()
	if err != nil {
		return nil, err
	}
	var errs []error
	out := slices.Clone(webhooks)
	for i := range out {
		out[i].NamespaceSelector = selector
		out[i].FailurePolicy = admissionregistrationv1.FailurePolicyType(o.failurePolicy)
		out[i].TimeoutSeconds = o.timeoutSeconds
		out[i].ReviewVersions = o.reviewVersions
		errs = append(errs, out[i].Validate())
	}
	return out, errors.Join(errs...)
}

// selector keeps the webhooks away from namespaces that must work without them,
// this server's own first of all: otherwise nothing could start it again.
func (o *registrationOptions) selector() (*metav1.LabelSelector, error) {
	selector, err := metav1.ParseToLabelSelector(o.namespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("--namespace-selector: %w", err)
	}
	excluded := slices.Clone(o.excludedNamespaces)
	if namespace, _, ok := strings.Cut(o.service, "/"); ok {
		excluded = append(excluded, namespace)
	}
	slices.Sort(excluded)
	if excluded = slices.Compact(excluded); len(excluded) > 0 {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: excluded,
		})
	}
	return selector, nil
}

// hosts are the names and addresses that the API server expects in the serving
// certificate.
func hosts(endpoint registration.Endpoint) (names []string, addresses []net.IP) {
	if s := endpoint.Service; s != nil {
		return []string{s.Name + "." + s.Namespace + ".svc"}, nil
	}
	u, err := url.Parse(endpoint.URL)
	if err != nil { // it was validated
		return nil, nil
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		return nil, []net.IP{ip}
	}
	return []string{u.Hostname()}, nil
}
