// SPDX-License-Identifier: Apache-2.0

package callmetrics

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-io/sallyport/internal/cli/terminal"
)

// reading returns metrics of an API server with the given start time.
func reading(t *testing.T, started string, lines ...string) *Counters {
	t.Helper()
	text := "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds " + started + "\n" +
		"# TYPE apiserver_admission_webhook_admission_duration_seconds histogram\n" +
		"# TYPE apiserver_admission_webhook_rejection_count counter\n" +
		"# TYPE apiserver_admission_webhook_fail_open_count counter\n" +
		"# TYPE apiserver_validating_admission_policy_check_duration_seconds histogram\n" +
		strings.Join(lines, "\n") + "\n"
	c, err := Parse(time.Unix(0, 0), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// histogram has 4 calls up to 0.1 s, 4 up to 0.5 s, and 2 above 1 s.
func histogram(labels string) string {
	const metric = "apiserver_admission_webhook_admission_duration_seconds"
	return strings.ReplaceAll(metric+`_bucket{LABELS,le="0.1"} 4
`+metric+`_bucket{LABELS,le="0.5"} 8
`+metric+`_bucket{LABELS,le="1"} 8
`+metric+`_bucket{LABELS,le="+Inf"} 10
`+metric+`_sum{LABELS} 5
`+metric+`_count{LABELS} 10`, "LABELS", labels)
}

const (
	create = `name="a.example.com",operation="CREATE",rejected="false",type="admit"`
	update = `name="a.example.com",operation="UPDATE",rejected="false",type="admit"`
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestUsagesAddUpOperationsAndEstimatePercentiles(t *testing.T) {
	c := reading(t, "1800000000", histogram(create), histogram(update),
		`apiserver_admission_webhook_rejection_count{error_type="no_error",name="a.example.com",operation="CREATE",rejection_code="403",type="admit"} 3`,
		`apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="a.example.com",operation="UPDATE",rejection_code="503",type="admit"} 2`,
		`apiserver_admission_webhook_fail_open_count{name="b.example.com",type="validating"} 7`)
	usages, err := Usages(nil, c)
	if err != nil || len(usages) != 2 {
		t.Fatalf("%d usages, %v", len(usages), err)
	}
	a, b := usages[0], usages[1]
	if a.Name != "a.example.com" || a.Kind != Mutating || a.Calls != 20 || a.Seconds != 10 || a.Rejected != 3 || a.Failed != 2 || len(a.Operations) != 2 {
		t.Errorf("got %+v", a)
	}
	// Rank 10 of 20: 8 are below 0.1, 16 below 0.5. The 99th percentile is above the last bound.
	if !near(a.Mean, 0.5) || !near(a.P50, 0.1+0.4*2/8) || !near(a.P99, 1) {
		t.Errorf("mean %v, p50 %v, p99 %v", a.Mean, a.P50, a.P99)
	}
	if b.Kind != Validating || b.FailedOpen != 7 || b.Calls != 0 {
		t.Errorf("got %+v", b)
	}
}

func TestUsagesWithinAWindow(t *testing.T) {
	before := reading(t, "1800000000", histogram(create))
	after := reading(t, "1800000000", histogram(create), histogram(update))
	usages, err := Usages(before, after)
	if err != nil || len(usages) != 1 {
		t.Fatalf("%d usages, %v", len(usages), err)
	}
	if u := usages[0]; u.Calls != 10 || len(u.Operations) != 1 || u.Operations[0].Operation != "UPDATE" {
		t.Errorf("got %+v", u)
	}
	if usages, err := Usages(after, after); err != nil || len(usages) != 0 {
		t.Errorf("%d usages of nothing, %v", len(usages), err)
	}
}

func TestReadingsOfTwoServersAreNotCompared(t *testing.T) {
	if _, err := Usages(reading(t, "1800000000"), reading(t, "1800000001")); !errors.Is(err, ErrOtherServer) {
		t.Errorf("got %v", err)
	}
}

func TestPoliciesAreCountedToo(t *testing.T) {
	const metric, labels = "apiserver_validating_admission_policy_check_duration_seconds", `policy="p",policy_binding="b"`
	c := reading(t, "1800000000",
		metric+`_bucket{enforcement_action="allow",error_type="no_error",`+labels+`,le="+Inf"} 5`, metric+`_sum{enforcement_action="allow",error_type="no_error",`+labels+`} 1`, metric+`_count{enforcement_action="allow",error_type="no_error",`+labels+`} 5`,
		metric+`_bucket{enforcement_action="deny",error_type="no_error",`+labels+`,le="+Inf"} 2`, metric+`_sum{enforcement_action="deny",error_type="no_error",`+labels+`} 1`, metric+`_count{enforcement_action="deny",error_type="no_error",`+labels+`} 2`,
		metric+`_bucket{enforcement_action="deny",error_type="out_of_budget",`+labels+`,le="+Inf"} 1`, metric+`_sum{enforcement_action="deny",error_type="out_of_budget",`+labels+`} 1`, metric+`_count{enforcement_action="deny",error_type="out_of_budget",`+labels+`} 1`)
	usages, err := Usages(nil, c)
	if err != nil || len(usages) != 1 {
		t.Fatalf("%d usages, %v", len(usages), err)
	}
	if u := usages[0]; u.Kind != ValidatingPolicy || u.Calls != 8 || u.Rejected != 2 || u.Failed != 1 {
		t.Errorf("got %+v", u)
	}
}

// A denial of a policy is none of its failures: the API server gives both an error type.
func TestADenialOfAPolicyIsNoFailure(t *testing.T) {
	const metric = "apiserver_validating_admission_policy_check_duration_seconds"
	series := func(action string) []string {
		labels := `{enforcement_action="` + action + `",error_type="invalid_error",policy="p",policy_binding="b"`
		return []string{metric + "_bucket" + labels + `,le="+Inf"} 2`, metric + "_sum" + labels + "} 1", metric + "_count" + labels + "} 2"}
	}
	usages, err := Usages(nil, reading(t, "1800000000", append(series("deny"), series("warn")...)...))
	if err != nil || len(usages) != 1 || usages[0].Rejected != 2 || usages[0].Failed != 0 || usages[0].Calls != 4 {
		t.Errorf("%v, %+v", err, usages)
	}
}

func TestPrint(t *testing.T) {
	c := reading(t, "1800000000", histogram(create), histogram(update))
	usages, err := Usages(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Print(&out, usages, 0); err != nil {
		t.Fatal(err)
	}
	const want = `NAME           KIND      OPERATION  CALLS  P50    P99  WAITED  REJECTED  FAILED  FAILED OPEN
a.example.com  Mutating             20     200ms  1s   10s     0         0       0
                         CREATE     10     200ms  1s   5s      0         0       0
                         UPDATE     10     200ms  1s   5s      0         0       0

1 webhook or policy, since the API server started
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	out.Reset()
	usages[0].Failed = 3
	if err := Print(&terminal.Screen{Writer: &out, Width: 60, Height: 5, Color: true, InPlace: true}, usages, 0); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"\x1b[H\x1b[1mNAME\x1b[0m", "\x1b[31m3\x1b[0m", "more lines: enlarge the terminal"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q on a terminal:\n%q", part, out.String())
		}
	}
	out.Reset()
	if err := Print(&out, nil, 10*time.Second); err != nil || out.String() != "no webhook or policy was asked within 10s\n" {
		t.Errorf("got %s, %v", out.String(), err)
	}
}

func TestOnlyFamiliesThatAreReadAreParsed(t *testing.T) {
	const other = "# HELP other_total One that nothing reads\n# TYPE other_total counter\nother_total{a=\"b\"} broken\n"
	c, err := Parse(time.Unix(0, 0), []byte(other+"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.8e+09\n"+other))
	if err != nil || c.Started().Unix() != 1_800_000_000 || len(c.families) != 1 {
		t.Errorf("got %v, %v", c, err)
	}
	if c, err := Parse(time.Unix(0, 0), nil); err != nil || !c.Started().IsZero() {
		t.Errorf("got %v, %v of an empty body", c, err)
	}
	for _, body := range []string{"<html>", "not found", `{"kind": "Status"}`} {
		if _, err := Parse(time.Unix(0, 0), []byte(body)); err == nil {
			t.Errorf("%s is taken for metrics", body)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1\n" + histogram(create) + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(time.Unix(0, 0), data)
		if err != nil {
			return
		}
		if _, err := Usages(c, c); err != nil {
			t.Error(err)
		}
	})
}
