// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsac "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
)

// stanza is spec.conversion of one CustomResourceDefinition.
type stanza struct {
	objectName, manager string
	client              crdclient.Interface
	wait                func(context.Context) error

	last
	uid string // as last observed after a write
}

func (s *stanza) kind() string { return definitionKind }
func (s *stanza) name() string { return s.objectName }
func (s *stanza) forget()      { s.done = false }

func (s *stanza) prototype() runtime.Object { return &apiextensionsv1.CustomResourceDefinition{} }

func (s *stanza) listerWatcher() cache.ListerWatcher {
	return oneByName(s.objectName, s.client.List, s.client.Watch)
}

// withoutSchemas drops the schemas before an object is stored. They are most of a definition,
// and nothing reads them.
func withoutSchemas(item any) (any, error) {
	if crd, ok := item.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.Spec.Versions = nil
	}
	return item, nil
}

func (s *stanza) drift(all desired, observed metav1.Object) error {
	if observed == nil {
		return fmt.Errorf("%s %s does not exist yet; it gets its conversion webhook when it does", definitionKind, s.objectName)
	}
	return driftOf("spec.conversion of "+definitionKind+" "+s.objectName, all.conversions[s.objectName], observed, s.manager)
}

func (s *stanza) bundles(_ map[string]bool, observed metav1.Object) [][]byte {
	conversion := observed.(*apiextensionsv1.CustomResourceDefinition).Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil || len(conversion.Webhook.ClientConfig.CABundle) == 0 {
		return nil
	}
	return [][]byte{conversion.Webhook.ClientConfig.CABundle}
}

func (s *stanza) reconcile(ctx context.Context, all desired, observed metav1.Object, full, repair bool) (outcome, error) {
	desired := all.conversions[s.objectName]
	data, err := json.Marshal(desired)
	if err != nil {
		return outcome{}, err
	}
	if observed == nil {
		s.forget()
		return outcome{waiting: s.drift(all, nil)}, nil
	}
	same := s.done && bytes.Equal(data, s.data) && s.uid == string(observed.GetUID())
	if same && !full {
		if out, done := s.upToDate(observed, repair, func() error { return s.drift(all, observed) }); done {
			return out, nil
		}
	}

	if err := s.wait(ctx); err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	left, changedBy, err := s.put(ctx, desired)
	switch {
	case apierrors.IsNotFound(err): // the watch will report it
		s.forget()
		return outcome{called: true, waiting: s.drift(all, nil)}, nil
	case err != nil:
		return outcome{called: true}, fmt.Errorf("spec.conversion of %s %s: %w", definitionKind, s.objectName, err)
	}
	s.last, s.uid = last{true, data, left.GetResourceVersion()}, string(left.GetUID())
	out := outcome{called: true, written: changedBy != ""}
	if same {
		out.changedBy = changedBy
	}
	return out, nil
}

// put applies the stanza to the existing definition. It never creates one: the apply contains
// the UID of the observed object. It returns what is there then, and, if it wrote, who had
// changed the definition before.
func (s *stanza) put(ctx context.Context, desired *apiextensionsac.CustomResourceDefinitionApplyConfiguration) (left *apiextensionsv1.CustomResourceDefinition, changedBy string, err error) {
	err = retry.RetryOnConflict(atOnce, func() error {
		observed, err := s.client.Get(ctx, s.objectName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading it before writing: %w", err)
		}
		desired.WithUID(observed.GetUID()).WithResourceVersion(observed.GetResourceVersion())
		if left, err = s.client.Apply(ctx, desired, metav1.ApplyOptions{FieldManager: s.manager, Force: true}); err != nil {
			return fmt.Errorf("server-side apply: %w", err)
		}
		changedBy = ""
		if left.GetResourceVersion() != observed.GetResourceVersion() {
			changedBy = lastManager(observed, s.manager)
		}
		return nil
	})
	return left, changedBy, err
}

// conversionTarget is the target of the conversion stanzas.
func (k *Controller) conversionTarget(caBundle []byte) target {
	stanzas, err := buildConversions(k.options.Config, k.options.Conversions(), caBundle)
	return target{desired: desired{conversions: stanzas}, err: err}
}

// watchDefinitions watches the definitions to convert, and stops all other watches.
func (k *Controller) watchDefinitions(ctx context.Context) error {
	conversions := k.options.Conversions()
	k.conversions.mu.Lock()
	k.conversions.inUse = len(conversions) > 0
	k.conversions.mu.Unlock()
	missing := map[string]bool{}
	for _, c := range conversions {
		if c.Validate() == nil { // otherwise the target reports the problem
			missing[c.CRD] = true
		}
	}
	k.mu.Lock()
	k.objects = slices.DeleteFunc(k.objects, func(o *object) bool {
		if o.reconciler != k.conversions {
			return false
		}
		if missing[o.name()] {
			delete(missing, o.name())
			return false
		}
		o.stop()
		k.options.Logger.Info("the conversion stanza is left as it is: it is no longer managed", "kind", o.kind(), "name", o.name())
		return true
	})
	k.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		errs = append(errs, k.watch(ctx, &stanza{
			objectName: name, manager: k.options.FieldManager, client: k.options.CRDs, wait: k.limiter.Wait,
		}, k.conversions))
	}
	return errors.Join(errs...)
}
