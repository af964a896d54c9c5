// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/randfill"

	decoding "github.com/sallyport-io/sallyport/internal/json/decode"
)

func TestDiffOfPods(t *testing.T)            { testDiff[corev1.Pod](t, cases(t)) }
func TestDiffOfDeployments(t *testing.T)     { testDiff[appsv1.Deployment](t, cases(t)) }
func TestDiffOfCustomResources(t *testing.T) { testDiff[customResource](t, cases(t)) }

func TestDiffOfEverythingThatEncodingJSONHasARuleFor(t *testing.T) {
	testDiff[everything](t, cases(t)/4)
}

func testDiff[T any](t *testing.T, cases uint64) {
	t.Parallel()
	for seed := range cases {
		checkDiff[T](t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzDiffOfObjects tries the properties with more objects than the tests.
func FuzzDiffOfObjects(f *testing.F) {
	f.Add(uint64(1 << 32))
	f.Fuzz(func(t *testing.T, seed uint64) {
		checkDiff[corev1.Pod](t, seed)
		checkDiff[customResource](t, seed)
		checkDiff[everything](t, seed)
	})
}

// checkDiff makes an object and changes it, once as T and once as the document with
// members unknown to T, and checks the results of Diff and DiffRaw. What a record tells
// about the object before must give the same patch as an object of its own.
func checkDiff[T any](t *testing.T, seed uint64) {
	t.Helper()
	c := newChanger(seed)
	var made, other T
	c.fill.Fill(&made)
	c.fill.Fill(&other)
	p := planOf(reflect.TypeFor[T]())

	// Any two objects.
	patch := mustDiff(t, &made, &other)
	wantSame(t, patch, canonical(t, apply(t, marshal(t, &made), patch)), canonical(t, []byte(marshal(t, &other))))

	read := marshal(t, decodeAs[T](t, []byte(marshal(t, &made))))
	document := c.sprinkle(p, tree(t, []byte(read)))
	raw := []byte(marshal(t, document))
	before, after := decodeAs[T](t, raw), decodeAs[T](t, raw)
	record := decoding.NewRecord()
	defer record.Release()
	_, special := any(after).(*everything) // it has tags that only encoding/json reads
	if !special {
		value, err := decoding.For(reflect.TypeFor[T]()).New(raw, record)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		after = value.(*T)
	}
	wantSame(t, nil, marshal(t, before), read)
	if patch, err := DiffRaw(raw, before, after); err != nil || len(patch) > 0 {
		t.Errorf("from equal objects: %s, %v", patch.AppendJSON(nil), err)
	}
	document = c.change(p, "", reflect.ValueOf(after).Elem(), document)

	patch = mustDiff(t, before, after)
	wantSame(t, patch, canonical(t, apply(t, marshal(t, before), patch)), canonical(t, []byte(marshal(t, after))))

	patch, err := DiffRaw(raw, before, after)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if !special {
		recorded := record.Before(after).(*T)
		wantSame(t, patch, marshal(t, recorded), read)
		again, err := DiffRaw(raw, recorded, after)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		wantSame(t, patch, string(again.AppendJSON(nil)), string(patch.AppendJSON(nil)))
	}
	if err := patch.Validate(); err != nil {
		t.Errorf("%s: %v", patch.AppendJSON(nil), err)
	}
	again, err := DiffRaw(raw, before, after)
	if err != nil || !bytes.Equal(again.AppendJSON(nil), patch.AppendJSON(nil)) {
		t.Errorf("once %s, then %s, %v", patch.AppendJSON(nil), again.AppendJSON(nil), err)
	}
	patched := apply(t, string(raw), patch)
	got := decodeAs[T](t, patched)
	wantSame(t, patch, marshal(t, got), marshal(t, decodeAs[T](t, []byte(marshal(t, after)))))
	wantSame(t, patch, marshal(t, strip(tree(t, patched))), marshal(t, strip(document)))
	if second, err := DiffRaw(patched, got, after); err != nil || len(second) > 0 {
		t.Errorf("a second pass gives %s, %v", second.AppendJSON(nil), err)
	}
}

// wantSame shows where two long texts begin to differ.
func wantSame(t *testing.T, patch Patch, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	show := func(s string) string { return s[max(0, at-300):min(len(s), at+300)] }
	t.Errorf("by %s\n got …%s…\nwant …%s…", patch.AppendJSON(nil), show(got), show(want))
}

func TestDiffOfUnstructuredObjects(t *testing.T) {
	t.Parallel()
	for seed := range cases(t) {
		c := newChanger(seed)
		before := &unstructured.Unstructured{Object: c.tree(4).(map[string]any)}
		after := before.DeepCopy()
		for range c.rand.IntN(4) {
			after.Object = c.changeTree(after.Object, 4).(map[string]any)
		}
		if c.rand.IntN(10) == 0 {
			after.Object = c.tree(4).(map[string]any)
		}
		patch := mustDiff(t, before, after)
		want := canonical(t, []byte(marshal(t, after.Object)))
		wantSame(t, patch, canonical(t, apply(t, marshal(t, before.Object), patch)), want)
		raw := jsontext.Value(marshal(t, before.Object))
		if err := raw.Indent(); err != nil {
			t.Fatal(err)
		}
		patch, err := DiffRaw(raw, before, after)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, patch, canonical(t, apply(t, string(raw), patch)), want)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A customResource is a kubebuilder-style type: no merge keys in its tags, omitzero,
// 64-bit counters.
type customResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              customSpec   `json:"spec"`
	Status            customStatus `json:"status,omitzero"`
}

type customSpec struct {
	Replicas  *int32                       `json:"replicas,omitempty"`
	Limit     int64                        `json:"limit"`
	Port      intstr.IntOrString           `json:"port,omitempty"`
	Quotas    corev1.ResourceList          `json:"quotas,omitempty"`
	Selector  *metav1.LabelSelector        `json:"selector"`
	Template  corev1.PodTemplateSpec       `json:"template,omitzero"`
	Rules     []customRule                 `json:"rules"`
	Steps     [][]customRule               `json:"steps,omitempty"`
	ByName    map[string]customRule        `json:"byName,omitempty"`
	Pointers  map[string]*customRule       `json:"pointers,omitempty"`
	Lists     map[string][]customRule      `json:"lists,omitempty"`
	Names     []string                     `json:"names,omitempty"`
	Volumes   []corev1.Volume              `json:"volumes,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	Raw       runtime.RawExtension         `json:"raw,omitempty"`
	Extension *runtime.RawExtension        `json:"extension,omitempty"`
	Nested    map[string]map[string]string `json:"nested,omitempty"`
	Self      *customSpec                  `json:"self,omitempty"`
}

type customRule struct {
	Host     string            `json:"host,omitempty"`
	Weight   int64             `json:"weight,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Deadline *metav1.Duration  `json:"deadline,omitempty"`
	Paths    []customPath      `json:"paths,omitempty"`
}

type customPath struct {
	Path  string             `json:"path"`
	Size  *resource.Quantity `json:"size,omitempty"`
	Parts []string           `json:"parts,omitempty"`
}

type customStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Since              *metav1.Time       `json:"since,omitempty"`
	At                 metav1.MicroTime   `json:"at,omitzero"`
}

// A changer makes random objects and changes.
type changer struct {
	rand *rand.Rand
	fill *randfill.Filler
	next int
}

func newChanger(seed uint64) *changer {
	c := &changer{rand: rand.New(rand.NewPCG(seed, 1))}
	c.fill = randfill.NewWithSeed(int64(seed)).NilChance(0.85).NumElements(0, 3).MaxDepth(14).Funcs(
		func(s *string, _ randfill.Continue) { *s = c.string() },
		func(n *int64, _ randfill.Continue) { *n = c.int() },
		func(n *int32, _ randfill.Continue) { *n = int32(c.int()) },
		func(q *resource.Quantity, _ randfill.Continue) {
			*q = resource.MustParse(pick(c, "0", "1", "1500m", "0.1", "9223372036854775807", "123456789012345678901234567890", "1Ki", "1.5Gi", "100e3", "-5n"))
		},
		func(t *metav1.Time, _ randfill.Continue) {
			*t = pick(c, metav1.Time{}, metav1.Unix(c.rand.Int64N(1<<33), 0))
		},
		func(t *metav1.MicroTime, _ randfill.Continue) {
			*t = pick(c, metav1.MicroTime{}, metav1.NewMicroTime(time.UnixMicro(c.rand.Int64N(1<<50))))
		},
		func(d *metav1.Duration, _ randfill.Continue) { d.Duration = time.Duration(c.rand.Int64N(1 << 40)) },
		func(v *intstr.IntOrString, _ randfill.Continue) {
			*v = pick(c, intstr.FromInt32(int32(c.int())), intstr.FromString(c.string()))
		},
		func(f *metav1.FieldsV1, _ randfill.Continue) {
			_ = f.UnmarshalJSON([]byte(marshal(panics{}, c.tree(2))))
		},
		func(r *runtime.RawExtension, _ randfill.Continue) { r.Raw = []byte(marshal(panics{}, c.tree(3))) },
		func(r *json.RawMessage, _ randfill.Continue) { *r = []byte(marshal(panics{}, c.tree(2))) },
		func(n *json.Number, _ randfill.Continue) { *n = json.Number(fmt.Sprint(c.int())) },
		func(f *float64, _ randfill.Continue) { *f = pick(c, 0, 1, -1.5, 1e21, 1e-9, 0.1) },
		func(v *any, _ randfill.Continue) { *v = c.tree(2) },
	)
	return c
}

func pick[T any](c *changer, values ...T) T { return values[c.rand.IntN(len(values))] }

// string returns mostly distinct strings, which name elements.
func (c *changer) string() string {
	c.next++
	switch c.rand.IntN(12) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("é/~\"\\\n<%d>", c.next)
	case 2:
		return fmt.Sprintf("%d", c.next)
	}
	return fmt.Sprintf("s%d", c.next)
}

func (c *changer) int() int64 {
	c.next++
	switch c.rand.IntN(8) {
	case 0:
		return 0
	case 1:
		return 1<<53 + int64(c.next)
	case 2:
		return -1<<63 + int64(c.next)
	}
	return int64(c.next)
}

// tree makes the content of an unstructured object.
func (c *changer) tree(depth int) any {
	out := map[string]any{}
	for range c.rand.IntN(5) {
		out[pick(c, "a", "b", "name", "list", "x/y", "~", "")] = c.node(depth - 1)
	}
	return out
}

func (c *changer) node(depth int) any {
	kinds := 8
	if depth <= 0 {
		kinds = 5
	}
	switch c.rand.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return c.rand.IntN(2) == 0
	case 2:
		return c.int()
	case 3:
		return pick(c, 0.5, 1e21, 3)
	case 4:
		return pick(c, "", "x", "y", c.string())
	case 5:
		return c.tree(depth)
	default:
		out := []any{}
		named := c.rand.IntN(2) == 0
		for range c.rand.IntN(9) {
			value := c.node(depth - 1)
			if m, ok := value.(map[string]any); ok && named {
				m["name"] = c.string()
			}
			out = append(out, value)
		}
		return out
	}
}

func (c *changer) changeTree(value any, depth int) any {
	switch v := value.(type) {
	case map[string]any:
		names := slices.Sorted(mapKeys(v))
		if len(names) == 0 || c.rand.IntN(5) == 0 {
			v[pick(c, "a", "b", "new")] = c.node(depth)
			return v
		}
		name := names[c.rand.IntN(len(names))]
		if c.rand.IntN(6) == 0 {
			delete(v, name)
			return v
		}
		v[name] = c.changeTree(v[name], depth-1)
		return v
	case []any:
		if len(v) == 0 {
			return append(v, c.node(depth))
		}
		i, j := c.rand.IntN(len(v)), c.rand.IntN(len(v))
		switch c.rand.IntN(6) {
		case 0:
			return slices.Insert(v, i, c.node(depth))
		case 1:
			return slices.Delete(v, i, i+1)
		case 2:
			v[i], v[j] = v[j], v[i]
		case 3:
			c.rand.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		default:
			v[i] = c.changeTree(v[i], depth-1)
		}
		return v
	default:
		return c.node(depth)
	}
}

func mapKeys(m map[string]any) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for name := range m {
			if !yield(name) {
				return
			}
		}
	}
}

// sprinkle adds unknown members and removes some whose absence means the same.
func (c *changer) sprinkle(p *plan, value any) any {
	switch p.kind {
	case pointer:
		if value != nil {
			return c.sprinkle(p.elem, value)
		}
	case object:
		members, ok := value.(map[string]any)
		if !ok {
			return value
		}
		for _, f := range p.fields {
			member, ok := members[f.name]
			if !ok {
				continue
			}
			member = c.sprinkle(f.plan, member)
			members[f.name] = member
			if zeroLike(member) && len(f.index) == 1 && c.rand.IntN(2) == 0 && (f.plan.kind != list && f.plan.kind != mapping && f.plan.kind != binary && f.plan.kind != pointer && f.plan.kind != leaf && f.plan.kind != quoted && f.plan.kind != dynamic) {
				delete(members, f.name)
			}
		}
		if c.rand.IntN(3) == 0 {
			c.next++
			members["unknown"] = json.Number(fmt.Sprintf("9007199254740993.%d", c.next))
		}
	case list:
		if values, ok := value.([]any); ok {
			for i := range values {
				values[i] = c.sprinkle(p.elem, values[i])
			}
		}
	case mapping:
		if members, ok := value.(map[string]any); ok {
			for name := range members {
				members[name] = c.sprinkle(p.elem, members[name])
			}
		}
	}
	return value
}

// change changes v and, in the same way, the document that it was read from.
func (c *changer) change(p *plan, key string, v reflect.Value, document any) any {
	switch p.kind {
	case pointer:
		switch {
		case v.IsNil():
			v.Set(reflect.New(v.Type().Elem()))
			c.fill.Fill(v.Interface())
			return tree(panics{}, []byte(marshal(panics{}, v.Interface())))
		case c.rand.IntN(5) == 0:
			v.SetZero()
			return nil
		}
		return c.change(p.elem, "", v.Elem(), document)
	case object:
		members, ok := document.(map[string]any)
		if !ok {
			members = map[string]any{}
		}
		for _, i := range c.rand.Perm(len(p.fields))[:min(len(p.fields), 1+c.rand.IntN(4))] {
			f := &p.fields[i]
			member, ok := f.value(v)
			if !ok || !member.CanSet() {
				continue
			}
			value := c.change(f.plan, f.key, member, members[f.name])
			if f.omitted(member) {
				unknown, ok := value.(map[string]any)
				if f.plan.kind != object || !ok || unknown["unknown"] == nil {
					delete(members, f.name)
					continue
				}
				value = map[string]any{"unknown": unknown["unknown"]}
			}
			members[f.name] = value
		}
		return members
	case list:
		switch {
		case v.Kind() == reflect.Array:
		case document != nil:
			return c.changeList(p, key, v, document)
		}
	case mapping:
		if members, ok := document.(map[string]any); ok && v.Len() > 0 {
			return c.changeMap(p, v, members)
		}
	}
	if v.CanAddr() && v.CanSet() {
		v.SetZero()
		c.fill.Fill(v.Addr().Interface())
	}
	written := marshal(panics{}, v.Addr().Interface())
	if p.kind == quoted && written != "null" {
		return written
	}
	return tree(panics{}, []byte(written))
}

func (c *changer) changeMap(p *plan, v reflect.Value, members map[string]any) any {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return bytes.Compare([]byte(fmt.Sprint(a)), []byte(fmt.Sprint(b))) })
	key := keys[c.rand.IntN(len(keys))]
	name, err := keyName(key)
	if err != nil {
		panic(err)
	}
	if c.rand.IntN(4) == 0 {
		v.SetMapIndex(key, reflect.Value{})
		delete(members, name)
		return members
	}
	if c.rand.IntN(4) == 0 && key.Kind() == reflect.String {
		key = reflect.ValueOf(c.string()).Convert(key.Type())
		name = key.String()
	}
	value := reflect.New(v.Type().Elem()).Elem()
	if old := v.MapIndex(key); old.IsValid() {
		value.Set(old)
	}
	members[name] = c.change(p.elem, "", value, members[name])
	v.SetMapIndex(key, value)
	if p.elem.kind == leaf { // its encoding may differ where it is not addressable
		members[name] = tree(panics{}, []byte(marshal(panics{}, v.MapIndex(key).Interface())))
	}
	return members
}

// changeList changes a list so that the fate of each element is clear: by name if the
// type has names. Otherwise it either adds, removes or moves elements, or edits one.
func (c *changer) changeList(p *plan, key string, v reflect.Value, document any) any {
	values, _ := document.([]any)
	elem, _, _ := indirect(p.elem, reflect.Zero(p.elem.typ))
	if elem == nil {
		elem = p.elem.elem
	}
	named := key != "" && distinct(v, func(i int) string { name, _ := nameOf(p.elem, v.Index(i), key); return name })
	var were []string
	for i := range v.Len() {
		name, _ := nameOf(p.elem, v.Index(i), key)
		were = append(were, name)
	}
	add := func() {
		added := reflect.New(v.Type().Elem()).Elem()
		c.fill.Fill(added.Addr().Interface())
		name, ok := nameOf(p.elem, added, key)
		if ok && slices.Contains(were, name) {
			return
		}
		were = append(were, name)
		i := c.rand.IntN(v.Len() + 1)
		v.Set(reflect.AppendSlice(reflect.Append(v.Slice3(0, i, i), added), v.Slice(i, v.Len())))
		values = slices.Insert(slices.Clone(values), i, tree(panics{}, []byte(marshal(panics{}, added.Addr().Interface()))))
	}
	remove := func() {
		if v.Len() > 0 {
			i := c.rand.IntN(v.Len())
			v.Set(reflect.AppendSlice(v.Slice3(0, i, i), v.Slice(i+1, v.Len())))
			values = slices.Delete(values, i, i+1)
		}
	}
	move := func() {
		swap := reflect.Swapper(v.Interface())
		c.rand.Shuffle(v.Len(), func(i, j int) {
			swap(i, j)
			values[i], values[j] = values[j], values[i]
		})
	}
	edited := map[string]bool{}
	edit := func() {
		if v.Len() == 0 {
			return
		}
		i := c.rand.IntN(v.Len())
		name, ok := nameOf(p.elem, v.Index(i), key)
		if edited[name] {
			return
		}
		edited[name] = true
		copied := reflect.New(v.Type().Elem()).Elem()
		copied.Set(deepCopy(v.Index(i)))
		old := tree(panics{}, []byte(marshal(panics{}, values[i])))
		changed := c.change(p.elem, "", copied, old)
		if now, _ := nameOf(p.elem, copied, key); ok && now != name {
			return // it would be another element
		}
		if !named && identified(elem, v.Index(i), copied) {
			return
		}
		if contains(v, copied) {
			return
		}
		v.Index(i).Set(copied)
		values[i] = changed
	}
	switch plain := distinct(v, func(i int) string { return marshal(panics{}, v.Index(i).Addr().Interface()) }); {
	case named:
		for range 1 + c.rand.IntN(4) {
			pick(c, add, remove, move, edit)()
		}
	case !plain:
	default:
		pick(c, add, remove, move, edit)()
	}
	if values == nil && !v.IsNil() {
		values = []any{}
	}
	return values
}

// identified reports whether two values differ in a member that may identify elements.
func identified(p *plan, before, after reflect.Value) bool {
	for _, name := range identities {
		x, _ := nameOf(planOf(before.Type()), before, name)
		y, _ := nameOf(planOf(after.Type()), after, name)
		if x != y {
			return true
		}
	}
	return false
}

func contains(list, v reflect.Value) bool {
	value := marshal(panics{}, v.Interface())
	for i := range list.Len() {
		if marshal(panics{}, list.Index(i).Interface()) == value {
			return true
		}
	}
	return false
}

func distinct(v reflect.Value, name func(i int) string) bool {
	seen := map[string]bool{}
	for i := range v.Len() {
		if seen[name(i)] {
			return false
		}
		seen[name(i)] = true
	}
	return true
}

// deepCopy copies through JSON.
func deepCopy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type())
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(marshal(panics{}, v.Interface())), out.Interface()); err != nil {
		panic(err)
	}
	return out.Elem()
}

func zeroLike(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		return v == "0"
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// strip drops members without meaning, so that documents of equal meaning compare
// equal.
func strip(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if member = strip(member); zeroLike(member) {
				delete(v, name)
			} else {
				v[name] = member
			}
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return value
}

func mustDiff(t fataler, before, after any) Patch {
	t.Helper()
	patch, err := Diff(before, after)
	if err != nil {
		t.Fatalf("%s: %v", marshal(t, before), err)
	}
	if err := patch.Validate(); err != nil {
		t.Fatalf("%s: %v", patch.AppendJSON(nil), err)
	}
	return patch
}

func marshal(t fataler, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(out)
}

func tree(t fataler, raw []byte) (value any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return value
}

// decodeAs decodes a document as the API server and its clients do.
func decodeAs[T any](t fataler, raw []byte) *T {
	t.Helper()
	out := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return out
}

// panics is for nested helpers, where a failure is a bug in the test.
type panics struct{}

func (panics) Helper() {}

func (panics) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
