// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/cmd/internal/podview/podmeta"
	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/pipeline"
)

// handler decides about a pod.
type handler struct {
	source   Source
	settings Settings
	profile  *Profile // nil if it is in a ConfigMap
	// all is for pods without opt-in only, because their namespace has one.
	all     bool
	observe Observer
}

var podResource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}

// Handle implements [admission.Handler].
func (h *handler) Handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	if req.Resource != podResource {
		return admission.BadRequest("the request is for %s; this webhook is for pods of version v1: correct the rules of its configuration",
			req.Resource.String()), nil
	}
	// An existing pod stays on its node, and many of its fields are immutable.
	if req.Operation != admissionv1.Create || req.SubResource != "" || h.settings.Disabled {
		return admission.Allowed(), nil
	}
	if len(req.Object.Raw) == 0 {
		return admission.BadRequest("the request has no object; expected a pod"), nil
	}
	md, ok := readMetadata(req.Object.Raw, h.all || h.settings.NamespaceLabel)
	if !ok {
		return admission.BadRequest("not a pod: metadata is missing or not an object"), nil
	}
	if md.Crowded {
		return admission.DeniedResponse(fmt.Sprintf("pod %s has more than %d labels or annotations: give it fewer", md.Name, podmeta.MaxEntries)), nil
	}
	if md.Labels.Get(InjectionLabel) == "false" || is(md.Labels, DoneLabel) {
		return admission.Allowed(), nil
	}
	// Before Kubernetes 1.24 the API server did not check the pod's namespace first.
	if md.Namespace != "" && md.Namespace != req.Namespace {
		return admission.DeniedResponse("the pod's metadata.namespace is another than the request's: leave it out"), nil
	}
	mode := h.mode(&md)
	if mode == nil {
		return admission.Allowed(), nil
	}
	if req.Namespace == "" {
		return nil, errors.New("the request has no namespace")
	}
	p, ok := readPod(req.Object.Raw, md)
	if !ok {
		return admission.BadRequest("not a pod: spec is missing, or a volume or container is not an object"), nil
	}
	profile, err := h.profileNow(ctx)
	if err != nil {
		return nil, err
	}
	d, err := h.draft(ctx, p, req)
	if err != nil {
		return h.answer(p, err)
	}
	if err := h.run(ctx, d, mode(profile)); err != nil {
		return h.answer(p, err)
	}
	return h.response(ctx, d)
}

// A mode selects the pipelines of a profile for a pod.
type mode func(*Profile) *pipelines

func serverful(p *Profile) *pipelines  { return &p.serverful }
func serverless(p *Profile) *pipelines { return &p.serverless }

// mode returns the mode that a pod requests, or nil.
func (h *handler) mode(md *podmeta.Metadata) mode {
	asks, sidecars := false, false
	for i := range optInLabels {
		if in := &optInLabels[i]; is(md.Labels, in.label) {
			asks, sidecars = true, sidecars || in.serverless
		}
	}
	switch {
	case h.all && asks:
		return nil // another webhook handles it
	case sidecars:
		return serverless
	// A pod without opt-in is sent because its namespace has one.
	case asks, h.all, h.settings.NamespaceLabel:
		return serverful
	}
	return nil
}

// profileNow returns the current profile.
func (h *handler) profileNow(ctx context.Context) (*Profile, error) {
	if h.profile != nil {
		return h.profile, nil
	}
	ref := h.settings.ProfileRef()
	object, err := h.source.Find(ctx, ref, false)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the profile of plugins: %s: %w", ref, err)
	case object == nil:
		return nil, fmt.Errorf("the profile of plugins: %s is not there: create it, or give it with --with", ref)
	case object.Profile == nil:
		return nil, prefixed("the profile of plugins: "+ref.String()+": "+profileKey, object.problem)
	}
	return object.Profile, nil
}

// draft makes a draft of the pod with the Datasets that it mounts.
func (h *handler) draft(ctx context.Context, p *pod, req *admissionv1.AdmissionRequest) (*draft, error) {
	precheck := p.Annotations.Get(SkipPrecheckAnnotation) != "true"
	d := newDraft(p)
	d.namespace, d.uid, d.source, d.settings = req.Namespace, string(req.UID), h.source, &h.settings
	d.resolve = func(claims []string) ([]*Mounted, error) {
		return resolve(ctx, h.source, d.namespace, claims, precheck)
	}
	var err error
	if claims := p.claims(); len(claims) > 0 {
		d.mounted, err = d.resolve(claims)
	}
	return d, err
}

// run calls the plugins. After an error the draft must not be used.
func (h *handler) run(ctx context.Context, d *draft, pipelines *pipelines) error {
	var c pipeline.Pipeline[*draft]
	if len(d.mounted) > 0 {
		c = pipelines.with
	} else {
		c = pipelines.without
	}
	before := d.changes
	return c.Run(ctx, d, func(plugin string, _ bool, err error) {
		outcome := OutcomeUnchanged
		switch {
		case err != nil && asRefusal(err) != nil:
			outcome = OutcomeRefused
		case err != nil:
			outcome = OutcomeError
		case d.changes > before:
			outcome = OutcomeChanged
		}
		before = d.changes
		h.observe(plugin, outcome)
	})
}

// answer distinguishes decisions from faults.
func (h *handler) answer(p *pod, err error) (*admission.Response, error) {
	r := asRefusal(err)
	if r == nil {
		return nil, err
	}
	message := r.message
	if p.Name != "" {
		message = "pod " + p.Name + ": " + message
	}
	return admission.DeniedResponse(message), nil
}

func asRefusal(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}

// response makes the answer of a draft.
func (h *handler) response(ctx context.Context, d *draft) (*admission.Response, error) {
	patch := d.emit(admission.WantsOrigins(ctx))
	if patch.Err != nil {
		return admission.BadRequest("not a pod: %v", patch.Err), nil
	}
	resp := patch.Response().Warn(d.warnings...)
	if len(d.mounted) > 0 || len(patch.Operations) > 0 {
		resp.AuditAnnotations = d.audit()
	}
	return resp, nil
}

// audit returns annotations with the pod's Datasets and the terms added to its node
// affinity.
func (d *draft) audit() map[string]string {
	out := map[string]string{}
	if len(d.mounted) > 0 {
		names := make([]string, len(d.mounted))
		for i, m := range d.mounted {
			names[i] = m.Title()
		}
		out["datasets"] = strings.Join(names, ",")
	}
	var terms []string
	for _, reason := range d.affinity.Reasons {
		terms = append(terms, "required "+reason.Term())
	}
	for i := range d.affinity.Preferred {
		reason := &d.affinity.Preferred[i].Reason
		terms = append(terms, strconv.Itoa(reason.Weight)+" "+reason.Term())
	}
	if len(terms) > 0 {
		out["terms"] = strings.Join(terms, "; ")
	}
	return out
}

// uniqueFolder returns a path that no other pod has, based on the request and the
// claim.
func (d *draft) uniqueFolder(claim string) string {
	sum := sha256.Sum256([]byte(d.namespace + "\x00" + d.uid + "\x00" + claim))
	name := d.pod.Name
	if strings.HasSuffix(name, "-") {
		name += "-generate-name"
	}
	return fmt.Sprintf("%s/%s", name, hex.EncodeToString(sum[:8]))
}
