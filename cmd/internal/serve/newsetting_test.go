// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/sallyport-io/sallyport/internal/cli/setting"
	"github.com/sallyport-io/sallyport/internal/cli/setting/tags"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

// withNewSettings are settings as somebody adds them: what is here, and the comments that the help is
// generated from (see tools/apireference), is all that is written for them.
type withNewSettings struct {
	Serving struct {
		MaxGreetings int32         `json:"maxGreetings" flag:"max-greetings" value:"greetings" group:"Addresses" min:"0" max:"9"`
		Tone         string        `json:"tone,omitempty" flag:"tone" value:"tone" enum:"Kind,Firm"`
		Pause        time.Duration `json:"pause" flag:"pause" min:"1"`
		Reply        string        `json:"reply,omitempty" flag:"reply" with:"tone=Firm"`
		Retries      int64         `json:"retries" flag:"retries" min:"2"`
		Signed       []string      `json:"signed,omitempty" flag:"signed" with:"tone=Loud,required"`
	} `json:"serving"`
}

func newSettings() *withNewSettings {
	s := &withNewSettings{}
	s.Serving.MaxGreetings, s.Serving.Pause, s.Serving.Retries = 3, time.Second, 2
	return s
}

// A new setting is a field with its comment, and its default: flag, file, schema and validation follow
// from the declaration.
func TestANewSettingIsAFieldAndItsDefault(t *testing.T) {
	s, flags := newSettings(), pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, f := range setting.Flags(s) {
		setting.AddTo(flags, s, f)
	}
	if got := flags.Lookup("max-greetings").DefValue + flags.Lookup("pause").DefValue; got != "31s" {
		t.Errorf("the defaults are %s", got)
	}
	const want = `--max-greetings: serving.maxGreetings: Invalid value: 10: must be between 0 and 9
--tone: serving.tone: Unsupported value: "Loud": supported values: "Kind", "Firm"
--pause: serving.pause: Invalid value: "-1s": must be positive
--reply: serving.reply: Forbidden: only with the tone Firm
--retries: serving.retries: Invalid value: 1: must be at least 2
--signed: serving.signed: Required value: the tone Loud needs it`
	if err := flags.Parse([]string{"--max-greetings=10", "--tone=Loud", "--pause=-1s", "--reply=a", "--retries=1"}); err != nil {
		t.Fatal(err)
	}
	if err := setting.ByFlags(flags, setting.Join(tags.Validate(s, nil))); err == nil || err.Error() != want {
		t.Errorf("flags: %v\nwant %s", err, want)
	}

	p, fromFile := &problems{}, newSettings()
	documents, err := manifest.Documents("file", []byte("serving:\n  maxGreetings: 10\n  tone: Loud\n  pause: -1s\n  signed: [a]\n  extra: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	p.document = documents[0]
	p.decode(p.document.Raw, "", reflect.ValueOf(fromFile).Elem())
	for _, err := range tags.Validate(fromFile, nil) {
		p.field(&Config{}, err)
	}
	const wantInFile = `file:2: serving.maxGreetings: Invalid value: 10: must be between 0 and 9
file:3: serving.tone: Unsupported value: "Loud": supported values: "Kind", "Firm"
file:4: serving.pause: Invalid value: "-1s": must be positive
file:6: unknown field "serving.extra": known are maxGreetings, pause, reply, retries, signed, tone`
	if got := p.err().Error(); got != wantInFile {
		t.Errorf("the file: %s\nwant %s", got, wantInFile)
	}

	schema := schemaOf(reflect.TypeFor[withNewSettings](), "", reflect.StructField{})
	got := schema["properties"].(Schema)["serving"].(Schema)["properties"].(Schema)
	wantSchema := Schema{"type": "integer", "minimum": int64(0), "maximum": int64(9)}
	if diff := cmp.Diff(wantSchema, got["maxGreetings"]); diff != "" {
		t.Errorf("the schema (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Schema{"enum": []string{"Kind", "Firm"}}, got["tone"]); diff != "" {
		t.Errorf("the schema (-want +got):\n%s", diff)
	}
}
