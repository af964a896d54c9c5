// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
)

// handle calls the handler. It passes a panic on as a [handlerPanic].
func (a *Admission) handle(ctx context.Context, req *admissionv1.AdmissionRequest) (*admission.Response, error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(value)
		}
		panic(&handlerPanic{value, a.webhook.Name, panicText(value, req.Object.Raw, req.OldObject.Raw, req.Options.Raw)})
	}()
	return a.webhook.Handler.Handle(ctx, req)
}

// A handlerPanic is what a handler panicked with. The server logs it with the webhook's name
// and without values of objects.
type handlerPanic struct {
	value         any
	webhook, text string
}

func (p *handlerPanic) Error() string { return "webhook " + p.webhook + " panicked: " + p.text }

func (p *handlerPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// Panicked returns the name of the webhook, and the text of the panic for a log.
func (p *handlerPanic) Panicked() (webhook, text string) { return p.webhook, p.text }

const (
	// maxPanicText limits the logged text of a panic, in bytes.
	maxPanicText = 512
	// maxSearched limits the text in which values are looked for. A longer one is a dump: it is not
	// cut before the search, because a part of a value is not found.
	maxSearched = 8 * maxPanicText
	// minHidden is the length of the shortest value that is hidden, in bytes. Shorter ones
	// are in every text.
	minHidden = 3
	hidden    = "[value of an object]"
)

// panicText returns the text of a string or an error that a handler panicked with, in which
// the values of the objects are hidden: the text is the program's, but MustParse and others put
// their argument into it. Values of other types may contain parts of an object, and
// only their type is returned.
func panicText(value any, objects ...[]byte) string {
	var text string
	switch value := value.(type) {
	case string:
		text = value
	case error:
		text = value.Error()
	default:
		return fmt.Sprintf("value of type %T", value)
	}
	if len(text) > maxSearched {
		return fmt.Sprintf("value of type %T with %d bytes", value, len(text))
	}
	text = hideValues(text, objects)
	if len(text) > maxPanicText {
		text = strings.ToValidUTF8(text[:maxPanicText], "") + "…"
	}
	return text
}

// hideValues replaces the strings of JSON documents in a text, as they are, quoted, and decoded
// as the data of a Secret. Keys of maps are hidden too, because those of labels and data are
// their author's.
func hideValues(text string, objects [][]byte) string {
	var values []string
	add := func(value string) {
		if len(value) >= minHidden && strings.Contains(text, value) {
			values = append(values, value)
		}
	}
	each := func(value string) {
		add(value)
		quoted := strconv.Quote(value)
		add(quoted[1 : len(quoted)-1])
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			add(strings.TrimSpace(string(decoded)))
		}
	}
	for _, object := range objects {
		var tree any
		if json.Unmarshal(object, &tree) == nil {
			eachString(tree, each)
		}
	}
	if len(values) == 0 {
		return text
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	replacements := make([]string, 0, 2*len(values))
	for _, value := range slices.Compact(values) {
		replacements = append(replacements, value, hidden)
	}
	return strings.NewReplacer(replacements...).Replace(text)
}

func eachString(tree any, each func(string)) {
	switch value := tree.(type) {
	case string:
		each(value)
	case []any:
		for _, element := range value {
			eachString(element, each)
		}
	case map[string]any:
		for key, member := range value {
			each(key)
			eachString(member, each)
		}
	}
}
