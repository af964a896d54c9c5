// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	webhookgeneric "k8s.io/apiserver/pkg/admission/plugin/webhook/generic"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/objects"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/reads"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/matcher"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

// hook is a webhook of a configuration. The API server's plugins send its reviews to a host of its
// own, where this process takes them.
type hook struct {
	step         Step
	name         string
	clientConfig admissionregistrationv1.WebhookClientConfig
	rules        []admissionregistrationv1.RuleWithOperations
	criteria     matcher.Criteria
	matchPolicy  admissionregistrationv1.MatchPolicyType
	fail         admissionregistrationv1.FailurePolicyType
	sideEffects  *admissionregistrationv1.SideEffectClass
	reads        []reads.Read // of its match conditions
}

// hostSuffix ends the hosts of webhooks (RFC 6761: no such host exists).
const hostSuffix = ".webhook.invalid"

// take replaces the address of a webhook. The error is about its match conditions, which the API server
// would not accept.
func (e *evaluation) take(h hook, conditions []admissionregistrationv1.MatchCondition, config *admissionregistrationv1.WebhookClientConfig) error {
	h.clientConfig = *config
	url := "https://" + strconv.Itoa(len(e.called)) + hostSuffix
	*config = admissionregistrationv1.WebhookClientConfig{URL: &url}
	e.called = append(e.called, &h)
	if len(conditions) == 0 {
		return nil
	}
	c, err := e.compilation(nil, false)
	if err != nil {
		return err
	}
	c.Matcher(conditions, &h.fail, h.name)
	h.reads = c.ReadsOf(conditions)
	return errors.Join(c.Errs...)
}

// unreadConditions records webhooks whose match conditions read what is not known.
func (e *evaluation) unreadConditions(of *matching.Matcher, phase lint.Phase, a apiserveradmission.Attributes) error {
	if e.again {
		return nil
	}
	for _, h := range e.called {
		if h.step.Phase != phase || len(h.reads) == 0 || len(h.rules) == 0 {
			continue
		}
		matches, _, kind, err := of.Matches(a, e.kinds, h.criteria)
		if err != nil || !matches { // the plugin reports the error
			continue
		}
		versioned, err := apiserveradmission.NewVersionedAttributes(a, kind, e.kinds)
		if err != nil {
			return err
		}
		field, err := e.unread(question{phase, versioned, nil}, h.reads)
		if err != nil {
			return err
		}
		if field != "" {
			e.result.Unknown = append(e.result.Unknown, h.step.Name+": match conditions: "+errUnread(field))
		}
	}
	return nil
}

// webhooks prepares kube-apiserver's plugins for webhooks.
func (e *evaluation) webhooks(of *matching.Matcher) (mutating, validating phase, err error) {
	factory := informers.NewSharedInformerFactory(nil, 0)
	store := func(informer cache.SharedIndexInformer, object any) {
		err = errors.Join(err, informer.GetIndexer().Add(object))
	}
	for _, c := range e.objects.MutatingWebhooks {
		for i := range c.Value.Webhooks {
			w := &c.Value.Webhooks[i]
			step := Step{Phase: lint.MutatingWebhooks, Name: c.Name + "/" + w.Name}
			h := hook{step: step, name: w.Name, rules: w.Rules, criteria: matcher.OfWebhook(w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector), matchPolicy: *w.MatchPolicy, fail: *w.FailurePolicy, sideEffects: w.SideEffects}
			if problem := e.take(h, w.MatchConditions, &w.ClientConfig); problem != nil {
				err = errors.Join(err, c.ErrorAt(jsontext.Pointer(fmt.Sprintf("/webhooks/%d", i)), c.Title()+": "+problem.Error()))
			}
		}
		c.Value.Name = ordered(c.Name)
		store(factory.Admissionregistration().V1().MutatingWebhookConfigurations().Informer(), c.Value)
	}
	for _, c := range e.objects.ValidatingWebhooks {
		for i := range c.Value.Webhooks {
			w := &c.Value.Webhooks[i]
			step := Step{Phase: lint.ValidatingWebhooks, Name: c.Name + "/" + w.Name}
			h := hook{step: step, name: w.Name, rules: w.Rules, criteria: matcher.OfWebhook(w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector), matchPolicy: *w.MatchPolicy, fail: *w.FailurePolicy, sideEffects: w.SideEffects}
			if problem := e.take(h, w.MatchConditions, &w.ClientConfig); problem != nil {
				err = errors.Join(err, c.ErrorAt(jsontext.Pointer(fmt.Sprintf("/webhooks/%d", i)), c.Title()+": "+problem.Error()))
			}
		}
		c.Value.Name = ordered(c.Name)
		store(factory.Admissionregistration().V1().ValidatingWebhookConfigurations().Informer(), c.Value)
	}
	for _, namespace := range e.namespaces.List() {
		store(factory.Core().V1().Namespaces().Informer(), namespace)
	}
	mutatingPlugin, errMutating := mutatingwebhook.NewMutatingWebhook(nil)
	validatingPlugin, errValidating := validatingwebhook.NewValidatingAdmissionWebhook(nil)
	if err := errors.Join(err, errMutating, errValidating); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(e.prepare(mutatingPlugin.Webhook, factory), e.prepare(validatingPlugin.Webhook, factory)); err != nil {
		return nil, nil, err
	}
	_, seen := e.Release.Lacks(release.HiddenReviews)
	hidden := func(a apiserveradmission.Attributes) bool {
		return !seen && matcher.IsReview(a.GetResource().GroupResource())
	}
	mutating = func(ctx context.Context, a apiserveradmission.Attributes) error {
		if hidden(a) {
			return nil
		}
		if err := e.unreadConditions(of, lint.MutatingWebhooks, a); err != nil {
			return err
		}
		return errors.Join(e.withRights(func() error { return mutatingPlugin.Admit(ctx, a, e.kinds) }), e.close(a.GetObject()))
	}
	validating = func(ctx context.Context, a apiserveradmission.Attributes) error {
		if hidden(a) {
			return nil
		}
		if err := e.unreadConditions(of, lint.ValidatingWebhooks, a); err != nil {
			return err
		}
		return e.withRights(func() error { return validatingPlugin.Validate(ctx, a, e.kinds) })
	}
	return mutating, validating, nil
}

// first begins the names by which the plugins sort configurations of static manifests.
const first = "!"

// ordered returns the name by which a plugin has a configuration: those of static manifests come first.
func ordered(name string) string {
	if objects.Static(name) {
		return first + name
	}
	return name
}

// withRights runs a plugin for webhooks. If match conditions ask for rights that are not known, the rest of
// the chain is not known either.
func (e *evaluation) withRights(admit func() error) error {
	var err error
	if e.rightsUnknown(func() { err = admit() }) {
		e.result.Unknown = append(e.result.Unknown, "match conditions of webhooks: "+errRights.Error())
		return errRights
	}
	return err
}

// prepare initializes a plugin with informers whose content does not change.
func (e *evaluation) prepare(plugin *webhookgeneric.Webhook, factory informers.SharedInformerFactory) error {
	plugin.SetExternalKubeClientSet(noClient())
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetUnconditionalAuthorizer(e)
	plugin.SetAuthenticationInfoResolverWrapper(func(webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
		return &webhookutil.AuthenticationInfoResolverDelegator{ClientConfigForFunc: func(string) (*rest.Config, error) {
			return &rest.Config{WrapTransport: func(http.RoundTripper) http.RoundTripper { return e }}, nil
		}}
	})
	if err := plugin.ValidateInitialization(); err != nil {
		return err
	}
	plugin.SetReadyFunc(func() bool { return true })
	return nil
}

// noClient returns the client that plugins need besides informers. They use it for namespaces that
// their informer lacks, and the informer has that of the request.
func noClient() kubernetes.Interface { return &kubernetes.Clientset{} }

func (e *evaluation) namespaceLister() listersv1.NamespaceLister {
	return listersv1.NewNamespaceLister(e.namespaces)
}

// RoundTrip implements [http.RoundTripper] for reviews.
func (e *evaluation) RoundTrip(request *http.Request) (*http.Response, error) {
	number, err := strconv.Atoi(strings.TrimSuffix(request.URL.Hostname(), hostSuffix))
	if err != nil || number >= len(e.called) {
		return nil, fmt.Errorf("no webhook has the address %s", request.URL)
	}
	h := e.called[number]
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var review struct {
		APIVersion string                        `json:"apiVersion"`
		Request    *admissionv1.AdmissionRequest `json:"request"`
	}
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	step, err := e.stepOf(h, number, review.Request)
	if err != nil {
		return nil, err
	}
	answer, origins, err := e.answer(request.Context(), h, review.APIVersion, review.Request)
	e.mu.Lock()
	defer e.mu.Unlock()
	step.origins = origins
	status := http.StatusOK
	var unknown *unknownError
	switch {
	case errors.As(err, &unknown):
		step.Outcome, step.Messages = Unknown, []string{unknown.Error()}
		answer, err = json.Marshal(allow(review.APIVersion, review.Request))
		if err != nil {
			return nil, err
		}
	case err != nil:
		step.Outcome, step.Messages = failed(h.fail), []string{err.Error()}
		status, answer = http.StatusInternalServerError, []byte(err.Error())
	default:
		var given struct {
			Response *admissionv1.AdmissionResponse `json:"response"`
		}
		if err := json.Unmarshal(answer, &given); err != nil || given.Response == nil {
			step.Outcome, step.Messages = failed(h.fail), []string{"its answer is not an AdmissionReview with a response"}
		} else if !given.Response.Allowed {
			step.Outcome = Denied
			if given.Response.Result != nil {
				step.Messages = []string{given.Response.Result.Message}
			}
		}
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)), Request: request,
	}, nil
}

// stepOf records the step of a call. Validating webhooks are called at the same time, and recorded in
// the order of their configurations.
func (e *evaluation) stepOf(h *hook, number int, req *admissionv1.AdmissionRequest) (*Step, error) {
	if h.step.Phase == lint.MutatingWebhooks {
		object, err := e.kinds.decode(schema.GroupVersionKind(req.Kind), req.Object.Raw, req.Namespace)
		if err != nil {
			return nil, err
		}
		return e.begin(h.step, object)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	step := e.add(h.step)
	step.Outcome = Allowed
	step.order = validatingWebhooksFirst + number
	return step, nil
}

// validatingWebhooksFirst is larger than the number of other steps.
const validatingWebhooksFirst = 1 << 30

// unknownError says why a webhook's answer is not known.
type unknownError struct{ error }

// answer returns a webhook's answer to a review.
func (e *evaluation) answer(ctx context.Context, h *hook, version string, req *admissionv1.AdmissionRequest) (jsontext.Value, []admission.Origin, error) {
	own, ok := e.own[h.name]
	switch {
	case ok:
		own.Rules, own.MatchPolicy = h.rules, h.matchPolicy
		result, err := replay.Review{Version: version, Request: req}.Run(ctx, []admission.Webhook{own})
		if err != nil {
			return nil, nil, err
		}
		if len(result.Calls) != 1 {
			return nil, nil, fmt.Errorf("webhook %s: its own type is %s", h.name, own.Type)
		}
		call := result.Calls[0]
		return call.Answer, call.Response.Origins, nil
	case !e.Call:
		return nil, nil, &unknownError{errors.New("only its server knows, unless the configuration of Sallyport enables it: --call asks it")}
	case h.sideEffects == nil || *h.sideEffects != admissionregistrationv1.SideEffectClassNone && *h.sideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun:
		return nil, nil, &unknownError{errors.New("it is not called: its sideEffects are neither None nor NoneOnDryRun")}
	}
	answer, err := post(ctx, h, version, req)
	if err != nil {
		return nil, nil, &unknownError{fmt.Errorf("it cannot be reached from here: %w", err)}
	}
	return answer, nil, nil
}

// post sends a review to a webhook, as a dry run, as the API server would.
func post(ctx context.Context, h *hook, version string, req *admissionv1.AdmissionRequest) ([]byte, error) {
	dry := *req
	dry.DryRun = new(true)
	body, err := json.Marshal(map[string]any{"apiVersion": version, "kind": "AdmissionReview", "request": &dry})
	if err != nil {
		return nil, err
	}
	manager, err := webhookutil.NewClientManager([]schema.GroupVersion{admissionv1.SchemeGroupVersion, admissionv1beta1.SchemeGroupVersion}, admissionv1.AddToScheme, admissionv1beta1.AddToScheme)
	if err != nil {
		return nil, err
	}
	resolver, err := webhookutil.NewDefaultAuthenticationInfoResolver("")
	if err != nil {
		return nil, err
	}
	manager.SetAuthenticationInfoResolver(resolver)
	manager.SetServiceResolver(webhookutil.NewDefaultServiceResolver())
	config := webhookutil.ClientConfig{Name: h.name, CABundle: h.clientConfig.CABundle}
	switch {
	case h.clientConfig.URL != nil:
		config.URL = *h.clientConfig.URL
	case h.clientConfig.Service != nil:
		service := h.clientConfig.Service
		config.Service = &webhookutil.ClientConfigService{Name: service.Name, Namespace: service.Namespace}
		if service.Path != nil {
			config.Service.Path = *service.Path
		}
		if service.Port != nil {
			config.Service.Port = *service.Port
		}
	}
	client, err := manager.HookClient(config)
	if err != nil {
		return nil, err
	}
	call := client.Post().SetHeader("Content-Type", "application/json").Body(body)
	if deadline, ok := ctx.Deadline(); ok {
		call = call.Timeout(time.Until(deadline).Round(time.Second))
	}
	return call.Do(ctx).Raw()
}

// allow returns the answer that changes nothing.
func allow(version string, req *admissionv1.AdmissionRequest) map[string]any {
	return map[string]any{"apiVersion": version, "kind": "AdmissionReview", "response": map[string]any{"uid": req.UID, "allowed": true}}
}
