// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the limit for tests, the same as for reviews.
const maxDepth = 256

// scan checks a whole document.
func scan(data []byte) error { return Check(data, maxDepth, nil) }

// nested returns a value inside depth alternating arrays and objects.
func nested(depth int, innermost string) string {
	text := innermost
	for i := range depth {
		if i%2 == 0 {
			text = "[" + text + "]"
		} else {
			text = `{"a":` + text + `}`
		}
	}
	return text
}

// members returns an object with n members followed by more.
func members(n int, more string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"name-%d":%d`, i, i)
	}
	b.WriteString(more)
	b.WriteByte('}')
	return b.String()
}

func TestCheckAccepts(t *testing.T) {
	for name, data := range map[string]string{
		"null":                                `null`,
		"true":                                `true`,
		"false":                               `false`,
		"zero":                                `0`,
		"minus zero":                          `-0`,
		"an integer":                          `1234567890`,
		"an integer that no float64 can hold": `9007199254740993`,
		"a negative integer":                  `-17`,
		"a fraction":                          `0.25`,
		"a fraction with zeros at its end":    `10.500`,
		"an exponent":                         `1e9`,
		"an exponent with zeros at its beginning":                        `1E007`,
		"an exponent with a plus":                                        `1e+9`,
		"a fraction with a negative exponent":                            `-12.5E-3`,
		"a number that is larger than any float":                         `1e999`,
		"an empty string":                                                `""`,
		"a string of seven bytes":                                        `"1234567"`,
		"a string of eight bytes":                                        `"12345678"`,
		"a string of seventeen bytes":                                    `"12345678901234567"`,
		"a string with delete, which is not a control character of JSON": "\"\x7f\"",
		"every short escape":                                             `"\"\\\/\b\f\n\r\t"`,
		"an escaped character":                                           `"\u0041\u00e9\uFFFD"`,
		"an escaped control character":                                   `"\u0000\u001f"`,
		"a pair of surrogates":                                           `"\ud83d\uDE00"`,
		"escapes far from the beginning":                                 `"0123456789abcdef\n0123456789abcdef\t"`,
		"UTF-8 of two, three and four bytes":                             `"é€😀"`,
		"UTF-8 that begins a word of eight bytes":                        `"1234567é"`,
		"the highest code point":                                         "\"\U0010FFFF\"",
		"the line separators of JavaScript":                              "\"\u2028\u2029\"",
		"an empty array":                                                 `[]`,
		"an empty array with white space":                                `[ ]`,
		"an array":                                                       `[1,"a",null,[],{}]`,
		"an empty object":                                                `{}`,
		"an empty object with white space":                               "{\n}",
		"an object":                                                      `{"a":1,"b":"c","d":null,"e":{},"f":[]}`,
		"an empty name":                                                  `{"":1}`,
		"names that differ in case":                                      `{"name":1,"Name":2}`,
		"names of which one begins with the other":                       `{"a":1,"aa":2,"aaaaaaaa":3,"aaaaaaaaa":4}`,
		"names of eight bytes with the same fingerprint":                 `{"` + twin1 + `":1,"` + twin2 + `":2}`,
		"the same name in an object and in its value":                    `{"a":{"a":{"a":1}},"b":{"a":1}}`,
		"the same name in two objects of an array":                       `[{"a":1},{"a":2}]`,
		"white space everywhere":                                         " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n",
		"47 names":                                                       members(47, ""),
		"48 names":                                                       members(48, ""),
		"49 names":                                                       members(49, ""),
		"300 names":                                                      members(300, ""),
		"300 names, the last with an escape":                             members(300, `,"\u006eame":1`),
		"objects of many names in one another":                           members(100, `,"inner":`+members(100, `,"inner":`+members(100, ""))+`,"after":1`),
		"more names on the way down than there is room for":              strings.Repeat(members(20, "")[:len(members(20, ""))-1]+`,"down":`, 20) + "1" + strings.Repeat("}", 20),
		"300 empty objects side by side":                                 "[" + strings.Repeat("{},", 300) + "{}]",
		"300 empty arrays side by side":                                  "[" + strings.Repeat("[],", 300) + "[]]",
		"300 objects side by side":                                       "[" + strings.Repeat(`{"a":1},`, 300) + "{}]",
		"300 arrays side by side":                                        "[" + strings.Repeat("[1],", 300) + "[]]",
		"256 levels":                                                     nested(256, "1"),
		"256 levels with an empty array inside":                          nested(255, "[]"),
		"256 levels with an empty object inside":                         nested(255, "{}"),
		"256 levels twice, side by side":                                 "[" + nested(255, "1") + "," + nested(255, "1") + "]",
	} {
		t.Run(name, func(t *testing.T) {
			if err := scan([]byte(data)); err != nil {
				t.Errorf("refused: %v", err)
			}
			if depthOf([]byte(data)) < 0 {
				t.Error("jsontext does not accept it: the test is wrong")
			}
		})
	}
}

// Two names with the same fingerprint.
const (
	twin1 = "headhead-1-tailtail"
	twin2 = "headhead-2-tailtail"
)

func TestCheckRefuses(t *testing.T) {
	const (
		duplicate = "a name that its object has before"
		deep      = "nested deeper than 256 levels"
	)
	for name, tc := range map[string]struct{ data, want string }{
		"nothing":                                              {``, "the end in the middle: expected a value at byte 0"},
		"white space only":                                     {" \n", "the end in the middle: expected a value at byte 2"},
		"a byte order mark":                                    {"\ufeff1", "expected a value at byte 0"},
		"an invalid word of JSON's":                            {`nil`, "expected a value at byte 0"},
		"a word in capitals":                                   {`True`, "expected a value at byte 0"},
		"half a word":                                          {`fal`, "expected a value at byte 0"},
		"a word with more behind it":                           {`nullx`, "more behind the end at byte 4"},
		"not a number":                                         {`NaN`, "expected a value at byte 0"},
		"a minus alone":                                        {`-`, "expected a value at byte 0"},
		"a minus before a word":                                {`[-a]`, "expected a value at byte 1"},
		"a plus":                                               {`+1`, "expected a value at byte 0"},
		"a zero at the beginning":                              {`01`, "more behind the end at byte 1"},
		"a zero at the beginning, in an array":                 {`[00]`, "expected a comma or the end of the array at byte 2"},
		"a zero behind a minus":                                {`-01`, "more behind the end at byte 2"},
		"a point at the beginning":                             {`.5`, "expected a value at byte 0"},
		"a point at the end":                                   {`5.`, "the end in the middle: expected a digit at byte 2"},
		"a point before an exponent":                           {`5.e1`, "expected a digit at byte 2"},
		"an empty exponent":                                    {`5e`, "the end in the middle: expected a digit at byte 2"},
		"an exponent of a sign":                                {`[5e+]`, "expected a digit at byte 4"},
		"a hexadecimal number":                                 {`0x10`, "more behind the end at byte 1"},
		"a string in single quotes":                            {`'a'`, "expected a value at byte 0"},
		"a string without an end":                              {`"abc`, "the end in a string at byte 4"},
		"a string of eight bytes without an end":               {`"1234567`, "the end in a string at byte 8"},
		"a string that ends in a backslash":                    {`"abc\`, "an invalid escape at byte 4"},
		"a string whose last quote is escaped":                 {`"abc\"`, "the end in a string at byte 6"},
		"an unknown escape":                                    {`"\x41"`, "an invalid escape at byte 1"},
		"an escaped single quote":                              {`"\'"`, "an invalid escape at byte 1"},
		"an escape in capitals":                                {`"\U0041"`, "an invalid escape at byte 1"},
		"an escape of three digits":                            {`"\u123"`, "an invalid escape at byte 1"},
		"an escape with a letter that is not a digit":          {`"\u12g4"`, "an invalid escape at byte 1"},
		"a high surrogate alone":                               {`"\ud83d"`, "an invalid escape at byte 1"},
		"a high surrogate before a letter":                     {`"\ud83dabcdef"`, "an invalid escape at byte 1"},
		"a high surrogate before another escape":               {`"\ud83d\n12345"`, "an invalid escape at byte 1"},
		"two high surrogates":                                  {`"\ud83d\ud83d"`, "an invalid escape at byte 1"},
		"a high surrogate before half an escape":               {`"\ud83d/ude00"`, "an invalid escape at byte 1"},
		"a low surrogate alone":                                {`"\ude00"`, "an invalid escape at byte 1"},
		"a pair of surrogates in the wrong order":              {`"\ude00\ud83d"`, "an invalid escape at byte 1"},
		"a newline in a string":                                {"\"a\nb\"", "a control character in a string at byte 2"},
		"a tabulator in a string":                              {"\"0123456789\t\"", "a control character in a string at byte 11"},
		"a null byte in a string":                              {"\"a\x00\"", "a control character in a string at byte 2"},
		"the last control character in a string":               {"\"\x1f\"", "a control character in a string at byte 1"},
		"a continuation byte alone":                            {"\"a\x80\"", "invalid UTF-8 in the string at byte 0"},
		"UTF-8 that is cut off":                                {"\"\xe2\x82\"", "invalid UTF-8 in the string at byte 0"},
		"UTF-8 that is cut off by ASCII":                       {"\"\xe2\x82a\"", "invalid UTF-8 in the string at byte 0"},
		"overlong UTF-8 of a slash":                            {"\"\xc0\xaf\"", "invalid UTF-8 in the string at byte 0"},
		"overlong UTF-8 of a null byte":                        {"\"\xc0\x80\"", "invalid UTF-8 in the string at byte 0"},
		"overlong UTF-8 of three bytes":                        {"\"\xe0\x80\xaf\"", "invalid UTF-8 in the string at byte 0"},
		"overlong UTF-8 of four bytes":                         {"\"\xf0\x80\x80\xaf\"", "invalid UTF-8 in the string at byte 0"},
		"a surrogate in UTF-8":                                 {"\"\xed\xa0\x80\"", "invalid UTF-8 in the string at byte 0"},
		"a code point that is too high":                        {"\"\xf4\x90\x80\x80\"", "invalid UTF-8 in the string at byte 0"},
		"Latin-1":                                              {"\"caf\xe9\"", "invalid UTF-8 in the string at byte 0"},
		"invalid UTF-8 in a name":                              {"{\"a\xff\":1}", "invalid UTF-8 in the string at byte 1"},
		"invalid UTF-8 outside of strings":                     {"[\xff]", "expected a value at byte 1"},
		"an array without an end":                              {`[1`, "the end in the middle: expected a comma or the end of the array at byte 2"},
		"an array that ends in a comma":                        {`[1,]`, "expected a value at byte 3"},
		"an array that begins with a comma":                    {`[,1]`, "expected a value at byte 1"},
		"an array without commas":                              {`[1 2]`, "expected a comma or the end of the array at byte 3"},
		"an array that ends as an object":                      {`[1}`, "expected a comma or the end of the array at byte 2"},
		"an object without an end":                             {`{"a":1`, "the end in the middle: expected a comma or the end of the object at byte 6"},
		"an object that ends in a comma":                       {`{"a":1,}`, "expected a name at byte 7"},
		"an object that begins with a comma":                   {`{,"a":1}`, "expected a name at byte 1"},
		"an object without commas":                             {`{"a":1 "b":2}`, "expected a comma or the end of the object at byte 7"},
		"an object that ends as an array":                      {`{"a":1]`, "expected a comma or the end of the object at byte 6"},
		"an object without a colon":                            {`{"a" 1}`, "expected a colon at byte 5"},
		"an object without a value":                            {`{"a":}`, "expected a value at byte 5"},
		"an object that ends behind a name":                    {`{"a"`, "the end in the middle: expected a colon at byte 4"},
		"a name that is a number":                              {`{1:2}`, "expected a name at byte 1"},
		"a name without quotes":                                {`{a:1}`, "expected a name at byte 1"},
		"a comment":                                            {`{} // a`, "more behind the end at byte 3"},
		"white space that JSON does not know":                  {"1\v", "more behind the end at byte 1"},
		"a space that JSON does not know":                      {"\u00a01", "expected a value at byte 0"},
		"two values":                                           {`{} {}`, "more behind the end at byte 3"},
		"a bracket too many":                                   {`[1]]`, "more behind the end at byte 3"},
		"a null byte behind the end":                           {"{}\x00", "more behind the end at byte 2"},
		"a null byte in place of a value":                      {"[\x00]", "expected a value at byte 1"},
		"a name twice":                                         {`{"a":1,"a":1}`, duplicate + " at byte 7"},
		"an empty name twice":                                  {`{"":1,"":1}`, duplicate + " at byte 6"},
		"a name of eight bytes twice":                          {`{"12345678":1,"b":2,"12345678":3}`, duplicate + " at byte 20"},
		"a long name twice":                                    {`{"` + twin1 + `":1,"` + twin2 + `":2,"` + twin1 + `":3}`, duplicate + " at byte 49"},
		"a name twice, with an object between":                 {`{"a":{"b":1},"a":2}`, duplicate + " at byte 13"},
		"a name twice, deep inside":                            {`{"a":[{"b":{"c":1,"c":2}}]}`, duplicate + " at byte 18"},
		"a name twice, once with an escape":                    {`{"name":1,"n\u0061me":2}`, duplicate + " at byte 10"},
		"a name twice, first with an escape":                   {`{"n\u0061me":1,"name":2}`, duplicate + " at byte 15"},
		"a name twice, with different escapes":                 {`{"\/\n":1,"\u002f\u000A":2}`, duplicate + " at byte 10"},
		"a name twice, with escapes and others between":        {`{"\u0061":{"\u0062":1},"\u0063":2,"\u0061":3}`, duplicate + " at byte 34"},
		"a name twice, with a short escape and a long one":     {`{"a":{"k\"":1,"k\u0022":2}}`, duplicate + " at byte 14"},
		"a name twice, with each short escape":                 {`{"\"\\\b\f\n\r\t12345678":1,"\u0022\u005c\u0008\u000c\u000a\u000d\u0009\u00312345678":2}`, duplicate + " at byte 28"},
		"a name twice, with escapes and as UTF-8":              {`{"é\"":{"k\"":1},"\u00e9\"":2}`, duplicate + " at byte 18"},
		"a name twice, as UTF-8 and as surrogates":             {`{"😀":1,"\ud83d\ude00":2}`, duplicate + " at byte 10"},
		"the 48th name for the second time":                    {members(47, `,"name-0":1`), duplicate + fmt.Sprintf(" at byte %d", len(members(47, "")))},
		"the 49th name for the second time":                    {members(48, `,"name-0":1`), duplicate + fmt.Sprintf(" at byte %d", len(members(48, "")))},
		"the 49th name for the second time, with an escape":    {members(48, `,"name\u002d47":1`), duplicate + fmt.Sprintf(" at byte %d", len(members(48, "")))},
		"the 301st name for the second time":                   {members(300, `,"name-299":1`), duplicate + fmt.Sprintf(" at byte %d", len(members(300, "")))},
		"a name of many twice, with an object of many between": {members(100, `,"inner":`+members(100, "")+`,"inner":1`), duplicate + fmt.Sprintf(" at byte %d", len(members(100, ""))+9+len(members(100, "")))},
		"257 levels":                                           {nested(257, "1"), deep + " at byte "},
		"257 levels with an empty array inside":                {nested(256, "[]"), deep + " at byte "},
		"257 levels with an empty object inside":               {nested(256, "{}"), deep + " at byte "},
		"a million levels":                                     {strings.Repeat("[", 1_000_000), deep + " at byte 256"},
	} {
		t.Run(name, func(t *testing.T) {
			err := scan([]byte(tc.data))
			var syntax *syntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a syntax error", err)
			}
			if got := err.Error(); got != tc.want && (!strings.HasSuffix(tc.want, " at byte ") || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if depth := depthOf([]byte(tc.data)); depth >= 0 && depth <= maxDepth {
				t.Error("jsontext accepts it: the test is wrong")
			}
		})
	}
}

func TestCheckRefusesAReviewThatIsCutOff(t *testing.T) {
	for file, body := range map[string][]byte{
		"notebook.json": recorded(t, "notebook.json"), "minimal.json": recorded(t, "minimal.json"),
		"a value with escapes": []byte(`{"\u0061\ud83d\ude00\n":["\ud83d\ude00","\\\/",true,false,null,-1.5e+3]}`),
	} {
		body = bytes.TrimSpace(body)
		if err := scan(body); err != nil {
			t.Fatalf("%s is refused: %v", file, err)
		}
		for n := range body {
			// No capacity beyond the end: reading past it panics.
			if scan(body[:n:n]) == nil {
				t.Errorf("%s is accepted without all from byte %d on", file, n)
			}
		}
	}
}

func TestCheckAgreesAboutReviewsThatAreDamaged(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	body := recorded(t, "notebook.json")
	reviews := 5000
	if testing.Short() {
		reviews /= 20
	}
	for range reviews {
		damaged := bytes.Clone(body)
		damaged[random.IntN(len(damaged))] = byte(random.UintN(256))
		agree(t, damaged)
	}
}

func TestCheckReturnsValuesWithoutRoomToGrow(t *testing.T) {
	data := []byte(` {"a": [1, 2] } tail`)
	err := Check(data[:16], maxDepth, func(r *Reader) {
		value := r.Value()
		if string(value) != `{"a": [1, 2] }` {
			t.Errorf("got %q", value)
		}
		_ = append(value, '!')
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != ` {"a": [1, 2] } tail` {
		t.Error("an append to the value wrote over what stands behind it")
	}
}

func TestCheckHandsOutNamesWithoutTheirEscapes(t *testing.T) {
	data := []byte(`{"plain":1,"\u0061\n\ud83d\ude00":{"in\u0020side":[{"\"":1}]},"\\":2}`)
	var names []string
	err := Check(data, maxDepth, func(r *Reader) {
		var member func(name []byte)
		member = func(name []byte) {
			names = append(names, string(name))
			if r.Kind() == '{' {
				r.Object(member)
			}
		}
		r.Object(member)
		if c := r.check; len(c.names) != 0 || len(c.written) != 0 || len(c.open) != 0 {
			t.Errorf("left behind: %d names, %d bytes, depth %d", len(c.names), len(c.written), len(c.open))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"plain", "a\n😀", "in side", `\`}; fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestCheckEndsWithTheFirstError(t *testing.T) {
	for _, tc := range []struct {
		name, data, want string
		read             func(r *Reader)
	}{
		{"what the reader refuses", `{"a":[1],"b":2}`, "expected a string at byte 5", func(r *Reader) {
			r.Object(func([]byte) {
				if r.Kind() != '"' {
					r.Expected("a string")
				}
			})
		}},
		{"what the reader refuses for a reason of its own", ` [1, 2]`, "too many at byte 5", func(r *Reader) {
			r.Array(func(i int) {
				if i == 1 {
					r.Fail("too many")
				}
			})
		}},
		{"what the reader passes over", `{"a":[1,],"b":2}`, "expected a value at byte 8", func(r *Reader) {
			r.Object(func([]byte) {})
			r.Fail("not this one")
		}},
		{"what the reader leaves", `{"a":tru}`, "expected a value at byte 5", func(*Reader) {}},
		{"a string that the reader asks for", `["\x"]`, "an invalid escape at byte 2", func(r *Reader) {
			r.Array(func(int) {
				if s, ok := r.String(); ok {
					t.Errorf("got %q", s)
				}
			})
		}},
		{"what stands behind the value", `[] []`, "more behind the end at byte 3", func(r *Reader) { r.Value() }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := Check([]byte(tc.data), maxDepth, tc.read); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestFingerprintDependsOnNothingBehindTheName(t *testing.T) {
	seen := map[uint64]string{}
	for _, name := range []string{"", "a", "b", "ab", "ba", "a\x00", "1234567", "12345678", "123456789", "1234567890123456789"} {
		alone := fingerprint([]byte(name)[:len(name):len(name)])
		for _, tail := range []string{`":1`, `":{"a":1234}}`, "\xff\xff\xff\xff\xff\xff\xff\xff"} {
			if got := fingerprint([]byte(name + tail)[:len(name)]); got != alone {
				t.Errorf("%q before %q: got %x, want %x", name, tail, got, alone)
			}
		}
		if other, ok := seen[alone]; ok {
			t.Errorf("%q and %q have the same", name, other)
		}
		seen[alone] = name
	}
	if fingerprint([]byte(twin1)) != fingerprint([]byte(twin2)) {
		t.Error("the twins differ: the tests with them are about nothing")
	}
}

func TestSpecialMarksTheFirstByteToLookAt(t *testing.T) {
	for c := range 256 {
		marked := c < ' ' || c == '"' || c == '\\' || c >= 0x80
		for at := range 8 {
			// What follows must not matter.
			for _, behind := range []byte{'a', 0, 1, ' ', '!', '"', '#', '[', '\\', ']', 0x7f, 0x80, 0xff} {
				word := bytes.Repeat([]byte{'a'}, at)
				word = append(word, byte(c))
				word = append(word, bytes.Repeat([]byte{behind}, 7-at)...)
				found := special(binary.LittleEndian.Uint64(word))
				if first := bits.TrailingZeros64(found) / 8; first < at || (first == at) != marked {
					t.Fatalf("%q: the first mark is at %d", word, first)
				}
			}
		}
	}
}

// alphabet returns a short object with more than mapThreshold names followed by more.
func alphabet(more string) string {
	var b strings.Builder
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		fmt.Fprintf(&b, `,"%c":0`, c)
	}
	return "{" + b.String()[1:] + more + "}"
}

// FuzzCheck compares the check with a decoder that makes the same checks. They differ
// only in the allowed depth.
func FuzzCheck(f *testing.F) {
	// Short seeds: the longer a seed, the more time the fuzzer spends on minimizing its
	// findings.
	for _, seed := range []string{
		`{"kind":"Pod","metadata":{"labels":{"a":"b"},"managedFields":[{"f:spec":{"k:{\"name\":\"c\"}":{".":{}}}}]},"n":9007199254740993}`,
		`{"a":[1,-0.5e+7,true,false,null,"\u00e9\ud83d\ude00\n"],"b":{}} `, `{"a":1,"\u0061":2}`, "\"\xc0\xaf\"", "1\x00",
		alphabet(""), alphabet(`,"\u0061":[]`), strings.Repeat("[", 256) + strings.Repeat("]", 256),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(agree)
}

func agree(t *testing.T, data []byte) {
	t.Helper()
	depth := depthOf(data)
	want := depth >= 0 && depth <= maxDepth
	err := scan(bytes.Clone(data))
	if (err == nil) != want {
		t.Errorf("accepted: %t (%v); jsontext: %t, depth %d\n%q", err == nil, err, depth >= 0, depth, data)
	}
	if depth > maxDepth && (err == nil || !strings.HasPrefix(err.Error(), "nested deeper")) {
		t.Errorf("got %v for depth %d", err, depth)
	}
}

// depthOf returns the nesting depth of the document, or -1 if it is invalid. It asks
// jsontext, which by default also refuses duplicate names and invalid UTF-8.
func depthOf(data []byte) int {
	if !jsontext.Value(data).IsValid() {
		return -1
	}
	deepest := 0
	for d := jsontext.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.ReadToken(); err != nil {
			return deepest
		}
		deepest = max(deepest, d.StackDepth())
	}
}

// recorded returns a review captured from an API server.
func recorded(tb testing.TB, file string) []byte {
	tb.Helper()
	body, err := os.ReadFile("../../../cmd/test/bench/testdata/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	return body
}
