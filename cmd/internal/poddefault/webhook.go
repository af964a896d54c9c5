// SPDX-License-Identifier: Apache-2.0

// Package poddefault applies the PodDefaults of a namespace to its pods: credentials,
// volumes, environment, sidecars. It replaces Kubeflow's PodDefault webhook, with the
// same API, path, annotations and messages.
//
// Each created pod is matched against compiled PodDefaults in memory. What it lacks is
// added by edits to the original bytes. Existing content is never rewritten, and an
// injected pod does not change again.
package poddefault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/match"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/merge"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/meta"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/plan"
	"github.com/sallyport-io/sallyport/cmd/internal/poddefault/use"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
)

// Identifiers of the webhooks in the API.
const (
	Name = "poddefault.sallyport.io"
	Path = "/apply-poddefault"

	ExcludedName = "excluded.poddefault.sallyport.io"
	ExcludedPath = "/apply-poddefault/excluded"
)

// Settings apply to all PodDefaults.
type Settings struct {
	// excludedContainers are names of containers whose command and args are left
	// alone. [DefaultSettings] has istio-proxy, as Kubeflow's webhook does.
	CommandExcluded []string `json:"excludedContainers"`
	// meshContainers are names of containers that get neither env, envFrom nor
	// volume mounts: a mesh proxy configures itself by env, which PodDefaults
	// meant for the application would break. [DefaultSettings] has istio-proxy and
	// linkerd-proxy.
	MeshContainers []string `json:"meshContainers"`
	// freshness is Cached or Consistent. Consistent asks the API server for each pod: while
	// that takes longer than the webhook's timeout, as on an overloaded machine, pods are
	// refused. Give such a webhook more timeoutSeconds.
	Freshness string `json:"freshness"`
	// dataConnections is a label selector, as kubectl has it, of the Secrets that
	// PodDefaults may select by labels; the server then reads the metadata of these
	// Secrets. Empty, the default: PodDefaults that select Secrets are left out.
	DataConnections string `json:"dataConnections"`
	// maxExemption is how far in the future an exemption may end when it is written. 0,
	// the default: Exemptions exempt from nothing.
	MaxExemption metav1.Duration `json:"maxExemption"`
	// usage is [UsageIgnore], the default, also if empty, or [UsageCheck].
	Usage string `json:"usage"`
}

// Exempts reports whether Exemptions count.
func (s *Settings) Exempts() bool { return s.MaxExemption.Duration > 0 }

// Values of [Settings].Freshness.
const (
	// Cached uses the watch, which lags by milliseconds.
	Cached = "Cached"
	// Consistent asks the API server for each pod whether the watch is up to date, so
	// that PodDefaults take effect immediately.
	Consistent = "Consistent"
)

// Freshnesses returns the valid values of [Settings].Freshness.
func Freshnesses() []string { return []string{Cached, Consistent} }

// Validate reports all problems, by the names of the fields in a file.
func (s Settings) Validate() error {
	var errs field.ErrorList
	for _, list := range []struct {
		field string
		names []string
	}{{"excludedContainers", s.CommandExcluded}, {"meshContainers", s.MeshContainers}} {
		for i, name := range list.names {
			for _, problem := range validation.IsDNS1123Label(name) {
				errs = append(errs, field.Invalid(field.NewPath(list.field).Index(i), name, problem))
			}
			if slices.Contains(list.names[:i], name) {
				errs = append(errs, field.Duplicate(field.NewPath(list.field).Index(i), name))
			}
		}
	}
	if !slices.Contains(Freshnesses(), s.Freshness) {
		errs = append(errs, field.NotSupported(field.NewPath("freshness"), s.Freshness, Freshnesses()))
	}
	if _, err := labels.Parse(s.DataConnections); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("dataConnections"), s.DataConnections, err.Error()))
	}
	if s.Usage != "" && !slices.Contains(Usages(), s.Usage) {
		errs = append(errs, field.NotSupported(field.NewPath("usage"), s.Usage, Usages()))
	}
	if s.MaxExemption.Duration < 0 {
		errs = append(errs, field.Invalid(field.NewPath("maxExemption"), s.MaxExemption.Duration.String(), "must not be negative"))
	}
	return errs.ToAggregate()
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{
		CommandExcluded: []string{"istio-proxy"},
		MeshContainers:  []string{"istio-proxy", "linkerd-proxy"},
		Freshness:       Cached,
		Usage:           UsageIgnore,
	}
}

// Values of [Settings].Usage.
const (
	// UsageIgnore lets every pod use the PodDefaults that select it.
	UsageIgnore = "Ignore"
	// UsageCheck asks whether the pod's ServiceAccount may use those that bring
	// Secrets, ConfigMaps or a ServiceAccount.
	UsageCheck = "Check"
)

// Usages returns the valid values of [Settings].Usage.
func Usages() []string { return []string{UsageIgnore, UsageCheck} }

// New defines the webhook for a source of PodDefaults, with the features beside its core. The error reports all
// problems in the settings.
func New(source match.Source, settings Settings, beside ...Feature) (admission.Webhook, error) {
	return define(source, settings, Name, Path, admissionregistrationv1.Fail, false, beside)
}

// NewExcluded defines the webhook for excluded pods, which [New] ignores: not every
// ClusterPodDefault allows exclusion. Excluding a pod also allows creating it while no
// webhook answers, so this webhook then lets it pass.
func NewExcluded(source match.Source, settings Settings, beside ...Feature) (admission.Webhook, error) {
	return define(source, settings, ExcludedName, ExcludedPath, admissionregistrationv1.Ignore, true, beside)
}

func define(source match.Source, settings Settings, name, path string, failurePolicy admissionregistrationv1.FailurePolicyType, excluded bool, beside []Feature) (admission.Webhook, error) {
	err := settings.Validate()
	if source == nil {
		err = errors.Join(errors.New("poddefault: no source of PodDefaults"), err)
	}
	if err != nil {
		return admission.Webhook{}, err
	}
	h := &handler{
		source: source, settings: settings, excluded: excluded,
		leftAlone: merge.LeftAlone{Commands: settings.CommandExcluded, Mesh: settings.MeshContainers},
	}
	for _, feature := range beside {
		feature(&h.features)
	}
	namespaced := admissionregistrationv1.NamespacedScope
	annotation := "object.metadata.annotations['" + meta.ExcludeAnnotation + "']"
	has := "has(object.metadata.annotations) && '" + meta.ExcludeAnnotation + "' in object.metadata.annotations"
	exclusion := admissionregistrationv1.MatchCondition{
		Name:       "not-excluded",
		Expression: "!has(object.metadata.annotations) || !('" + meta.ExcludeAnnotation + "' in object.metadata.annotations) || " + annotation + " != 'true'",
	}
	if excluded {
		exclusion = admissionregistrationv1.MatchCondition{Name: "excluded", Expression: has + " && " + annotation + " == 'true'"}
	}
	return admission.Webhook{
		Name:          name,
		Path:          path,
		Type:          admission.TypeMutating,
		FailurePolicy: failurePolicy,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: &namespaced,
			},
		}},
		// The API server need not send pods that the handler ignores.
		MatchConditions: []admissionregistrationv1.MatchCondition{
			exclusion,
			{
				Name:       "not-a-mirror-pod",
				Expression: "!has(object.metadata.annotations) || !('" + meta.MirrorAnnotation + "' in object.metadata.annotations)",
			},
		},
		Handler: h,
	}, nil
}

type handler struct {
	features
	source    match.Source
	settings  Settings
	leftAlone merge.LeftAlone
	excluded  bool // only for excluded pods
}

var podResource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}

// Handle implements [admission.Handler].
func (h *handler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	resp, err := h.review(ctx, req)
	if err == nil && (req.DryRun == nil || !*req.DryRun) {
		for _, observe := range h.decided {
			observe(req.Namespace, resp)
		}
	}
	return resp, err
}

func (h *handler) review(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if req.Resource != podResource {
		return admission.BadRequest("the request is for %s; this webhook is for pods of version v1: correct the rules of its configuration",
			req.Resource.String()), nil
	}
	if req.Operation != admissionv1.Create || req.SubResource != "" {
		return admission.Allowed(), nil
	}
	if len(req.Object.Raw) == 0 {
		return admission.BadRequest("the request has no object; expected a pod"), nil
	}
	md, ok := meta.ReadMetadata(req.Object.Raw)
	if !ok {
		return admission.BadRequest("not a pod: metadata is missing or not an object"), nil
	}
	if md.Crowded {
		return admission.DeniedResponse(fmt.Sprintf("pod %s has more than %d labels or annotations, the most that PodDefaults are matched with: give it fewer", md.Name, podmeta.MaxEntries)), nil
	}
	md.Request, md.DryRun = req.UID, req.DryRun != nil && *req.DryRun
	excluded := md.Annotations.Get(meta.ExcludeAnnotation) == "true"
	if excluded != h.excluded || md.Annotations.Has(meta.MirrorAnnotation) {
		return admission.Allowed(), nil
	}
	namespace := md.Namespace
	if namespace == "" {
		namespace = req.Namespace
	}
	resp, err := h.decide(ctx, req.Object.Raw, &md, namespace)
	if err == nil {
		return resp, nil
	}
	var tooMuch *match.Excess
	if errors.As(err, &tooMuch) {
		md.Complete()
		h.tell(ctx, namespace, &md, func() []merge.Finding { return merge.RefusalsOf(tooMuch) })
		return tooMuch.Denial(md.Name), nil
	}
	return nil, err
}

// upToDate returns the source, with which Consistent makes sure that it is up to date.
func (h *handler) upToDate(ctx context.Context, namespace string) (source match.Source, err error) {
	if h.settings.Freshness != Consistent {
		return h.source, nil
	}
	err = admission.Await(ctx, func() (err error) {
		source, err = h.source.Fresh(ctx, namespace)
		return err
	})
	return source, err
}

// decide merges the selected objects. A [*match.Excess] error is a decision.
func (h *handler) decide(ctx context.Context, raw []byte, md *meta.Metadata, namespace string) (*admission.Response, error) {
	source, err := h.upToDate(ctx, namespace)
	if err != nil {
		return nil, err
	}
	b := meta.NewBudget(ctx)
	s := match.NewMatcher(namespace, md, h.excluded, &b)
	chosen, err := s.BySent(source)
	if err != nil {
		h.traced(ctx, source, namespace, md.Labels, nil, chosen)
		return nil, err
	}
	if len(chosen.Objects)+len(chosen.Outside) == 0 {
		h.traced(ctx, source, namespace, md.Labels, nil, chosen)
		return h.tellGone(admission.Allowed(), md, nil), nil
	}
	md.Complete()
	f := merge.Folding{Raw: raw, LeftAlone: &h.leftAlone}
	m, err := f.Resolve(md, &b, chosen)
	if added := m.AddedLabels(); err == nil && (len(added) > 0 || s.Discounted) {
		var more []*plan.Plan
		if chosen, more, err = s.ByStored(source, chosen, added); err == nil && len(more) > 0 {
			if m, err = f.Resolve(md, &b, chosen); err == nil {
				chosen, err = m.DenyFurther(&s, source, chosen)
			}
		}
		m.Outside = chosen.Outside
	}
	var tooMuch *match.Excess
	switch {
	case errors.Is(err, merge.ErrNoPod):
		return admission.BadRequest("not a pod: spec is missing, or a container is not an object"), nil
	case errors.As(err, &tooMuch) && m != nil && m.Denies():
	case err != nil:
		h.traced(ctx, source, namespace, md.Labels, nil, chosen)
		return nil, err
	default:
		m.Tally(chosen)
	}
	h.traced(ctx, source, namespace, md.Labels, m, chosen)
	if len(m.Conflicts) > 0 {
		h.tell(ctx, namespace, md, m.Refusals)
		return m.Denial(), nil
	}
	if h.settings.Usage == UsageCheck {
		if denial, err := use.Denial(ctx, m, namespace, h.asker); denial != nil || err != nil {
			return denial, err
		}
	}
	if len(m.Audited) > 0 {
		findings := m.AuditAll(&f, md, &b, chosen) // which warns, too
		h.tell(ctx, namespace, md, func() []merge.Finding { return findings })
	}
	resp := h.tellGone(m.Response(admission.WantsOrigins(ctx)), md, m)
	return resp, m.Beyond()
}
