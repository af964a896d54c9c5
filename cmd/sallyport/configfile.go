// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sallyport-io/sallyport/admission"
	configv1alpha1 "github.com/sallyport-io/sallyport/api/config/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/cli"
	"github.com/sallyport-io/sallyport/internal/manifest"
	"github.com/sallyport-io/sallyport/jsonpatch"
	"github.com/sallyport-io/sallyport/webhooks/poddefault"
	"github.com/sallyport-io/sallyport/webhooks/poddefault/author"
)

// configFile is a configuration as it was read from a file.
type configFile struct {
	configv1alpha1.SallyportConfiguration
	data     []byte
	document *manifest.Document
	// setBy has the pointer of the field that has set a flag.
	setBy map[string]jsontext.Pointer
}

// addConfigFlag adds the flag that names a configuration.
func addConfigFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "config", "", "`file` with a SallyportConfiguration; a flag that is given counts before it")
	cli.CompleteFiles(cmd, "config", manifest.Extensions...)
}

// readConfig reads a configuration strictly: a field that is not known, or of
// another type, is a mistake. The error has every mistake with its line; what could be
// read is returned beside it, nil if there is none.
func readConfig(path string) (*configFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return parseConfig(path, data)
}

func parseConfig(path string, data []byte) (*configFile, error) {
	documents, err := manifest.Documents(path, data)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 {
		return nil, fmt.Errorf("%s: it holds %d documents; a configuration is one", path, len(documents))
	}
	c := &configFile{data: data, document: documents[0], setBy: map[string]jsontext.Pointer{}}
	raw := c.document.Raw
	if raw.Kind() != '{' {
		return nil, c.document.ErrorAt("", "not a configuration but "+manifest.KindName(raw.Kind()))
	}
	errs := c.read(raw, "", reflect.ValueOf(&c.SallyportConfiguration).Elem())
	if c.APIVersion != configv1alpha1.APIVersion || c.Kind != configv1alpha1.Kind {
		errs = append(errs, c.document.ErrorAt("/apiVersion", fmt.Sprintf("want apiVersion: %s and kind: %s", configv1alpha1.APIVersion, configv1alpha1.Kind)))
	}
	return c, errors.Join(append(errs, c.validateWebhooks()...)...)
}

// read reads an object, list or value into a place, and goes on after a mistake.
func (c *configFile) read(raw jsontext.Value, at jsontext.Pointer, into reflect.Value) []error {
	if raw.Kind() == 'n' { // as if it were absent
		return nil
	}
	// What has methods to read itself, and what may be absent as a whole, is one value.
	switch {
	case into.Kind() == reflect.Struct && raw.Kind() == '{':
		return c.readObject(raw, at, into)
	case into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Struct && raw.Kind() == '[':
		var errs []error
		list := reflect.MakeSlice(into.Type(), 0, 0)
		r := jsonpatch.NewReader(raw)
		r.Array(func(index int) {
			element := reflect.New(into.Type().Elem()).Elem()
			errs = append(errs, c.read(r.Value(), at+jsontext.Pointer("/"+strconv.Itoa(index)), element)...)
			list = reflect.Append(list, element)
		})
		into.Set(list)
		return errs
	}
	if err := c.document.Decode(at, raw, into.Addr().Interface(), json.RejectUnknownMembers(true)); err != nil {
		return []error{err}
	}
	return nil
}

func (c *configFile) readObject(raw jsontext.Value, at jsontext.Pointer, into reflect.Value) []error {
	var errs []error
	fields := map[string]reflect.StructField{}
	for _, field := range reflect.VisibleFields(into.Type()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			fields[name] = field
		}
	}
	r := jsonpatch.NewReader(raw)
	r.Object(func(name []byte) {
		below := at + jsontext.Pointer(jsonpatch.Pointer(string(name)))
		field, known := fields[string(name)]
		if !known {
			errs = append(errs, c.document.ErrorAt(below, fmt.Sprintf("unknown field %q: known are %s",
				manifest.FieldPath(below), strings.Join(slices.Sorted(maps.Keys(fields)), ", "))))
			return
		}
		value := r.Value()
		more := c.read(value, below, into.FieldByIndex(field.Index))
		if flag := field.Tag.Get("flag"); flag != "" && len(more) == 0 && value.Kind() != 'n' {
			c.setBy[flag] = below
		}
		errs = append(errs, more...)
	})
	return errs
}

// validateWebhooks reports the mistakes in the list of webhooks, but for settings.
func (c *configFile) validateWebhooks() []error {
	var errs []error
	for i, w := range c.Webhooks {
		at := jsontext.Pointer("/webhooks/" + strconv.Itoa(i))
		mistake := func(field, format string, args ...any) {
			below := at + jsontext.Pointer("/"+field)
			errs = append(errs, c.document.ErrorAt(below, manifest.FieldPath(below)+": "+fmt.Sprintf(format, args...)))
		}
		if !slices.Contains(allBuiltinNames(), w.Name) {
			mistake("name", "%q: choose %s", w.Name, cli.OneOf(allBuiltinNames()))
		}
		if slices.ContainsFunc(c.Webhooks[:i], func(other configv1alpha1.Webhook) bool { return other.Name == w.Name }) {
			mistake("name", "%q stands there twice", w.Name)
		}
		for _, choice := range webhookChoices(&w) {
			if choice.value != nil && !slices.Contains(choice.choices, *choice.value) {
				mistake(choice.field, "%q: choose %s", *choice.value, cli.OneOf(choice.choices))
			}
		}
		if w.TimeoutSeconds != nil && (*w.TimeoutSeconds < 1 || *w.TimeoutSeconds > 30) {
			mistake("timeoutSeconds", "%d: the API server allows 1 to 30 seconds", *w.TimeoutSeconds)
		}
		for field, selector := range map[string]*metav1.LabelSelector{"namespaceSelector": w.NamespaceSelector, "objectSelector": w.ObjectSelector} {
			if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
				mistake(field, "%v", err)
			}
		}
	}
	return errs
}

// webhookChoice is a field of an entry that has one of a few values.
type webhookChoice struct {
	field   string
	value   *string
	choices []string
}

func webhookChoices(w *configv1alpha1.Webhook) []webhookChoice {
	return []webhookChoice{
		{"failurePolicy", w.FailurePolicy, []string{string(admissionregistrationv1.Fail), string(admissionregistrationv1.Ignore)}},
		{"matchPolicy", w.MatchPolicy, []string{string(admissionregistrationv1.Exact), string(admissionregistrationv1.Equivalent)}},
		{"reinvocationPolicy", w.ReinvocationPolicy, []string{string(admissionregistrationv1.NeverReinvocationPolicy), string(admissionregistrationv1.IfNeededReinvocationPolicy)}},
	}
}

// apply makes the flags of a command, as far as they were not given, and the choice
// and settings of ready-made webhooks those of the file. The error has every mistake
// with its line.
func (c *configFile) apply(flags *pflag.FlagSet, selection *builtinSelection, settings *builtinSettings) error {
	errs := c.setFlags(flags, reflect.ValueOf(&c.SallyportConfiguration).Elem())
	podDefault := settings.podDefault // as flags say
	var listed builtinSelection
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		if !slices.Contains(allBuiltinNames(), w.Name) {
			continue
		}
		if w.Enabled == nil || *w.Enabled {
			listed = append(listed, w.Name)
		}
		settings.entries = append(settings.entries, w)
		if len(w.Settings) > 0 {
			errs = append(errs, c.readSettings(i, settings)...)
		}
	}
	if flags.Changed("excluded-containers") {
		settings.podDefault.CommandExcluded = podDefault.CommandExcluded
	}
	if flags.Changed("mesh-containers") {
		settings.podDefault.MeshContainers = podDefault.MeshContainers
	}
	if flags.Changed("poddefault-freshness") {
		settings.podDefault.Freshness = podDefault.Freshness
	}
	if flags.Changed("authorize-authors") {
		settings.podDefault.Authorize = podDefault.Authorize
	}
	if flags.Changed("narrow") {
		settings.podDefault.Narrow = podDefault.Narrow
	}
	if flags.Changed("guard") {
		settings.podDefault.Guard = podDefault.Guard
	}
	if c.Webhooks != nil && !flags.Changed("webhooks") {
		*selection = listed
	}
	settings.policyGiven, settings.timeoutGiven = flags.Changed("failure-policy"), flags.Changed("webhook-timeout")
	return errors.Join(errs...)
}

// setFlags sets flags that were not given; a command need not have all of them.
func (c *configFile) setFlags(flags *pflag.FlagSet, from reflect.Value) []error {
	var errs []error
	for _, field := range reflect.VisibleFields(from.Type()) {
		value := from.FieldByIndex(field.Index)
		name := field.Tag.Get("flag")
		if name == "" {
			if field.Type.Kind() == reflect.Struct && !field.Anonymous {
				errs = append(errs, c.setFlags(flags, value)...)
			}
			continue
		}
		flag := flags.Lookup(name)
		if at, set := c.setBy[name]; set && flag != nil && !flag.Changed {
			if err := setFlag(flag, value); err != nil {
				errs = append(errs, c.document.ErrorAt(at, manifest.FieldPath(at)+": "+err.Error()))
			}
		}
	}
	return errs
}

func setFlag(flag *pflag.Flag, value reflect.Value) error {
	switch v := value.Interface().(type) {
	case []string:
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			return list.Replace(v)
		}
	case *metav1.Duration:
		return flag.Value.Set(v.Duration.String())
	}
	return flag.Value.Set(fmt.Sprint(value.Elem().Interface()))
}

// readSettings reads the settings of one webhook over its defaults, and validates
// them.
func (c *configFile) readSettings(index int, settings *builtinSettings) []error {
	w := c.Webhooks[index]
	at := jsontext.Pointer("/webhooks/" + strconv.Itoa(index) + "/settings")
	into := settings.of(w.Name)
	if kind := jsontext.Value(w.Settings).Kind(); kind != '{' && kind != 'n' {
		return []error{c.document.ErrorAt(at, manifest.FieldPath(at)+": want a mapping, got "+manifest.KindName(kind))}
	}
	errs := c.read(jsontext.Value(w.Settings), at, reflect.ValueOf(into).Elem())
	if err := into.Validate(); err != nil {
		for _, mistake := range flatten(err) {
			where, text := at, manifest.FieldPath(at)+": "+mistake.Error()
			if m := settingsField.FindString(mistake.Error()); m != "" {
				text = manifest.FieldPath(at) + "." + mistake.Error()
				for _, token := range strings.FieldsFunc(strings.TrimSuffix(m, ":"), func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
					where += jsontext.Pointer(jsonpatch.Pointer(token))
				}
			}
			errs = append(errs, c.document.ErrorAt(where, text))
		}
	}
	return errs
}

// settingsField is the field that an error of settings begins with.
var settingsField = regexp.MustCompile(`^[a-zA-Z]+(?:\[\d+\]|\.[a-zA-Z]+)*:`)

// locate says where in the file that was set which an error is about, and puts all
// mistakes in the order of their lines.
func (c *configFile) locate(err error) error {
	if c == nil || err == nil {
		return err
	}
	errs := flatten(err)
	for i, mistake := range errs {
		var located *manifest.Error
		if at, ok := c.about(mistake.Error()); ok && !errors.As(mistake, &located) {
			errs[i] = c.document.ErrorAt(at, manifest.FieldPath(at)+": "+mistake.Error())
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return manifest.LineOf(a) - manifest.LineOf(b) })
	return errors.Join(errs...)
}

// about finds the field that a message is about: by the flag that it names, by the
// words that it begins with, or by the webhook.
func (c *configFile) about(message string) (jsontext.Pointer, bool) {
	for _, flag := range flagsIn.FindAllString(message, -1) {
		if at, ok := c.setBy[strings.TrimPrefix(flag, "--")]; ok {
			return at, true
		}
	}
	for _, limit := range limitsOfServing {
		if at, ok := c.setBy[limit.flag]; ok && strings.Contains(message, limit.words) {
			return at, true
		}
	}
	for i, entry := range c.Webhooks {
		if strings.Contains(message, entry.Name+".sallyport.io") {
			return jsontext.Pointer("/webhooks/" + strconv.Itoa(i)), true
		}
	}
	return "", false
}

var flagsIn = regexp.MustCompile(`--[a-z0-9-]+`)

// limitsOfServing are the words by which package serving calls what flags set.
var limitsOfServing = []struct{ words, flag string }{
	{"port ", "secure-port"},
	{"read header timeout", "read-header-timeout"}, {"read timeout", "read-timeout"}, {"write timeout", "write-timeout"}, {"idle timeout", "idle-timeout"},
	{"header limit", "max-header-bytes"}, {"body limit", "max-body-bytes"}, {"in flight", "max-bytes-in-flight"},
	{"concurrent reviews", "max-concurrent-reviews"}, {"waiting reviews", "max-waiting-reviews"}, {"body rate", "min-body-rate"},
	{"metrics connection limit", "max-metrics-connections"}, {"connection limit", "max-connections"},
	{"shortest drain", "drain-min"}, {"longest drain", "drain-timeout"},
}

// flatten returns the errors that were joined to one.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}

// entry is what the configuration says of a ready-made webhook; nil if nothing.
func (s *builtinSettings) entry(name string) *configv1alpha1.Webhook {
	for _, entry := range s.entries {
		if entry.Name == name {
			return entry
		}
	}
	return nil
}

// define defines a ready-made webhook, as narrow as the configuration wants it.
func (b *builtin) define(settings *builtinSettings, from builtinSources) ([]admission.Webhook, error) {
	webhooks, err := b.webhooks(settings, from)
	entry := settings.entry(b.name)
	if err != nil || entry == nil {
		return webhooks, err
	}
	if err := settings.place(b.name, webhooks); err != nil {
		return nil, err
	}
	for i := range webhooks {
		w := &webhooks[i]
		if w.Name == author.Name {
			continue // it is not about pods, and what is not asked about would be admitted
		}
		if entry.MatchPolicy != nil {
			w.MatchPolicy = admissionregistrationv1.MatchPolicyType(*entry.MatchPolicy)
		}
		if entry.ReinvocationPolicy != nil && w.Type == admission.TypeMutating {
			w.ReinvocationPolicy = admissionregistrationv1.ReinvocationPolicyType(*entry.ReinvocationPolicy)
		}
		w.NamespaceSelector = narrowed(w.NamespaceSelector, entry.NamespaceSelector)
		w.ObjectSelector = narrowed(w.ObjectSelector, entry.ObjectSelector)
		w.MatchConditions = append(slices.Clone(w.MatchConditions), entry.MatchConditions...)
		if w.Backstop != nil {
			narrower := *w.Backstop
			narrower.MatchConditions = append(slices.Clone(narrower.MatchConditions), entry.MatchConditions...)
			w.Backstop = &narrower
		}
	}
	return webhooks, nil
}

// place moves the first of the webhooks of an entry to the path of the configuration: the
// mutating one, where there are both.
func (s *builtinSettings) place(name string, webhooks []admission.Webhook) error {
	entry := s.entry(name)
	if entry == nil || len(webhooks) == 0 {
		return nil
	}
	if entry.ReinvocationPolicy != nil && !slices.ContainsFunc(webhooks, func(w admission.Webhook) bool { return w.Type == admission.TypeMutating }) {
		return fmt.Errorf("%s: reinvocationPolicy is for mutating webhooks, and this one validates: remove it", webhooks[0].Name)
	}
	if entry.Path != nil {
		webhooks[0].Path = *entry.Path
	}
	return nil
}

// narrowed selects what both select; nil selects all.
func narrowed(a, b *metav1.LabelSelector) *metav1.LabelSelector {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	out := a.DeepCopy()
	for _, key := range slices.Sorted(maps.Keys(b.MatchLabels)) {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{b.MatchLabels[key]},
		})
	}
	out.MatchExpressions = append(out.MatchExpressions, b.MatchExpressions...)
	return out
}

// adjust sets what a webhook has of its own in the configuration, and no flag says
// for all. It is for RegistrationSettings.Adjust.
func (s *builtinSettings) adjust(w *admission.Webhook) {
	if w.Name == poddefault.ExcludedName {
		w.FailurePolicy = admissionregistrationv1.Ignore // whatever all others do: see there
	}
	for _, entry := range s.entries {
		if !strings.HasSuffix("."+w.Name, "."+entry.Name+".sallyport.io") {
			continue
		}
		if entry.FailurePolicy != nil && !s.policyGiven && w.Name != poddefault.ExcludedName {
			w.FailurePolicy = admissionregistrationv1.FailurePolicyType(*entry.FailurePolicy)
		}
		if entry.TimeoutSeconds != nil && !s.timeoutGiven {
			w.TimeoutSeconds = *entry.TimeoutSeconds
		}
	}
	if w.Name == author.Name { // whose policy follows from what is asked
		w.FailurePolicy = s.podDefault.Authorize.FailurePolicy()
	}
	s.adjustGuard(w)
}

// useConfig applies the file that --config names, if there is one.
func useConfig(cmd *cobra.Command, path string, selection *builtinSelection, settings *builtinSettings) error {
	if path == "" {
		return nil
	}
	config, err := readConfig(path)
	if config == nil {
		return err
	}
	return errors.Join(err, config.apply(cmd.Flags(), selection, settings))
}
