// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlagsArePrintedWithTheirTypes(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Bool("http2", true, "")
	flags.Int32("port", 9443, "")
	flags.Int64("bytes", 1<<40, "")
	flags.StringSlice("names", []string{"a", "b"}, "")
	flags.String("text", "9443", "")
	flags.Duration("timeout", 90e9, "")
	flags.Bool("help", false, "")
	var out strings.Builder
	if err := PrintFlags(&out, flags); err != nil {
		t.Fatal(err)
	}
	want := "bytes: 1099511627776\nhttp2: true\nnames:\n- a\n- b\nport: 9443\ntext: \"9443\"\ntimeout: 1m30s\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
