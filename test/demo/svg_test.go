// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

func TestAPictureHasTheTextOfTheScreen(t *testing.T) {
	s := newScreen(os.Stdout)
	s.out = io.Discard
	s.title("A <title> & more")
	s.check(true, "it is so")
	got := svg("make demo", s.shown.String())

	texts := map[string]string{} // classes by text
	decoder := xml.NewDecoder(bytes.NewReader(got))
	class, inText := "", false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if name := token.Name.Local; name != "svg" && name != "style" && name != "rect" && name != "text" {
				t.Errorf("the picture has an element %s", name)
			}
			class, inText = "", token.Name.Local == "text"
			for _, attribute := range token.Attr {
				if attribute.Name.Local == "class" {
					class = attribute.Value
				}
			}
		case xml.CharData:
			if inText {
				texts[string(token)] = class
			}
		case xml.EndElement:
			inText = false
		}
	}
	for text, class := range map[string]string{"$ make demo": "", "A <title> & more": "b", "✓": "g", "it is so": ""} {
		if got, ok := texts[text]; !ok || got != class {
			t.Errorf("the text %q has the class %q (%t), want %q", text, got, ok, class)
		}
	}
	if !bytes.Equal(got, svg("make demo", s.shown.String())) {
		t.Error("the same screen gives another picture")
	}
}

func TestColoursAreOnTheScreenOnlyIfWanted(t *testing.T) {
	for _, colours := range []bool{true, false} {
		var out bytes.Buffer
		s := &screen{out: &out, colours: colours}
		s.title("title")
		if got := strings.Contains(out.String(), "\x1b["); got != colours {
			t.Errorf("colours wanted: %t, there: %t", colours, got)
		}
		if !strings.Contains(s.shown.String(), "\x1b[") {
			t.Error("the picture gets no colours")
		}
	}
}
