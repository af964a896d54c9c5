// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/sallyport-io/sallyport/conversion"
	"github.com/sallyport-io/sallyport/sallyporttest"
)

func converter(tb testing.TB) conversion.Converter {
	tb.Helper()
	app, err := newApp()
	if err != nil {
		tb.Fatal(err)
	}
	return app.Converters()[0]
}

func TestNothingIsLostBetweenVersions(t *testing.T) {
	sallyporttest.RoundTrips(t, converter(t), sallyporttest.RoundTripOptions{Seed: 1})
	for name, raw := range map[string]string{
		"a line":                    `"cronSpec":"*/5 * * * 1"`,
		"no line":                   `"image":"i"`,
		"a line that is too short":  `"cronSpec":"daily"`,
		"a line with other spacing": `"cronSpec":" 0  3 * *\t* "`,
		"spaces alone":              `"cronSpec":"    "`,
		"replicas":                  `"cronSpec":"0 3 * * *","replicas":0`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				object := `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"c","annotations":{"a":"b"}},"spec":{` + raw + `}}`
				lost, err := converter(t).RoundTrip(t.Context(), []byte(object), version)
				if err != nil || len(lost) > 0 {
					t.Errorf("through %s: %v, %v", version, lost, err)
				}
			}
		})
	}
}

func TestEditsInAnotherVersionCountMoreThanWhatWasKept(t *testing.T) {
	for name, tc := range map[string]struct{ in, to, want string }{
		"of a line whose spacing was kept": {
			`{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"c","annotations":{"stable.example.com/cron-spec":"\"0  3 * * *\""}},"spec":{"schedule":{"minute":"5","hour":"3","dayOfMonth":"*","month":"*","dayOfWeek":"*"}}}`, "v1",
			`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"c"},"spec":{"cronSpec":"5 3 * * *"}}`,
		},
		"of fields that were kept": {
			`{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"c","annotations":{"stable.example.com/schedule":"{\"minute\":\"0 1\"}"}},"spec":{"cronSpec":"0 3 * * *"}}`, "v1beta1",
			`{"apiVersion":"stable.example.com/v1beta1","kind":"CronTab","metadata":{"name":"c"},"spec":{"schedule":{"minute":"0","hour":"3","dayOfMonth":"*","month":"*","dayOfWeek":"*"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := converter(t).Convert(t.Context(), []byte(tc.in), tc.to)
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}
