// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// everything has a field for every rule of encoding/json.
type everything struct {
	String    string `json:"string"`
	Omitted   string `json:"omitted,omitempty"`
	Untagged  int64
	Dash      int64                `json:"-"`
	Named     int64                `json:"-,"`        //nolint:staticcheck // a rule of its own
	BadName   int64                `json:"bad\"name"` //nolint:staticcheck // a rule of its own
	Unsigned  uint64               `json:"unsigned,omitempty"`
	Small     int8                 `json:"small,omitempty"`
	Float     float64              `json:"float"`
	Bool      bool                 `json:"bool,omitempty"`
	Bytes     []byte               `json:"bytes"`
	SomeBytes []byte               `json:"someBytes,omitempty"`
	Array     [3]int64             `json:"array"`
	Rules     [2]customRule        `json:"rules"`
	Quoted    int64                `json:"quoted,string"`
	QuotedPtr *bool                `json:"quotedPtr,string"`
	QuotedStr string               `json:"quotedStr,omitempty,string"`
	Number    json.Number          `json:"number,omitempty"`
	Raw       json.RawMessage      `json:"raw,omitempty"`
	Any       any                  `json:"any"`
	Anys      []any                `json:"anys,omitempty"`
	Deep      **int64              `json:"deep,omitempty"`
	Self      *everything          `json:"self,omitempty"`
	Selves    []*everything        `json:"selves,omitempty"`
	ByInt     map[int8]string      `json:"byInt,omitempty"`
	ByUint    map[uint16]*int64    `json:"byUint"`
	ByText    map[point]int64      `json:"byText,omitempty"`
	Text      point                `json:"text"`
	Texts     []point              `json:"texts,omitempty"`
	ByValue   byValue              `json:"byValue"`
	ByPointer byPointer            `json:"byPointer"`
	Pointed   *byPointer           `json:"pointed,omitempty"`
	InMap     map[string]byPointer `json:"inMap,omitempty"`
	Zero      customPath           `json:"zero,omitzero"`
	Own       ownZero              `json:"own,omitzero"`
	OwnPtr    *ownZero             `json:"ownPtr,omitzero"`
	List      []int64              `json:"list,omitzero"`
	Lists     [][]string           `json:"lists,omitempty"`

	embedded
	*Embedded2 `json:",omitempty"`
	Embedded3  `json:"embedded3"`
	Twice1
	Twice2

	private string //nolint:unused // must not be written
}

type embedded struct {
	Promoted string `json:"promoted,omitempty"`
	String   string `json:"string"` // hidden by the outer field
	Inner
}

type Inner struct {
	Innermost int64 `json:"innermost,omitempty"`
}

type Embedded2 struct {
	Second []string `json:"second,omitempty"`
	Third  int64    `json:"third"`
}

type Embedded3 struct {
	Promoted string `json:"promoted,omitempty"`
}

// Both have a member of the same name, which hides both unless one is tagged.
type Twice1 struct {
	Gone int64
	Won  int64
}

type Twice2 struct {
	Gone int64
	Wins int64 `json:"Won"`
}

// A point is encoded as text, also as a key.
type point struct{ X, Y int8 }

func (p point) MarshalText() ([]byte, error) {
	return []byte(strconv.Itoa(int(p.X)) + "," + strconv.Itoa(int(p.Y))), nil
}

func (p *point) UnmarshalText(text []byte) error {
	x, y, ok := strings.Cut(string(text), ",")
	i, err1 := strconv.ParseInt(x, 10, 8)
	j, err2 := strconv.ParseInt(y, 10, 8)
	if !ok || err1 != nil || err2 != nil {
		return errors.New("no point")
	}
	p.X, p.Y = int8(i), int8(j)
	return nil
}

// byValue encodes itself as an object, of which parts may change.
type byValue struct{ A, B int64 }

func (v byValue) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"sum": v.A, "parts": []int64{v.A, v.B}})
}

func (v *byValue) UnmarshalJSON(raw []byte) error {
	var in struct{ Parts []int64 }
	if err := json.Unmarshal(raw, &in); err != nil || len(in.Parts) != 2 {
		return errors.Join(err, errors.New("no parts"))
	}
	v.A, v.B = in.Parts[0], in.Parts[1]
	return nil
}

// byPointer encodes itself only where encoding/json can take its address.
type byPointer struct{ A int8 }

func (v *byPointer) MarshalJSON() ([]byte, error) { return json.Marshal([]int8{v.A}) }

func (v *byPointer) UnmarshalJSON(raw []byte) error {
	var list []int8
	var object struct{ A int8 }
	switch {
	case json.Unmarshal(raw, &list) == nil && len(list) == 1:
		v.A = list[0]
	case json.Unmarshal(raw, &object) == nil:
		v.A = object.A
	default:
		return errors.New("no byPointer")
	}
	return nil
}

// ownZero has an IsZero method.
type ownZero struct{ A, B int8 }

func (z ownZero) IsZero() bool { return z.A == 0 }
