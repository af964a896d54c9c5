// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/server"
	"github.com/sallyport-io/sallyport/lint"
)

type metaKind = schema.GroupVersionKind

// oldestSupported is the oldest release of Kubernetes that is tested with.
const oldestSupported = "1.34.0"

// clockTransport notes what time it is for the API server.
type clockTransport struct {
	mu   sync.Mutex
	skew time.Duration // of the API server against this machine
	seen bool
}

// wrap is for [rest.Config.Wrap].
func (t *clockTransport) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		before := time.Now()
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		after := time.Now()
		// What is proxied has the date of somebody else; and the date has whole seconds.
		if date, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil && r.URL.Path == "/version" && after.Sub(before) < 5*time.Second {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.skew, t.seen = date.Add(500*time.Millisecond).Sub(before.Add(after.Sub(before)/2)), true
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// checkAPIServer returns an error if there is nobody to ask.
func (d *doctor) checkAPIServer(_ context.Context) error {
	const check = "api-server"
	info, err := d.client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	version, err := utilversion.ParseGeneric(info.GitVersion)
	if err == nil && version.LessThan(utilversion.MustParseGeneric(oldestSupported)) {
		d.fix(check, "Sallyport is tested with Kubernetes 1.34 to 1.37", "it is Kubernetes %s", info.GitVersion)
		return nil
	}
	d.ok(check, "Kubernetes %s answers", info.GitVersion)
	return nil
}

// tolerance is how far clocks may be apart: certificates are made to be valid from a
// few minutes ago on, and leases last 15 s.
const tolerance = 5 * time.Second

func (d *doctor) checkClock() {
	const check = "clock"
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	switch {
	case !d.clock.seen:
		d.skip(check, "the API server does not say what time it is")
	case d.clock.skew.Abs() > tolerance:
		d.fix(check, "synchronise clocks: certificates and leases are judged by them", "the clock of the API server differs from the one here by %s", d.clock.skew.Round(time.Second))
	default:
		d.ok(check, "the API server's and the one here agree")
	}
}

// longestLease is longer than any replica is told to wait for a leader that is silent.
const longestLease = 10 * time.Minute

// checkLeader looks at the lease by which replicas elect the one that writes. Its times
// are by the clock of the one that holds it.
func (d *doctor) checkLeader(ctx context.Context) {
	const check = "leader"
	namespace, name, ok := d.certificates.AuthoritySecret(d.registration.Config().Endpoint)
	if s := d.service(); !ok && s != nil {
		namespace, name, ok = s.Namespace, d.certificates.DefaultSecret, true
	}
	if !ok {
		d.skip(check, "a server without a Secret for its authority elects none")
		return
	}
	lease, err := d.client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.skip(check, "there is no lease %s/%s: leader election is off, or no server has started yet", namespace, name)
		return
	case err != nil:
		d.cannot(check, "get Lease "+namespace+"/"+name, err)
		return
	}
	spec := lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
		d.fix(check, "see the logs of the replicas: one of them should take it", "nobody holds the lease %s/%s: nothing is written or rotated", namespace, name)
		return
	}
	now := time.Now().Add(d.clock.skew)
	silent, lasts := now.Sub(spec.RenewTime.Time), time.Duration(*spec.LeaseDurationSeconds)*time.Second
	switch {
	case lasts > longestLease:
		d.fix(check, "delete the lease, and see who may write leases in "+namespace, "%s has taken the lease %s/%s for %d s: nothing is written or rotated until it has been silent for a while",
			*spec.HolderIdentity, namespace, name, *spec.LeaseDurationSeconds)
	case silent > lasts:
		d.fix(check, "see whether it runs, and whether it reaches the API server; the others take over if they can", "%s leads, and has been silent for %s", *spec.HolderIdentity, silent.Round(time.Second))
	case silent < -tolerance:
		d.fix(check, "synchronise clocks", "the clock of %s, which leads, is ahead by %s", *spec.HolderIdentity, (-silent).Round(time.Second))
	default:
		d.ok(check, "%s leads", *spec.HolderIdentity)
	}
}

// checkRights asks for each right that manifests prints whether the server has it.
func (d *doctor) checkRights(ctx context.Context) {
	const check = "rights"
	namespace, account, ok := strings.Cut(d.serviceAccount, "/")
	if !ok {
		account = namespace
		s := d.service()
		if s == nil {
			d.skip(check, "a server that is reached by a URL is known by --service-account NAMESPACE/NAME only")
			return
		}
		namespace = s.Namespace
	}
	who := "system:serviceaccount:" + namespace + ":" + account
	expected := d.expected()
	if s := d.service(); s != nil && expected.Registration.Service == "" {
		expected.Registration.Service = s.Namespace + "/" + s.Name
	}
	var lacking []string
	asked := 0
	for _, object := range serverRights(expected, account).Objects() {
		var rules []rbacv1.PolicyRule
		in := ""
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules, in = role.Rules, role.Namespace
		}
		for _, attributes := range attributesOf(rules, in) {
			review, err := d.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: who, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}, ResourceAttributes: &attributes},
			}, metav1.CreateOptions{})
			if err != nil {
				d.cannot(check, "create subjectaccessreviews", err)
				return
			}
			asked++
			if !review.Status.Allowed {
				lacking = append(lacking, strings.TrimSpace(fmt.Sprintf("%s %s %s", attributes.Verb, attributes.Resource, attributes.Name)))
			}
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		d.fix(check, "apply what 'sallyport manifests --part rbac' prints, with the flags of the server", "%s cannot %s", who, strings.Join(slices.Compact(lacking), ", "))
		return
	}
	d.ok(check, "%s has the %d rights that it needs", who, asked)
}

// expected is the configuration that the server seems to have: with the ready-made webhooks
// that are registered, or those by default if none is.
func (d *doctor) expected() *server.Config {
	config := server.Default()
	config.Registration.Service, config.Registration.Name = d.registration.Service, d.registration.Name
	config.Certificate.AuthoritySecret = d.certificates.Secret
	config.Controllers = nil // their rights are not known to be needed
	var registered []string
	for _, b := range server.Builtins() {
		webhooks, err := b.Default()
		if err == nil && slices.ContainsFunc(webhooks, func(w admission.Webhook) bool {
			return slices.ContainsFunc(d.webhooks, func(r registeredWebhook) bool { return r.name == w.Name })
		}) {
			registered = append(registered, b.Name)
		}
	}
	if len(registered) > 0 {
		_ = config.Select(registered...) // they are known
	}
	return config
}

// attributesOf spells rules out, one right each.
func attributesOf(rules []rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name})
					}
				}
			}
		}
	}
	return out
}

// checkStatic looks at static admission manifests.
func (d *doctor) checkStatic(ctx context.Context) {
	const check = "static-manifests"
	if len(d.static) == 0 {
		d.skip(check, "none are named by --static-manifests-dir")
		return
	}
	report, err := lintFiles(nil, d.static, nil, lint.Options{})
	if err != nil {
		for _, e := range splitErrors(err) {
			d.fix(check, "kube-apiserver goes on with the last good set of files: correct it", "%v", e)
		}
		return
	}
	before := len(d.found)
	for _, f := range report.Findings {
		if f.Severity == lint.Error {
			d.fix(check, f.Fix, "%s:%d: %s", f.File, f.Line, f.Message)
		}
	}
	// The metric is there only if the API server reads such files.
	body, err := d.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	reads := err == nil && bytes.Contains(body, []byte("apiserver_manifest_admission_config_controller_"))
	if n := report.Checked["MutatingWebhookConfiguration"] + report.Checked["ValidatingWebhookConfiguration"]; len(d.found) == before {
		text := fmt.Sprintf("%s in %s", plural(n, "configuration"), strings.Join(d.static, ", "))
		if !reads && err == nil {
			text += "; whether the API server reads them is not seen: it has not had to read them again"
		}
		d.ok(check, "%s", text)
	}
}

// converts tells whether a definition's objects are converted by the server.
func (d *doctor) converts(raw []byte) bool {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &crd); err != nil {
		return false
	}
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return false
	}
	s, own := c.Webhook.ClientConfig.Service, d.service()
	if s != nil && own != nil {
		return s.Namespace == own.Namespace && s.Name == own.Name
	}
	u := d.url()
	return u != nil && strings.Contains(cmp.Or(ptr(c.Webhook.ClientConfig.URL), "-"), u.Host)
}

func ptr(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
