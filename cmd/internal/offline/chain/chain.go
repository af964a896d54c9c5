// SPDX-License-Identifier: Apache-2.0

// Package chain evaluates the admission chain of a request without a server. It runs
// kube-apiserver's own plugins on the configurations, policies and parameters that it is given, in
// kube-apiserver's order, each on the result of the one before, with reinvocation.
package chain

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/chain/objects"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/dryrun"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/lint"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/release"
	"github.com/sallyport-io/sallyport/cmd/internal/offline/resources"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
	"github.com/sallyport-io/sallyport/internal/wire/replay"
)

// PodSecurity is the phase of kube-apiserver's plugin PodSecurity, which runs before the validating
// policies (kube-apiserver's order of plugins: k8s.io/kubernetes/pkg/kubeapiserver/options).
const PodSecurity lint.Phase = "pod security"

// A Run evaluates the chain of one request.
type Run struct {
	// Objects are the webhook configurations, policies, bindings, parameters, namespaces and
	// CustomResourceDefinitions that exist.
	Objects   []*manifest.Object
	Resources *resources.Set
	// Request is the request, with the resource and the object of the version that the user sends.
	Request *admissionv1.AdmissionRequest
	// FieldManager is that of the request. Without one, it is unknown.
	FieldManager string
	// Webhooks are answered in this process, wherever a configuration has a webhook of that name.
	Webhooks []admission.Webhook
	// Call calls other webhooks, as a dry run, if they declare that they have no side effects then.
	Call bool
	// Authorizer answers expressions that ask for rights. Without one, their result is unknown.
	Authorizer authorizer.UnconditionalAuthorizer
	// Unknown lists inputs that could not be read, for the result.
	Unknown []string
	// FromFiles is set if the objects are those of files, and not of a cluster: then, they are also what
	// kube-apiserver's own plugins read.
	FromFiles bool
	// Release is that of the API server; zero if it is not known. It decides which expressions compile, which policies
	// are served, and which known defects they meet.
	Release release.Version
	// NamespaceMissing is set if the cluster does not have the namespace of the request.
	NamespaceMissing bool
	// DryRun asks an API server about the request. It decides if policies read what is not known here, and if what is
	// evaluated here allows the request. Nil if there is no API server.
	DryRun func(context.Context, *admissionv1.AdmissionRequest) (*dryrun.Answer, error)

	otherRelease bool // than that of the cluster
}

// evaluation is a run in progress.
type evaluation struct {
	*Run
	kinds      *kinds
	namespaces cache.Indexer
	guessed    bool // the namespace of the request is not among the objects
	// The limits of the pod, and the annotation about them, depend on the order of LimitRanges.
	limitsUnknown, annotationUnknown bool
	objects                          objects.Objects
	own                              map[string]admission.Webhook
	called                           []*hook

	mu     sync.Mutex
	result *Result
	again  bool
	open   *Step // the last mutating step, whose result is not known yet
	asked  bool  // whether rights were asked for that are not known
	trial  bool  // steps are not recorded
	// crashed is the answer to a request at which the API server panics.
	crashed error
}

// Do evaluates the request. An error is about what is given: objects that the API server would not
// accept, or a conversion between versions that only the API server can do. Where the result depends on
// what is not known, or the request would be allowed, the API server decides, if there is one.
func (r *Run) Do(ctx context.Context) (*Result, error) {
	result, err := r.evaluate(ctx)
	decided := err == nil && len(result.Unknown) == 0 && (result.Denied != nil || !dryrun.Asked(r.Request))
	if err != nil || decided || r.DryRun == nil {
		return result, err
	}
	return result, r.ask(ctx, result)
}

func (r *Run) evaluate(ctx context.Context) (*Result, error) {
	replay.LimitCopies() // the API server's plugins apply the patches of webhooks and policies
	e := &evaluation{Run: r, own: map[string]admission.Webhook{}, result: &Result{Steps: []*Step{}, Unknown: slices.Clone(r.Unknown)}}
	for _, w := range r.Webhooks {
		e.own[w.Name] = w
	}
	if r.Request.UserInfo.Username == "" {
		r.Request.UserInfo.Username = "sallyport-chain" // every request has a user
		e.result.Notes = append(e.result.Notes, "the request is taken as one of the user sallyport-chain: --as names another one")
	}
	var err error
	if e.kinds, err = newKinds(r); err != nil {
		return nil, err
	}
	_, beta := r.Release.Lacks(release.MutatingPolicies)
	if err := e.objects.Read(r.Objects, beta); err != nil {
		return nil, err
	}
	if err := errors.Join(e.readNamespaces(), r.checkRelease(&e.objects, e.result)); err != nil {
		return nil, err
	}
	attributes, err := e.attributes()
	if err != nil {
		return nil, err
	}
	if refused := e.lifecycle(attributes); refused != nil {
		return e.finish(nil, attributes, refused)
	}
	pod, err := e.newPod(attributes)
	if err != nil {
		return nil, err
	}
	before, err := content(attributes.GetObject())
	if err != nil {
		return nil, err
	}
	of := matching.NewMatcher(e.namespaceLister(), noClient())
	mutatingPolicies, err := e.mutatingPolicies(of)
	if err != nil {
		return nil, err
	}
	validatingPolicies, err := e.validatingPolicies(of)
	if err != nil {
		return nil, err
	}
	mutatingWebhooks, validatingWebhooks, err := e.webhooks(of)
	if err != nil {
		return nil, err
	}
	ctx = warning.WithWarningRecorder(ctx, e)
	defer discardPluginLogs()()
	admit := func() error {
		if err := mutatingPolicies(ctx, attributes); err != nil {
			return err
		}
		return mutatingWebhooks(ctx, attributes)
	}
	err = admit()
	// As k8s.io/apiserver/pkg/admission/reinvocation.go: at most once more.
	if again := attributes.GetReinvocationContext(); err == nil && again.ShouldReinvoke() {
		again.SetIsReinvoke()
		e.again = true
		err = errors.Join(e.admitPod(attributes.GetObject()), admit())
	}
	e.again = false
	if err == nil {
		err = e.checkResult(ctx, attributes)
	}
	for _, validate := range []func(context.Context, apiserveradmission.Attributes) error{e.checkLimits, e.podSecurity, validatingPolicies, validatingWebhooks, e.checkUpdate} {
		if err == nil {
			err = validate(ctx, attributes)
		}
	}
	if err == nil {
		err = e.checkPlugins(attributes, pod)
	}
	return e.finish(before, attributes, err)
}

func (e *evaluation) finish(before any, attributes *attributes, refused error) (*Result, error) {
	if e.kinds.unconvertible != nil {
		return nil, e.kinds.unconvertible
	}
	if err := e.close(attributes.GetObject()); err != nil {
		return nil, err
	}
	out := e.result
	if refused != nil && !errors.Is(refused, errRights) {
		var status *apierrors.StatusError
		if !errors.As(refused, &status) {
			status = apierrors.NewInternalError(refused)
		}
		out.Denied = &status.ErrStatus
	}
	slices.SortStableFunc(out.Steps, func(a, b *Step) int { return a.order - b.order })
	for _, s := range out.Steps {
		if s.Outcome == Unknown || s.unread && s.Outcome != Denied && s.Outcome != Failed {
			out.Unknown = append(out.Unknown, s.Name+": "+s.Messages[0])
		}
	}
	out.AuditAnnotations = attributes.annotations
	out.Notes = append(out.Notes, e.objects.NoteBindings()...)
	out.Notes = append(out.Notes, e.kinds.notes(schema.GroupVersionKind(e.Request.Kind))...)
	after, err := content(attributes.GetObject())
	if err != nil {
		return nil, err
	}
	if after == nil {
		return out, nil
	}
	out.Object, _ = after.(map[string]any)
	if before == nil {
		return out, nil
	}
	out.Changes, err = changes(before, after, nil)
	return out, err
}

// begin records a step of the mutating phases on an object. A policy's mutations are one step.
func (e *evaluation) begin(s Step, object runtime.Object) (*Step, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Again = e.again
	if e.trial {
		return &s, nil
	}
	if o := e.open; o != nil && o.Phase == s.Phase && o.Name == s.Name && o.Param == s.Param && o.Again == s.Again {
		return o, nil
	}
	if err := e.close(object); err != nil {
		return nil, err
	}
	var err error
	if s.before, err = content(object); err != nil {
		return nil, err
	}
	s.Outcome = Unchanged
	e.open = e.add(s)
	return e.open, nil
}

// add records a step.
func (e *evaluation) add(s Step) *Step {
	if e.trial {
		return &s
	}
	s.Again, s.order = e.again, len(e.result.Steps)
	e.result.Steps = append(e.result.Steps, &s)
	return &s
}

// close completes the last mutating step, after which the object is the given one.
func (e *evaluation) close(object runtime.Object) error {
	s := e.open
	if s == nil || s.before == nil || object == nil {
		return nil
	}
	e.open = nil
	after, err := content(object)
	if err != nil {
		return err
	}
	if s.Changes, err = changes(s.before, after, s.origins); err != nil {
		return err
	}
	if len(s.Changes) > 0 && s.Outcome == Unchanged {
		s.Outcome = Changed
	}
	return nil
}

// AddWarning implements [warning.Recorder].
func (e *evaluation) AddWarning(_, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.result.Warnings, text) {
		e.result.Warnings = append(e.result.Warnings, text)
	}
}

// errRights is the error of expressions that ask for unknown rights.
var errRights = errors.New("it depends on rights that are not known here")

// Authorize implements [authorizer.UnconditionalAuthorizer].
func (e *evaluation) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if e.Authorizer != nil {
		decision, reason, err := e.Authorizer.Authorize(ctx, a)
		if err == nil {
			return decision, reason, nil
		}
	}
	e.asked = true
	return authorizer.DecisionNoOpinion, "", errRights
}

// rightsUnknown reports whether f asked for rights that are not known.
func (e *evaluation) rightsUnknown(f func()) bool {
	e.asked = false
	f()
	return e.asked
}

// discardPluginLogs discards what the API server's plugins log until the returned function is called: the result
// says it.
func discardPluginLogs() (restore func()) {
	state := klog.CaptureState()
	klog.SetLogger(logr.Discard())
	return state.Restore
}
