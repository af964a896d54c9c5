// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sallyport-io/sallyport/cmd/internal/webhooks/dataset/kinds"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/internal/kube/nodeterms"
)

// Ref names an object. The namespace of a PersistentVolume is empty.
type Ref struct {
	Kind            kinds.Kind
	Namespace, Name string
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return string(r.Kind) + " " + r.Name
	}
	return string(r.Kind) + " " + r.Namespace + "/" + r.Name
}

// Object is the needed part of an object: one field is set, depending on the kind.
type Object struct {
	Claim   *Claim
	Dataset *Dataset
	Runtime *Runtime
	// Raw is a complete DaemonSet or PersistentVolume.
	Raw jsontext.Value
	// Profile is the profile of a ConfigMap; nil if it has none, for a reason.
	Profile *Profile
	problem error
}

// Prepare computes what depends on the object's name. Call it before sharing the
// object.
func (o *Object) Prepare(ref Ref) {
	if o.Dataset != nil && o.Dataset.title != ref.Namespace+"/"+ref.Name {
		o.Dataset.prepare(ref.Namespace, ref.Name)
	}
}

// Claim is the needed part of a PersistentVolumeClaim.
type Claim struct {
	// Dataset is the name of its Dataset, or "".
	Dataset string
}

// Dataset is the needed part of a Dataset.
type Dataset struct {
	UID, Phase string
	// NotReady is the message of the condition that explains why it is not ready.
	NotReady string
	// RuntimeType is the type of its bound runtime.
	RuntimeType string

	title string // "namespace/name"
	// cache and fuse are met by nodes that hold its cache, and that mount it.
	cache, fuse label
}

// A label is a label of a Dataset's nodes.
type label struct {
	requirement []nodeterms.Requirement // a single one
	problem     error                   // why there is none
}

// prepare computes what depends on the name, so that reviews need not.
func (d *Dataset) prepare(namespace, name string) {
	d.title = namespace + "/" + name
	for prefix, into := range map[string]*label{cachePrefix: &d.cache, fusePrefix: &d.fuse} {
		key, err := labelOf(prefix, namespace, name, d.UID)
		*into = label{problem: err}
		if err == nil {
			into.requirement = []nodeterms.Requirement{nodeterms.New(key, nodeterms.In, "true")}
		}
	}
}

func (d *Dataset) bound() bool { return d.Phase != "" && d.Phase != "NotBound" }

// Runtime is the needed part of a runtime of any kind.
type Runtime struct {
	// FuseSelector is the node selector of its fuse, sorted by key.
	FuseSelector []nodeterms.Requirement
	// Affinity has the terms of its workers' required node affinity.
	Affinity []nodeterms.Term
	// Scrape is set if the metrics of sidecars should be scraped.
	Scrape bool
}

// ParseClaim returns the claim with this name and these labels.
func ParseClaim(name string, labels map[string]string) *Claim {
	c := &Claim{}
	of := cmp.Or(labels[managedByLabel], labels[wrappedByLabel])
	_, managed := labels[managedByLabel]
	_, wrapped := labels[wrappedByLabel]
	for key := range labels {
		managed = managed || strings.HasPrefix(key, cachePrefix)
	}
	if managed || wrapped {
		c.Dataset = cmp.Or(of, name)
	}
	return c
}

// ClaimLabels returns the labels that [ParseClaim] reads; nil if there are none.
func ClaimLabels(labels map[string]string) map[string]string {
	var out map[string]string
	for key, value := range labels {
		if strings.HasPrefix(key, cachePrefix) || key == managedByLabel || key == wrappedByLabel {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

var errNoObject = errors.New("it is not a JSON object, or has no metadata.name")

// maxMessage limits what is shown of a controller's message.
const maxMessage = 512

// Parse decodes an object from the API server. Fields of an unexpected type count as
// absent: validating the API is not the webhook's task.
func Parse(kind kinds.Kind, raw []byte) (Ref, *Object, error) {
	ref := Ref{Kind: kind}
	labels := map[string]string{}
	var uid string
	var spec, status jsontext.Value
	r := rawjson.NewReader(raw)
	ok := r.Object(func(field []byte) {
		switch string(field) {
		case "metadata":
			r.Object(func(field []byte) {
				switch string(field) {
				case "name":
					ref.Name = text(&r)
				case "namespace":
					ref.Namespace = text(&r)
				case "uid":
					uid = text(&r)
				case "labels":
					r.Object(func(key []byte) {
						k := string(key)
						labels[k] = text(&r)
					})
				}
			})
		case "spec":
			spec = r.Value()
		case "status":
			status = r.Value()
		}
	})
	if !ok || ref.Name == "" {
		return ref, nil, fmt.Errorf("%s: %w", kind, errNoObject)
	}
	switch kind {
	case kinds.Claim:
		return ref, &Object{Claim: ParseClaim(ref.Name, labels)}, nil
	case kinds.Dataset:
		return ref, &Object{Dataset: parseDataset(uid, status)}, nil
	case kinds.DaemonSet, kinds.Volume:
		return ref, &Object{Raw: slices.Clone(raw)}, nil
	case kinds.Profile:
		profile, err := ParseProfile(textAt(raw, "data", profileKey))
		return ref, &Object{Profile: profile, problem: err}, nil
	}
	k, known := kinds.Runtimes[kinds.TypeOf(kind)]
	if !known {
		return ref, nil, fmt.Errorf("%s is not read by this webhook", kind)
	}
	return ref, &Object{Runtime: parseRuntime(k, spec, status)}, nil
}

func parseDataset(uid string, status jsontext.Value) *Dataset {
	d := &Dataset{UID: uid}
	r := rawjson.NewReader(status)
	r.Object(func(field []byte) {
		switch string(field) {
		case "phase":
			d.Phase = text(&r)
		case "conditions":
			r.Array(func(int) {
				condition := r.Value()
				if kind := textAt(condition, "type"); kind == "NotReady" || kind == "DatasetNotReady" {
					d.NotReady = bounded(textAt(condition, "message"))
				}
			})
		case "runtimes":
			r.Array(func(index int) {
				if index == 0 {
					d.RuntimeType = textAt(r.Value(), "type")
				}
			})
		}
	})
	return d
}

func parseRuntime(kind kinds.Runtime, spec, status jsontext.Value) *Runtime {
	out := &Runtime{}
	if kind.Selector != "" {
		selector, _ := rawjson.Lookup(spec, kind.Selector, "nodeSelector")
		r := rawjson.NewReader(selector)
		r.Object(func(key []byte) {
			k := string(key)
			out.FuseSelector = append(out.FuseSelector, nodeterms.New(k, nodeterms.In, text(&r)))
		})
		slices.SortStableFunc(out.FuseSelector, func(a, b nodeterms.Requirement) int { return strings.Compare(a.Key, b.Key) })
	}
	terms, _ := rawjson.Lookup(status, "cacheAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	kept := rawjson.NewReader(slices.Clone(terms))
	out.Affinity, _ = nodeterms.Read(&kept)
	target, _ := rawjson.Lookup(spec, "fuse", "metrics", "scrapeTarget")
	if target == nil {
		target, _ = rawjson.Lookup(spec, "fuse", "metrics", "scrape_target")
	}
	r := rawjson.NewReader(target)
	if scrape, ok := r.String(); ok {
		for name := range strings.SplitSeq(string(scrape), ",") {
			name = strings.TrimSpace(name)
			out.Scrape = out.Scrape || strings.EqualFold(name, "All") || strings.EqualFold(name, "Sidecar")
		}
	}
	return out
}

func text(r *rawjson.Reader) string {
	out, _ := r.String()
	return string(out)
}

func textAt(raw jsontext.Value, tokens ...string) string {
	found, _ := rawjson.Lookup(raw, tokens...)
	r := rawjson.NewReader(found)
	return text(&r)
}

func bounded(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
