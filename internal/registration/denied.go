// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/admission"
)

func isInvalid(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) }

// which joins the errors of a kind.
func which(errs []error, kind func(error) bool) error {
	return errors.Join(slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return !kind(err) })...)
}

// refusal is why the API server does not take the objects of a reconciler, or does not show
// them; nil if it took them once.
func (k *Controller) refusal(r *reconciler) error {
	r.mu.Lock()
	inUse, taken, errs := r.inUse, r.taken, []error{r.refused}
	forbidden := r.forbidden
	r.mu.Unlock()
	if !inUse || taken {
		return nil
	}
	objects := slices.DeleteFunc(k.all(), func(o *object) bool { return o.reconciler != r })
	if caBundle, err := r.caBundle(); err != nil || !reached(objects, namesOf(k.options.Webhooks()), caBundle) {
		errs = append(errs, forbidden, denied(objects))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the API server refuses the %s: %w", r.what, err)
	}
	return nil
}

// denied is why the objects could never be read.
func denied(objects []*object) error {
	var errs []error
	for _, o := range objects {
		if denied := o.denied.Load(); denied != nil && !o.informer.HasSynced() {
			errs = append(errs, *denied)
		}
	}
	return errors.Join(errs...)
}

// reached reports whether the API server calls us because of what an earlier run or another
// replica wrote: one of our webhooks, or a definition, has our current CA bundle.
func reached(objects []*object, names map[string]bool, caBundle []byte) bool {
	return slices.ContainsFunc(objects, func(o *object) bool {
		observed, _ := o.observed()
		return observed != nil && slices.ContainsFunc(o.bundles(names, observed), func(trusted []byte) bool {
			return len(caBundle) == 0 || bytes.Equal(trusted, caBundle)
		})
	})
}

func namesOf(webhooks []admission.Webhook) map[string]bool {
	names := map[string]bool{}
	for _, w := range webhooks {
		names[w.Name] = true
	}
	return names
}

// rights is why the objects could not be written the last time, if that is for lack of rights.
// The caller holds mu.
func (r *reconciler) rights() error {
	if !r.inUse || r.forbidden == nil {
		return nil
	}
	return fmt.Errorf("the %s cannot be written: %w", r.what, r.forbidden)
}
