// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheReportSaysWhereTheTimeWentAndWhatIsFlaky(t *testing.T) {
	events := `{"Action":"start","Package":"github.com/sallyport-io/sallyport/a"}
{"Action":"run","Package":"github.com/sallyport-io/sallyport/a","Test":"TestOnce"}
{"Action":"fail","Package":"github.com/sallyport-io/sallyport/a","Test":"TestOnce/deep","Elapsed":2}
{"Action":"fail","Package":"github.com/sallyport-io/sallyport/a","Test":"TestOnce","Elapsed":3}
{"Action":"fail","Package":"github.com/sallyport-io/sallyport/a","Test":"TestNever","Elapsed":1}
{"Action":"fail","Package":"github.com/sallyport-io/sallyport/a","Elapsed":5}
{"Action":"pass","Package":"github.com/sallyport-io/sallyport/a","Test":"TestOnce/deep","Elapsed":1}
{"Action":"pass","Package":"github.com/sallyport-io/sallyport/a","Test":"TestOnce","Elapsed":1}
{"Action":"fail","Package":"github.com/sallyport-io/sallyport/a","Test":"TestNever","Elapsed":1}
{"Action":"fail","Package":"github.com/sallyport-io/sallyport/a","Elapsed":2}
{"Action":"output","Package":"github.com/sallyport-io/sallyport/b","Output":"ok  \tgithub.com/sallyport-io/sallyport/b\t(cached)\n"}
{"Action":"pass","Package":"github.com/sallyport-io/sallyport/b","Test":"TestGood","Elapsed":0.5}
{"Action":"pass","Package":"github.com/sallyport-io/sallyport/b","Elapsed":0.5}
`
	r := newReport()
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r.print(&out, 90*time.Second)
	const want = `
slowest packages:
     7.0 s  a
     0.5 s  b
slowest tests:
     2.0 s  a TestOnce/deep
     1.0 s  a TestNever
     0.5 s  b TestGood
FLAKY: a TestOnce/deep failed, and passed when it was run again
3 tests in 2 packages (1 cached), 8 s of tests, 1 failed, 1 flaky; total 1m30s
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestTheReportShowsTenAndTakesOnlyEvents(t *testing.T) {
	r := newReport()
	var events strings.Builder
	for i := range 15 {
		fmt.Fprintf(&events, `{"Action":"pass","Package":"a","Test":"Test%d","Elapsed":%d}`+"\n", i, i)
	}
	if err := r.read(strings.NewReader(events.String())); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r.print(&out, 0)
	if got := strings.Count(out.String(), " s  a Test"); got != 10 || !strings.Contains(out.String(), " Test14\n") || strings.Contains(out.String(), " Test4\n") {
		t.Errorf("%d tests are shown:\n%s", got, &out)
	}
	if err := newReport().read(strings.NewReader("ok a 3s\n")); err == nil {
		t.Error("text that is no event is taken")
	}
}
