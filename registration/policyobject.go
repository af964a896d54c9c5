// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
)

// policyPart is the state of a policy or its binding, which is ours as a whole.
type policyPart[Object interface {
	metav1.Object
	comparable
}, List runtime.Object, Wanted comparable] struct {
	objectName, kindName, resource, manager string
	client                                  client[Object, List, Wanted]
	new                                     func() runtime.Object
	wanted                                  func(wanted) Wanted  // zero if there should be none
	at                                      func(Wanted, string) // applies only to that resource version
	wait                                    func(context.Context) error

	// What the last successful pass wanted (nil: no object) and left.
	passed          bool
	last            []byte
	resourceVersion string // empty: no object
}

func policyObject(o Options, wait func(context.Context) error) kept {
	return &policyPart[*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyList,
		*admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration]{
		objectName: o.Config.Name, kindName: policyKind, resource: "validatingadmissionpolicy", manager: o.FieldManager, wait: wait,
		client: o.Client.ValidatingAdmissionPolicies(),
		new:    func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicy{} },
		wanted: func(w wanted) *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration {
			return w.policies.Policy
		},
		at: func(p *admissionregistrationac.ValidatingAdmissionPolicyApplyConfiguration, version string) {
			p.WithResourceVersion(version)
		},
	}
}

func bindingObject(o Options, wait func(context.Context) error) kept {
	return &policyPart[*admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.ValidatingAdmissionPolicyBindingList,
		*admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration]{
		objectName: o.Config.Name, kindName: bindingKind, resource: "validatingadmissionpolicybinding", manager: o.FieldManager, wait: wait,
		client: o.Client.ValidatingAdmissionPolicyBindings(),
		new:    func() runtime.Object { return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{} },
		wanted: func(w wanted) *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration {
			return w.policies.Binding
		},
		at: func(b *admissionregistrationac.ValidatingAdmissionPolicyBindingApplyConfiguration, version string) {
			b.WithResourceVersion(version)
		},
	}
}

func (o *policyPart[Object, List, Wanted]) kind() string              { return o.kindName }
func (o *policyPart[Object, List, Wanted]) name() string              { return o.objectName }
func (o *policyPart[Object, List, Wanted]) prototype() runtime.Object { return o.new() }
func (o *policyPart[Object, List, Wanted]) forget()                   { o.passed = false }

func (o *policyPart[Object, List, Wanted]) bundles(map[string]bool, metav1.Object) [][]byte {
	return nil
}

// listerWatcher selects by name: that is all that the rights allow.
func (o *policyPart[Object, List, Wanted]) listerWatcher() cache.ListerWatcher {
	return oneByName(o.objectName, o.client.List, o.client.Watch)
}

func (o *policyPart[Object, List, Wanted]) ours(live metav1.Object) bool {
	return live.GetLabels()[ManagedByLabel] == ManagedByValue &&
		slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == o.manager })
}

func (o *policyPart[Object, List, Wanted]) observe(all wanted, live metav1.Object) error {
	wanted := o.wanted(all)
	var none Wanted
	switch {
	case wanted == none && (live == nil || !o.ours(live)):
		return nil
	case wanted == none:
		return fmt.Errorf("%s %s is not wanted any more", o.kindName, o.objectName)
	case live == nil:
		return fmt.Errorf("%s %s does not exist", o.kindName, o.objectName)
	}
	same, err := holds(wanted, live)
	if err == nil && !same {
		err = fmt.Errorf("%s %s is not as it should be; %s changed it last", o.kindName, o.objectName, lastManager(live, o.manager))
	}
	return err
}

func (o *policyPart[Object, List, Wanted]) pass(ctx context.Context, all wanted, live metav1.Object, full, repair bool) (outcome, error) {
	var none Wanted
	wanted := o.wanted(all)
	var data []byte
	if wanted != none {
		var err error
		if data, err = json.Marshal(wanted); err != nil {
			return outcome{}, err
		}
	}
	liveVersion := ""
	if live != nil {
		liveVersion = live.GetResourceVersion()
	}
	same := o.passed && bytes.Equal(data, o.last)
	if wanted == none && live == nil { // as the store tells
		o.passed, o.last, o.resourceVersion = true, nil, ""
		return outcome{}, nil
	}
	if same && !full {
		switch {
		case liveVersion == o.resourceVersion:
			return outcome{}, nil
		case o.observe(all, live) == nil:
			o.resourceVersion = liveVersion
			return outcome{}, nil
		case !repair:
			return outcome{deferred: true}, nil
		}
	}
	if err := o.wait(ctx); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := outcome{called: true}
	var left string
	var drifted bool
	var err error
	if wanted == none {
		left, drifted, err = o.remove(ctx, nil)
		out.written = drifted
	} else {
		left, drifted, err = o.put(ctx, wanted)
		out.written = left != o.resourceVersion
	}
	if err != nil {
		return outcome{called: true}, fmt.Errorf("%s %s: %w", o.kindName, o.objectName, err)
	}
	out.repaired = drifted && same
	o.passed, o.last, o.resourceVersion = true, data, left
	return out, nil
}

// put applies what is wanted to the object as it is. It returns the resource version
// that the object has now, and whether it was not what is wanted.
func (o *policyPart[Object, List, Wanted]) put(ctx context.Context, wanted Wanted) (left string, drifted bool, err error) {
	for range maxConflicts {
		var live Object
		live, err = o.client.Get(ctx, o.objectName, metav1.GetOptions{})
		same := false
		switch {
		case apierrors.IsNotFound(err):
			o.at(wanted, "")
		case err != nil:
			return "", false, fmt.Errorf("reading it before writing: %w", err)
		default:
			if same, err = holds(wanted, live); err != nil {
				return "", false, err
			}
			o.at(wanted, live.GetResourceVersion())
		}
		var applied Object
		applied, err = o.client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: o.manager, Force: true})
		if err == nil {
			return applied.GetResourceVersion(), !same, nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return "", false, fmt.Errorf("server-side apply: %w", err)
}

// remove deletes the object if it is an own one. It returns the resource version of what
// is left, if anything, and whether it wrote.
func (o *policyPart[Object, List, Wanted]) remove(ctx context.Context, dryRun []string) (left string, written bool, err error) {
	live, err := o.client.Get(ctx, o.objectName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading it before removal: %w", err)
	case !o.ours(live):
		return live.GetResourceVersion(), false, nil
	}
	uid := live.GetUID()
	err = o.client.Delete(ctx, o.objectName, metav1.DeleteOptions{DryRun: dryRun, Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", false, fmt.Errorf("deletion: %w", err)
	}
	return "", true, nil
}

func (o *policyPart[Object, List, Wanted]) uninstall(ctx context.Context, dryRun []string) (*Removal, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	left, written, err := o.remove(ctx, dryRun)
	switch {
	case err != nil:
		return nil, err
	case written:
		return &Removal{Object: o.resource + ".admissionregistration.k8s.io/" + o.objectName, Action: Deleted}, nil
	case left == "":
		return nil, nil
	}
	return &Removal{
		o.resource + ".admissionregistration.k8s.io/" + o.objectName, Left,
		fmt.Sprintf("it does not carry the label %s=%s, or the field manager %s owns nothing of it", ManagedByLabel, ManagedByValue, o.manager),
	}, nil
}

// watchedDefinition is a definition that is looked at, and never written.
type watchedDefinition struct{ definition }

func (*watchedDefinition) observe(wanted, metav1.Object) error { return nil }

func (*watchedDefinition) bundles(map[string]bool, metav1.Object) [][]byte { return nil }

func (*watchedDefinition) pass(context.Context, wanted, metav1.Object, bool, bool) (outcome, error) {
	return outcome{}, errors.New("a definition that is only watched is not written")
}
