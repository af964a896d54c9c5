// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// restricted is a [Handler] that does not support all operations.
type restricted interface {
	Handler
	Operations() []admissionregistrationv1.OperationType
}

// checked is a [Handler] with problems that its constructor could not return.
type checked interface {
	Handler
	Problems() error
}

// operations are all there are.
var operations = []admissionregistrationv1.OperationType{
	admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect,
}

// operationsOf tells what a handler answers.
func operationsOf(handler Handler) []admissionregistrationv1.OperationType {
	if r, ok := handler.(restricted); ok {
		return r.Operations()
	}
	return operations
}

func checkHandler(handler Handler) error {
	if function, ok := handler.(HandlerFunc); handler == nil || ok && function == nil {
		return errors.New("is missing: pass one, such as admission.Validate(check)")
	}
	if c, ok := handler.(checked); ok {
		return c.Problems()
	}
	return nil
}

// validateOperations compares the operations of rules with those of the handler.
func (w Webhook) validateOperations(add func(field, format string, args ...any)) {
	answered := operationsOf(w.Handler)
	if len(answered) == 0 {
		return // Problems of the handler has said so
	}
	for i, rule := range w.Rules {
		for _, operation := range rule.Operations {
			switch {
			case operation == admissionregistrationv1.OperationAll && len(answered) < len(operations):
				add(fmt.Sprintf("rules[%d].operations", i), `"*" stands for all operations; the handler answers %s only`, operationNames(answered))
			case slices.Contains(operations, operation) && !slices.Contains(answered, operation):
				add(fmt.Sprintf("rules[%d].operations", i), "the handler does not answer %s; it answers %s", operation, operationNames(answered))
			}
		}
	}
}

// changesObjects tells whether a handler is made to.
func changesObjects(handler Handler) bool {
	switch h := handler.(type) {
	case *mutator:
		return true
	case *named:
		return changesObjects(h.Handler)
	case *chain:
		return slices.ContainsFunc(h.links, changesObjects)
	}
	return false
}
