// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsac "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
)

const definitionKind = "CustomResourceDefinition"

// definition keeps spec.conversion of one CustomResourceDefinition.
type definition struct {
	objectName, manager string
	client              apiextensionsclient.CustomResourceDefinitionInterface
	wait                func(context.Context) error

	last
	uid string // of what the last successful pass left
}

func (d *definition) kind() string { return definitionKind }
func (d *definition) name() string { return d.objectName }
func (d *definition) forget()      { d.passed = false }

func (d *definition) prototype() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }

func (d *definition) listerWatcher() cache.ListerWatcher {
	return oneByName(d.objectName, d.client.List, d.client.Watch)
}

// withoutSchemas leaves out of a store what is never looked at: schemas are most of
// a definition.
func withoutSchemas(item any) (any, error) {
	if crd, ok := item.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.Spec.Versions = nil
	}
	return item, nil
}

func (d *definition) observe(all wanted, live metav1.Object) error {
	if live == nil {
		return fmt.Errorf("%s %s does not exist yet; it gets its conversion webhook when it does", definitionKind, d.objectName)
	}
	return asWanted("spec.conversion of "+definitionKind+" "+d.objectName, all.conversions[d.objectName], live, d.manager)
}

func (d *definition) bundles(_ map[string]bool, live metav1.Object) [][]byte {
	conversion := live.(*apiextensionsv1.CustomResourceDefinition).Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
		return nil
	}
	return [][]byte{conversion.Webhook.ClientConfig.CABundle}
}

func (d *definition) pass(ctx context.Context, all wanted, live metav1.Object, full, repair bool) (outcome, error) {
	wanted := all.conversions[d.objectName]
	data, err := json.Marshal(wanted)
	if err != nil {
		return outcome{}, err
	}
	if live == nil {
		d.forget()
		return outcome{waiting: d.observe(all, nil)}, nil
	}
	same := d.passed && bytes.Equal(data, d.data) && d.uid == string(live.GetUID())
	if same && !full {
		if out, done := d.settled(live, repair, func() error { return d.observe(all, live) }); done {
			return out, nil
		}
	}

	if err := d.wait(ctx); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	left, written, err := d.put(ctx, wanted)
	switch {
	case apierrors.IsNotFound(err): // the store will tell
		d.forget()
		return outcome{called: true, waiting: d.observe(all, nil)}, nil
	case err != nil:
		return outcome{called: true}, fmt.Errorf("spec.conversion of %s %s: %w", definitionKind, d.objectName, err)
	}
	d.last, d.uid = last{true, data, left.GetResourceVersion()}, string(left.GetUID())
	return outcome{called: true, written: written, repaired: written && same}, nil
}

// put applies the stanza to the definition as it is, and never creates one: with
// the UID of what is there, an apply cannot.
func (d *definition) put(ctx context.Context, wanted *apiextensionsac.CustomResourceDefinitionApplyConfiguration) (left *apiextensionsv1.CustomResourceDefinition, written bool, err error) {
	err = retry.RetryOnConflict(atOnce, func() error {
		live, err := d.client.Get(ctx, d.objectName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading it before writing: %w", err)
		}
		wanted.WithUID(live.GetUID()).WithResourceVersion(live.GetResourceVersion())
		if left, err = d.client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: d.manager, Force: true}); err != nil {
			return fmt.Errorf("server-side apply: %w", err)
		}
		written = left.GetResourceVersion() != live.GetResourceVersion()
		return nil
	})
	return left, written, err
}
