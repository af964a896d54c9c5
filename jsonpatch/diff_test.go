// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

func TestDiffRawOfAPod(t *testing.T) {
	for _, tc := range []struct {
		name   string
		raw    string
		change func(pod *corev1.Pod)
		want   string
	}{
		{
			"no change gives no patch", `{"metadata":{"creationTimestamp":null},"spec":{"containers":null},"unknown":1}`,
			func(*corev1.Pod) {},
			`[]`,
		},
		{
			"empty and absent are the same where neither is written", `{"metadata":{"labels":{}},"spec":{"containers":[],"volumes":[]}}`,
			func(pod *corev1.Pod) {
				pod.Labels = nil
				pod.Annotations = map[string]string{}
				pod.Spec.Volumes = nil
				pod.Spec.Tolerations = []corev1.Toleration{}
			},
			`[]`,
		},
		{
			"null and empty are told apart where both are written", `{"spec":{"containers":[]}}`,
			func(pod *corev1.Pod) { pod.Spec.Containers = nil },
			`[{"op":"add","path":"/spec/containers","value":null}]`,
		},
		{
			"an integer keeps its last digit", `{"spec":{"containers":[],"activeDeadlineSeconds":9007199254740993}}`,
			func(pod *corev1.Pod) { *pod.Spec.ActiveDeadlineSeconds-- },
			`[{"op":"add","path":"/spec/activeDeadlineSeconds","value":9007199254740992}]`,
		},
		{
			"a quantity keeps its last digit, and another one its notation", `{"spec":{"containers":[],"overhead":{"memory":"1000m","cpu":"9007199254740993"}}}`,
			func(pod *corev1.Pod) { pod.Spec.Overhead["cpu"] = resource.MustParse("9007199254740993001n") },
			`[{"op":"add","path":"/spec/overhead/cpu","value":"9007199254740993001n"}]`,
		},
		{
			"a label whose parents are absent is added with them", `{"metadata":{"name":"a"},"spec":{"containers":[]}}`,
			func(pod *corev1.Pod) { pod.Labels = map[string]string{"b": "2", "a": "1"} },
			`[{"op":"add","path":"/metadata/labels","value":{"a":"1","b":"2"}}]`,
		},
		{
			"labels are changed one by one, by name", `{"metadata":{"labels":{"z":"0","a/b":"1","c":"2"}},"spec":{"containers":[]}}`,
			func(pod *corev1.Pod) {
				delete(pod.Labels, "z")
				pod.Labels["a/b"] = "x"
				pod.Labels["n"] = "y"
			},
			`[{"op":"remove","path":"/metadata/labels/z"},{"op":"add","path":"/metadata/labels/a~1b","value":"x"},{"op":"add","path":"/metadata/labels/n","value":"y"}]`,
		},
		{
			"the last label goes with its map", `{"metadata":{"labels":{"z":"0"}},"spec":{"containers":[]}}`,
			func(pod *corev1.Pod) { delete(pod.Labels, "z") },
			`[{"op":"remove","path":"/metadata/labels"}]`,
		},
		{
			"a struct that is always written but absent in the document is created", `{"spec":{"containers":[{"name":"a"}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
				pod.Status.Phase = corev1.PodRunning
			},
			`[{"op":"add","path":"/spec/containers/0/resources","value":{"limits":{"cpu":"1"}}},{"op":"add","path":"/status","value":{"phase":"Running"}}]`,
		},
		{
			"a struct that is null in the document is created", `{"metadata":null,"spec":{"containers":[{"name":"a","resources":null},null]}}`,
			func(pod *corev1.Pod) {
				pod.Name = "p"
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1")}
				pod.Spec.Containers[1].Image = "i"
			},
			`[{"op":"add","path":"/metadata","value":{"name":"p"}},{"op":"add","path":"/spec/containers/0/resources","value":{"limits":{"cpu":"1"}}},{"op":"replace","path":"/spec/containers/1","value":{"name":"","image":"i","resources":{}}}]`,
		},
		{
			"a container in front keeps the unknown members of the others with them", `{"spec":{"initContainers":[{"name":"a","restartPolicy2":"Always"}],"containers":[]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.InitContainers = slices.Insert(pod.Spec.InitContainers, 0, corev1.Container{Name: "s"})
			},
			`[{"op":"add","path":"/spec/initContainers/0","value":{"name":"s","resources":{}}}]`,
		},
		{
			"containers that change places are moved, and edited where they were", `{"spec":{"containers":[{"name":"a","x":1},{"name":"b","x":2},{"name":"c","x":3}]}}`,
			func(pod *corev1.Pod) {
				c := pod.Spec.Containers
				c[2].Image = "i"
				c[0], c[1], c[2] = c[2], c[0], c[1]
			},
			`[{"op":"add","path":"/spec/containers/2/image","value":"i"},{"op":"move","path":"/spec/containers/0","from":"/spec/containers/2"}]`,
		},
		{
			"a container is removed, another one edited, a third one added", `{"spec":{"containers":[{"name":"a","x":1},{"name":"b","x":"` + long + `"}]}}`,
			func(pod *corev1.Pod) {
				c := pod.Spec.Containers
				c[1].Image = "i"
				pod.Spec.Containers = []corev1.Container{c[1], {Name: "n"}}
			},
			`[{"op":"add","path":"/spec/containers/1/image","value":"i"},{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/-","value":{"name":"n","resources":{}}}]`,
		},
		{
			"several env vars for a short list come with a copy of what was there", `{"spec":{"containers":[{"name":"a","env":[{"x":1.0, "name":"A"}]}]}}`,
			func(pod *corev1.Pod) {
				c := &pod.Spec.Containers[0]
				c.Env[0].Value = "v"
				c.Env = slices.Insert(c.Env, 0, corev1.EnvVar{Name: "B"})
				c.Env = append(c.Env, corev1.EnvVar{Name: "C"})
			},
			`[{"op":"add","path":"/spec/containers/0/env","value":[{"name":"B"},{"x":1.0,"name":"A","value":"v"},{"name":"C"}]}]`,
		},
		{
			"a list that is null in the document is created", `{"spec":{"containers":[{"name":"a","env":null}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "B"}}
			},
			`[{"op":"add","path":"/spec/containers/0/env","value":[{"name":"B"}]}]`,
		},
		{
			"ports that share their merge key are told apart by the rest", `{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"protocol":"TCP","x":1},{"containerPort":53,"protocol":"UDP","x":2}]}]}}`,
			func(pod *corev1.Pod) { slices.Reverse(pod.Spec.Containers[0].Ports) },
			`[{"op":"move","path":"/spec/containers/0/ports/0","from":"/spec/containers/0/ports/1"}]`,
		},
		{
			"a port that shares its merge key can be edited", `{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"protocol":"TCP","x":1},{"containerPort":53,"protocol":"UDP","x":2},{"containerPort":1}]}]}}`,
			func(pod *corev1.Pod) {
				p := pod.Spec.Containers[0].Ports
				p[0].Name, p[1].Name = "t", "u"
				p[1], p[2] = p[2], p[1]
			},
			`[{"op":"add","path":"/spec/containers/0/ports/0/name","value":"t"},{"op":"add","path":"/spec/containers/0/ports/1/name","value":"u"},{"op":"move","path":"/spec/containers/0/ports/1","from":"/spec/containers/0/ports/2"}]`,
		},
		{
			"tolerations without keys are matched by likeness", `{"spec":{"containers":[],"tolerations":[{"effect":"NoExecute","operator":"Exists","x":1},{"effect":"NoSchedule","value":"v","x":2}]}}`,
			func(pod *corev1.Pod) {
				seconds := int64(300)
				pod.Spec.Tolerations[0].TolerationSeconds = &seconds
				pod.Spec.Tolerations = slices.Insert(pod.Spec.Tolerations, 0, corev1.Toleration{Effect: "PreferNoSchedule"})
			},
			`[{"op":"add","path":"/spec/tolerations/0/tolerationSeconds","value":300},{"op":"add","path":"/spec/tolerations/0","value":{"effect":"PreferNoSchedule"}}]`,
		},
		{
			"elements of which half is the same are alike", `{"spec":{"containers":[],"tolerations":[{"effect":"NoExecute","value":"v","x":1}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Operator: "Exists"}, {Effect: "NoExecute", Value: "w"}}
			},
			`[{"op":"add","path":"/spec/tolerations/0/value","value":"w"},{"op":"add","path":"/spec/tolerations/0","value":{"operator":"Exists"}}]`,
		},
		{
			"likeness counts more than the place", `{"spec":{"containers":[],"tolerations":[{"value":"a","x":1},{"operator":"Equal","effect":"NoExecute","value":"b","x":2}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Operator: "Equal", Effect: "NoExecute", Value: "c"}, {Effect: "NoSchedule"}}
			},
			`[{"op":"add","path":"/spec/tolerations","value":[{"operator":"Equal","effect":"NoExecute","value":"c","x":2},{"effect":"NoSchedule"}]}]`,
		},
		{
			"the place decides between equal likenesses", `{"spec":{"containers":[],"tolerations":[{"value":"a","x":1},{"operator":"Equal","effect":"NoExecute","value":"b","x":2}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Operator: "Equal", Effect: "NoExecute", Value: "c"}, {Operator: "Equal", Effect: "NoExecute", Value: "d"}}
			},
			`[{"op":"add","path":"/spec/tolerations/0/value","value":"c"},{"op":"add","path":"/spec/tolerations/0/operator","value":"Equal"},{"op":"add","path":"/spec/tolerations/0/effect","value":"NoExecute"},{"op":"add","path":"/spec/tolerations/1/value","value":"d"}]`,
		},
		{
			"unlike elements are edited where there are as many before as after", `{"spec":{"containers":[],"tolerations":[{"value":"a","x":1},{"operator":"Equal","effect":"NoExecute","value":"b","x":2},{"value":"c","x":3}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Value: "d"}, {Operator: "Equal", Effect: "NoExecute", Value: "e"}, {}, {Effect: "NoSchedule"}}
			},
			`[{"op":"add","path":"/spec/tolerations","value":[{"value":"d","x":1},{"operator":"Equal","effect":"NoExecute","value":"e","x":2},{},{"effect":"NoSchedule"}]}]`,
		},
		{
			"unlike elements at the end are edited where there are as many before as after", `{"spec":{"containers":[],"tolerations":[{"operator":"Equal","effect":"NoExecute","value":"b","x":2},{"value":"c","x":3}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Effect: "NoSchedule"}, {Operator: "Equal", Effect: "NoExecute", Value: "e"}, {Value: "f"}}
			},
			`[{"op":"add","path":"/spec/tolerations/0/value","value":"e"},{"op":"add","path":"/spec/tolerations/1/value","value":"f"},{"op":"add","path":"/spec/tolerations/0","value":{"effect":"NoSchedule"}}]`,
		},
		{
			"equal elements change no more than they must", `{"spec":{"containers":[{"name":"a","args":["x","y","x","x"]}]}}`,
			func(pod *corev1.Pod) { pod.Spec.Containers[0].Args = []string{"x", "x", "x"} },
			`[{"op":"remove","path":"/spec/containers/0/args/1"}]`,
		},
		{
			"a string in the middle is replaced", `{"spec":{"containers":[{"name":"a","args":["x","y","z"]}]}}`,
			func(pod *corev1.Pod) { pod.Spec.Containers[0].Args[1] = "<&>" },
			`[{"op":"replace","path":"/spec/containers/0/args/1","value":"<&>"}]`,
		},
		{
			"a volume gets another source and keeps what is not known of it", `{"spec":{"containers":[],"volumes":[{"name":"v","emptyDir":{},"x":1}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
			},
			`[{"op":"remove","path":"/spec/volumes/0/emptyDir"},{"op":"add","path":"/spec/volumes/0/hostPath","value":{"path":"/"}}]`,
		},
		{
			"a value that writes itself as an object is edited inside", `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{".":{},"f:b":{}}}}]},"spec":{"containers":[]}}`,
			func(pod *corev1.Pod) {
				_ = pod.ManagedFields[0].FieldsV1.UnmarshalJSON([]byte(`{"f:a":{".":{},"f:c":{}}}`))
			},
			`[{"op":"remove","path":"/metadata/managedFields/0/fieldsV1/f:a/f:b"},{"op":"add","path":"/metadata/managedFields/0/fieldsV1/f:a/f:c","value":{}}]`,
		},
		{
			"all elements gone", `{"spec":{"containers":[{"name":"a"}],"volumes":[{"name":"v"}]}}`,
			func(pod *corev1.Pod) {
				pod.Spec.Containers = pod.Spec.Containers[:0]
				pod.Spec.Volumes = pod.Spec.Volumes[:0]
			},
			`[{"op":"add","path":"/spec/containers","value":[]},{"op":"remove","path":"/spec/volumes"}]`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, after := decodeAs[corev1.Pod](t, []byte(tc.raw)), decodeAs[corev1.Pod](t, []byte(tc.raw))
			tc.change(after)
			patch, err := DiffRaw([]byte(tc.raw), before, after)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := operations(t, patch.AppendJSON(nil)), operations(t, []byte(tc.want)); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			got := decodeAs[corev1.Pod](t, apply(t, tc.raw, patch))
			wantSame(t, patch, marshal(t, got), marshal(t, decodeAs[corev1.Pod](t, []byte(marshal(t, after)))))
		})
	}
}

// operations returns a line for each operation.
func operations(t *testing.T, patch []byte) []string {
	var ops []Operation
	if err := json.Unmarshal(patch, &ops); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, op := range ops {
		out = append(out, strings.Join([]string{op.Op, op.From, op.Path, canonicalOrEmpty(t, op.Value)}, " "))
	}
	return out
}

func canonicalOrEmpty(t *testing.T, value json.RawMessage) string {
	if value == nil {
		return ""
	}
	return canonical(t, value)
}

func TestDiffRawRefusesADocumentThatIsNotTheSource(t *testing.T) {
	for _, tc := range []struct {
		name, raw, want string
	}{
		{"a list with fewer elements", `{"spec":{"containers":[{"name":"a"}]}}`, "/spec/containers: has 1 elements, not 2"},
		{"a list with more elements", `{"spec":{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}}`, "/spec/containers: has 3 elements, not 2"},
		{"an object where a list was", `{"spec":{"containers":{}}}`, "/spec/containers: cannot append to an object"},
		{"a string where an object was", `{"spec":"s"}`, "/spec: cannot edit below a string"},
		{"nothing", ``, "there is no document to edit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
			after := before.DeepCopy()
			after.Spec.Containers[0].Image = "i"
			after.Spec.Containers = append(after.Spec.Containers, corev1.Container{Name: "d"})
			patch, err := DiffRaw([]byte(tc.raw), before, after)
			if err == nil || !strings.Contains(err.Error(), tc.want) || patch != nil {
				t.Errorf("got %s, %v; want an error with %q", patch.AppendJSON(nil), err, tc.want)
			}
		})
	}
}

func TestDiffRawOfAStructThatIsOmitted(t *testing.T) {
	type inner struct {
		A    int   `json:"a,omitempty"`
		B    int   `json:"b,omitempty"`
		List []int `json:"list,omitempty"` // if empty, it makes the struct non-zero but is not encoded
	}
	type outer struct {
		In inner `json:"in,omitzero"`
	}
	for _, tc := range []struct {
		name          string
		raw           string
		before, after inner
		want          string
	}{
		{"it goes with its last members", `{"in":{"a":1,"b":2}}`, inner{A: 1, B: 2}, inner{}, `[{"op":"remove","path":"/in"}]`},
		{"it stays for the sake of an unknown member", `{"in":{"a":1,"x":2}}`, inner{A: 1}, inner{}, `[{"op":"remove","path":"/in/a"}]`},
		{"it is edited for the sake of an unknown member", `{"in":{"x":2}}`, inner{}, inner{A: 1}, `[{"op":"add","path":"/in/a","value":1}]`},
		{"it is edited for the sake of an unknown member, and empty", `{"in":{"x":2}}`, inner{}, inner{List: []int{}}, `[]`},
		{"it comes empty where it was not", `{}`, inner{}, inner{List: []int{}}, `[{"op":"add","path":"/in","value":{}}]`},
		{"it comes as a whole where it was not", `{}`, inner{}, inner{A: 1, B: 2}, `[{"op":"add","path":"/in","value":{"a":1,"b":2}}]`},
		{"it comes as a whole where it was null", `{"in":null}`, inner{}, inner{A: 1, B: 2}, `[{"op":"add","path":"/in","value":{"a":1,"b":2}}]`},
		{"it is not there to be removed", `{}`, inner{A: 1}, inner{}, `[]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patch, err := DiffRaw([]byte(tc.raw), outer{tc.before}, outer{tc.after})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(patch.AppendJSON(nil)); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestDiffRawOfOtherFormsThanThoseThatAreWritten(t *testing.T) {
	for _, tc := range []struct {
		name   string
		raw    string
		change func(v *everything)
		want   string
	}{
		{"a value that writes itself in one form and reads several is overwritten", `{"byPointer":{"A":1,"x":2}}`, func(v *everything) { v.ByPointer.A = 2 }, `[{"op":"add","path":"/byPointer","value":[2]}]`},
		{"so it is in a list that is sent as a whole", `{"selves":[{"byPointer":{"A":1}}]}`, func(v *everything) {
			v.Selves[0].ByPointer.A = 2
			v.Selves = append(v.Selves, nil, nil)
		}, `[{"op":"add","path":"/selves","value":[{"byPointer":[2]},null,null]}]`},
		{"white space, order and escapes are no other form", `{"byValue":{ "parts":[1,
2], "sum":1}}`, func(v *everything) { v.ByValue.B = 3 }, `[{"op":"replace","path":"/byValue/parts/1","value":3}]`},
		{"a map is overwritten whose keys may be written in several ways", `{"byInt":{"+1":"a","2":"b"}}`, func(v *everything) { v.ByInt[1] = "c" }, `[{"op":"add","path":"/byInt","value":{"1":"c","2":"b"}}]`},
		{"an array is overwritten that may be shorter or longer", `{"array":[1,2,3,4]}`, func(v *everything) { v.Array[0] = 5 }, `[{"op":"add","path":"/array","value":[5,2,3]}]`},
		{"a struct that is omitted goes from a list that is sent as a whole", `{"selves":[{"zero":{"path":"a"}},{"zero":{"path":"a","x":1}}]}`, func(v *everything) {
			v.Selves[0].Zero, v.Selves[1].Zero = customPath{}, customPath{}
			v.Selves = append(v.Selves, nil, nil)
		}, `[{"op":"add","path":"/selves","value":[{},{"zero":{"x":1}},null,null]}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw := []byte(strings.ReplaceAll(tc.raw, `\n`, "\n"))
			before, after := decodeAs[everything](t, raw), decodeAs[everything](t, raw)
			tc.change(after)
			patch, err := DiffRaw(raw, before, after)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(patch.AppendJSON(nil)); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
			got := decodeAs[everything](t, apply(t, string(raw), patch))
			wantSame(t, patch, marshal(t, got), marshal(t, after))
		})
	}
}

// image is decoded from "name", or from its encoded form.
type image struct {
	Name string `json:"name,omitempty"`
	Tag  string `json:"tag,omitempty"`
}

func (i *image) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &i.Name)
	}
	type plain image
	return json.Unmarshal(raw, (*plain)(i))
}

// words is decoded from "a,b", or from a list.
type words []string

func (w *words) UnmarshalJSON(raw []byte) error {
	var one string
	if raw[0] == '"' {
		err := json.Unmarshal(raw, &one)
		*w = strings.Split(one, ",")
		return err
	}
	var list []string
	err := json.Unmarshal(raw, &list)
	for _, one := range list {
		*w = append(*w, strings.Split(one, ",")...)
	}
	return err
}

// settings is decoded from a list of names, or from an object.
type settings map[string]string

func (s *settings) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return json.Unmarshal(raw, (*map[string]string)(s))
	}
	var names []string
	err := json.Unmarshal(raw, &names)
	*s = settings{}
	for _, name := range names {
		(*s)[name] = ""
	}
	return err
}

// build decodes the short form of a member that has no decoding of its own.
type build struct {
	From source `json:"from"`
}

type source struct {
	Path string `json:"path"`
	Tag  string `json:"tag,omitempty"`
}

func (b *build) UnmarshalJSON(raw []byte) error {
	var short struct {
		From string `json:"from"`
	}
	if json.Unmarshal(raw, &short) == nil {
		b.From.Path = short.From
		return nil
	}
	type plain build
	return json.Unmarshal(raw, (*plain)(b))
}

// host is decoded from text.
type host struct{ Name, Port string }

func (h *host) UnmarshalText(text []byte) error {
	h.Name, h.Port, _ = strings.Cut(string(text), ":")
	return nil
}

type shortForms struct {
	Image    image            `json:"image,omitzero"`
	Pointer  *image           `json:"pointer,omitempty"`
	Images   []image          `json:"images,omitempty"`
	ByName   map[string]image `json:"byName,omitempty"`
	Words    words            `json:"words,omitempty"`
	Settings settings         `json:"settings,omitempty"`
	Build    *build           `json:"build,omitempty"`
	Host     *host            `json:"host,omitempty"`
}

func TestDiffRawOfShortForms(t *testing.T) {
	for _, tc := range []struct {
		name   string
		raw    string
		change func(v *shortForms)
		want   string
	}{
		{"a string for a struct", `{"image":"nginx"}`, func(v *shortForms) { v.Image.Tag = "1" }, `[{"op":"add","path":"/image","value":{"name":"nginx","tag":"1"}}]`},
		{"behind a pointer", `{"pointer":"nginx"}`, func(v *shortForms) { v.Pointer.Tag = "1" }, `[{"op":"add","path":"/pointer","value":{"name":"nginx","tag":"1"}}]`},
		{"the long form is edited", `{"image":{"name":"nginx","x":1}}`, func(v *shortForms) { v.Image.Tag = "1" }, `[{"op":"add","path":"/image/tag","value":"1"}]`},
		{"an element", `{"images":[{"name":"a"},"b"]}`, func(v *shortForms) { v.Images[1].Tag = "1" }, `[{"op":"replace","path":"/images/1","value":{"name":"b","tag":"1"}}]`},
		{"an element of a list that is sent as a whole", `{"images":["a","b"]}`, func(v *shortForms) {
			v.Images[1].Tag = "1"
			v.Images = append(v.Images, image{Name: "c"}, image{Name: "d"})
		}, `[{"op":"add","path":"/images","value":["a",{"name":"b","tag":"1"},{"name":"c"},{"name":"d"}]}]`},
		{"an entry", `{"byName":{"a":"b"}}`, func(v *shortForms) { v.ByName["a"] = image{Name: "b", Tag: "1"} }, `[{"op":"add","path":"/byName/a","value":{"name":"b","tag":"1"}}]`},
		{"a struct that goes", `{"image":"nginx"}`, func(v *shortForms) { v.Image = image{} }, `[{"op":"remove","path":"/image"}]`},
		{"a string for a list", `{"words":"a,b"}`, func(v *shortForms) { v.Words = append(v.Words, "c") }, `[{"op":"add","path":"/words","value":["a","b","c"]}]`},
		{"a shorter list", `{"words":["a,b"]}`, func(v *shortForms) { v.Words[1] = "c" }, `[{"op":"add","path":"/words","value":["a","c"]}]`},
		{"a list for a map", `{"settings":["a","b"]}`, func(v *shortForms) { v.Settings["a"] = "1" }, `[{"op":"add","path":"/settings","value":{"a":"1","b":""}}]`},
		{"a short form inside of what reads itself", `{"build":{"from":"p"}}`, func(v *shortForms) { v.Build.From.Tag = "1" }, `[{"op":"add","path":"/build/from","value":{"path":"p","tag":"1"}}]`},
		{"nothing is changed", `{"image":"nginx","words":"a,b","settings":["a"],"build":{"from":"p"},"host":"a:b"}`, func(*shortForms) {}, `[]`},
		{"something beside it is changed", `{"image":"nginx"}`, func(v *shortForms) { v.Words = words{"a"} }, `[{"op":"add","path":"/words","value":["a"]}]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, after := decodeAs[shortForms](t, []byte(tc.raw)), decodeAs[shortForms](t, []byte(tc.raw))
			tc.change(after)
			patch, err := DiffRaw([]byte(tc.raw), before, after)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(patch.AppendJSON(nil)); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
			got := decodeAs[shortForms](t, apply(t, tc.raw, patch))
			wantSame(t, patch, marshal(t, got), marshal(t, after))
		})
	}
	t.Run("a text for a struct", func(t *testing.T) {
		const raw = `{"host":"a:b"}`
		before, after := decodeAs[shortForms](t, []byte(raw)), decodeAs[shortForms](t, []byte(raw))
		after.Host.Port = "c"
		patch, err := DiffRaw([]byte(raw), before, after)
		if got, want := string(patch.AppendJSON(nil)), `[{"op":"add","path":"/host","value":{"Name":"a","Port":"c"}}]`; err != nil || got != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	})
}

func TestDiffOfValuesOfAnyType(t *testing.T) {
	one, other := int64(1), int64(1)
	type loop struct{ Next *loop }
	twice := &loop{}
	type withFunc struct {
		F func() `json:"f,omitempty"`
	}
	for _, tc := range []struct {
		name          string
		before, after any
		want          string // the patch, or
		err           string // part of the error
	}{
		{"nothing and nothing", nil, nil, `[]`, ""},
		{"nil pointers", (*corev1.Pod)(nil), (*corev1.Pod)(nil), `[]`, ""},
		{"different types", &corev1.Pod{}, corev1.Pod{}, ``, "cannot compare *v1.Pod with v1.Pod: they must be of one type"},
		{"a pointer that becomes nil", &one, (*int64)(nil), `[{"op":"replace","path":"","value":null}]`, ""},
		{"different pointers to equal values", &one, &other, `[]`, ""},
		{"one pointer", twice, twice, `[]`, ""},
		{"structs that are not pointers", customPath{Path: "a"}, customPath{Path: "b"}, `[{"op":"add","path":"/path","value":"b"}]`, ""},
		{"a list as the document", []any{int64(1), "a"}, []any{"a", int64(2)}, `[{"op":"remove","path":"/0"},{"op":"add","path":"/-","value":2}]`, ""},
		{"one number in two types", map[string]any{"a": int64(1), "b": 2.0, "c": json.Number("3")}, map[string]any{"a": 1.0, "b": int32(2), "c": int64(3)}, `[]`, ""},
		{"a number and its text", map[string]any{"a": int64(1)}, map[string]any{"a": "1"}, `[{"op":"add","path":"/a","value":"1"}]`, ""},
		{"null and absent", map[string]any{"a": nil}, map[string]any{}, `[{"op":"remove","path":"/a"}]`, ""},
		{"null and empty", map[string]any{"a": nil, "b": map[string]any(nil)}, map[string]any{"a": map[string]any{}, "b": map[string]any{}}, `[{"op":"add","path":"/a","value":{}},{"op":"add","path":"/b","value":{}}]`, ""},
		{"two ways to hold a list", map[string]any{"a": []any{"x"}}, map[string]any{"a": []string{"x"}}, `[]`, ""},
		{"names are sorted", map[string]int{}, map[string]int{"c": 1, "a": 2, "b": 3}, `[{"op":"add","path":"/a","value":2},{"op":"add","path":"/b","value":3},{"op":"add","path":"/c","value":1}]`, ""},
		{"what can be told apart by name keeps its place", map[string]any{"l": []any{map[string]any{"name": "a", "v": int64(1)}, map[string]any{"name": "b", "v": int64(1)}}}, map[string]any{"l": []any{map[string]any{"name": "b", "v": int64(2)}, map[string]any{"name": "a", "v": int64(1)}}}, `[{"op":"add","path":"/l/1/v","value":2},{"op":"move","path":"/l/0","from":"/l/1"}]`, ""},
		{"of equal elements those stay that need no move", []string{"p", "x", "q", "x", "r"}, []string{"s", "q", "x", "t"}, `[{"op":"replace","path":"/0","value":"s"},{"op":"replace","path":"/4","value":"t"},{"op":"remove","path":"/1"}]`, ""},
		{"a name that is shared is none", []any{map[string]any{"type": "a", "p": 1, "q": 1}, map[string]any{"type": "a", "p": 2, "q": 2}}, []any{map[string]any{"type": "a", "p": 2, "q": 3}}, `[{"op":"add","path":"/1/q","value":3},{"op":"remove","path":"/0"}]`, ""},
		{"a number that JSON has not", map[string]float64{"a": 1}, map[string]float64{"a": math.NaN()}, ``, "/a: json: unsupported value: NaN"},
		{"a channel", map[string]any{"a": 1}, map[string]any{"a": make(chan int)}, ``, "/a: json: unsupported type: chan int"},
		{"keys that have no JSON form", map[[1]int]int{{1}: 1}, map[[1]int]int{{1}: 2}, ``, "keys of type [1]int have no JSON form"},
		{"functions that are nil", withFunc{}, withFunc{}, `[]`, ""},
		{"a function", withFunc{}, withFunc{func() {}}, ``, "/f: json: unsupported type: func()"},
		{"a value that holds itself", map[string]any{"a": int64(1)}, endless(), ``, "is nested deeper than 10000 levels"},
		{"a marshaler that fails", map[string]runtime.RawExtension{"a": {}}, map[string]runtime.RawExtension{"a": {Raw: []byte(`{`)}}, ``, "/a: json: error calling MarshalJSON"},
		{"unstructured objects", &unstructured.Unstructured{Object: map[string]any{"a": int64(1)}}, &unstructured.Unstructured{Object: map[string]any{"a": int64(2)}}, `[{"op":"add","path":"/a","value":2}]`, ""},
		{"an unstructured object without content", &unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{"a": int64(2)}}, `[{"op":"add","path":"/a","value":2}]`, ""},
		{"an unstructured object that is nil", (*unstructured.Unstructured)(nil), &unstructured.Unstructured{}, `[{"op":"replace","path":"","value":{}}]`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patch, err := Diff(tc.before, tc.after)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || patch != nil {
					t.Fatalf("got %s, %v; want an error with %q", patch.AppendJSON(nil), err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(patch.AppendJSON(nil)); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func endless() map[string]any {
	m := map[string]any{}
	m["a"] = m
	return m
}

func TestDiffOfManyEqualElementsIsRight(t *testing.T) {
	before, after := make([]int64, 1000), make([]int64, 1100)
	for i := range before {
		before[i] = int64(i % 3)
	}
	for i := range after {
		after[i] = int64(i % 4 % 3)
	}
	patch := mustDiff(t, before, after)
	if got := string(apply(t, marshal(t, before), patch)); got != marshal(t, after) {
		t.Errorf("got %s", got)
	}
}

func TestDiffRawOfLongListsThatAreReversedSendsTheListOrMovesEachElementOnce(t *testing.T) {
	for _, size := range []int{10, 10_000} {
		var before, after corev1.Pod
		for i := range 200 {
			before.Spec.Volumes = append(before.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("%d-%s", i, strings.Repeat("x", size))})
		}
		after.Spec.Volumes = slices.Clone(before.Spec.Volumes)
		slices.Reverse(after.Spec.Volumes)
		raw := marshal(t, &before)
		patch, err := DiffRaw([]byte(raw), &before, &after)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[int]int{10: 1, 10_000: 199}[size]; len(patch) != want {
			t.Errorf("elements of %d bytes: %d operations, want %d", size, len(patch), want)
		}
		wantSame(t, nil, canonical(t, apply(t, raw, patch)), canonical(t, []byte(marshal(t, &after))))
	}
}

// The encoder must write what encoding/json writes, except for the characters that only
// HTML needs escaped.
func TestPlansWriteWhatEncodingJSONWrites(t *testing.T) {
	for seed := range cases(t) / 10 {
		c := newChanger(seed)
		var v everything
		c.fill.Fill(&v)
		for _, value := range []any{&v, v, map[string]everything{"a": v}, []any{v}} {
			got, err := appendTree(nil, value, 0)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, nil, canonical(t, got), canonical(t, []byte(marshal(t, value))))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestPlansAreMadeByManyAtOnce(t *testing.T) {
	type a struct {
		List []a          `json:"list" patchMergeKey:"name"`
		Map  map[string]a `json:"map"`
		Name string       `json:"name"`
	}
	before := a{List: []a{{Name: "x"}, {Name: "y", List: []a{{Name: "z"}}}}}
	after := a{List: []a{{Name: "y", List: []a{{Name: "z", Map: map[string]a{"m": {}}}}}, {Name: "x"}}}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			patch, err := Diff(before, after)
			const want = `[{"op":"add","path":"/list/1/list/0/map","value":{"m":{"list":null,"map":null,"name":""}}},{"op":"move","path":"/list/0","from":"/list/1"}]`
			if got := string(patch.AppendJSON(nil)); err != nil || got != want {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	wait.Wait()
}

func TestDiffChangesNeitherValue(t *testing.T) {
	for seed := range uint64(100) {
		c := newChanger(seed)
		var before, after everything
		c.fill.Fill(&before)
		c.fill.Fill(&after)
		x, y := marshal(t, before), marshal(t, after)
		mustDiff(t, &before, &after)
		wantSame(t, nil, marshal(t, before), x)
		wantSame(t, nil, marshal(t, after), y)
	}
}

// FuzzDiff takes two documents, compares them as trees and as three types, and applies
// the patches.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"name":"x"}],"b":null}`), []byte(`{"a":[{"name":"x","v":1.0},1],"c":{}}`))
	f.Add([]byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","x":1,"env":[{"name":"E"}]},null]}}`), []byte(`{"spec":{"containers":[{"name":"b"},{"name":"a","env":[{"name":"F"},{"name":"E","value":"1"}],"resources":{"limits":{"cpu":"1000m"}}}]}}`))
	f.Add([]byte(`{"spec":{"rules":[{"host":"a","x":1},{"host":"b"}],"limit":9007199254740993,"quotas":{"cpu":"1"}}}`), []byte(`{"spec":{"rules":[{"host":"b"},{"host":"a"}],"selector":{"matchLabels":{}}}}`))
	f.Add([]byte(`{"array":[1,2],"quoted":"1","bytes":"AAAA","own":{"A":1},"third":1}`), []byte(`{"array":[1,2,3],"quotedStr":"\"a\"","selves":[null,{}],"byText":{"1,2":3}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !json.Valid(a) || !json.Valid(b) || a[0] != '{' || b[0] != '{' {
			return
		}
		fuzzDiff[map[string]any](t, a, b)
		fuzzDiff[corev1.Pod](t, a, b)
		fuzzDiff[customResource](t, a, b)
		fuzzDiff[everything](t, a, b)
	})
}

func fuzzDiff[T any](t *testing.T, a, b []byte) {
	var before, after T
	read := kjson.UnmarshalCaseSensitivePreserveInts // as the API server does
	if read(a, &before) != nil || read(b, &after) != nil {
		return
	}
	want := marshal(t, &after)
	raw := marshal(t, &before)
	patch, err := Diff(&before, &after)
	if err != nil {
		t.Fatalf("%s to %s: %v", raw, want, err)
	}
	if got := canonical(t, apply(t, raw, patch)); got != canonical(t, []byte(want)) {
		t.Fatalf("%s by %s\n got %s\nwant %s", raw, patch.AppendJSON(nil), got, want)
	}
	if patch, err = DiffRaw(a, &before, &after); err != nil {
		t.Fatalf("%s to %s: %v", a, want, err)
	}
	var got, wanted T
	if err := read(apply(t, string(a), patch), &got); err != nil {
		t.Fatalf("%s by %s: %v", a, patch.AppendJSON(nil), err)
	}
	if err := read([]byte(want), &wanted); err != nil {
		return // a type that does not decode what it encodes
	}
	if got, want := canonical(t, []byte(marshal(t, &got))), canonical(t, []byte(marshal(t, &wanted))); got != want {
		t.Fatalf("%s by %s\n got %s\nwant %s", a, patch.AppendJSON(nil), got, want)
	}
}
