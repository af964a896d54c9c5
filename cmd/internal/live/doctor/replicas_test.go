// SPDX-License-Identifier: Apache-2.0

package doctor

import "testing"

func TestMetricsOfAReplicaAreRead(t *testing.T) {
	got, err := readMetrics([]byte("# TYPE sallyport_poddefaults gauge\nsallyport_poddefaults 3\n# TYPE sallyport_x_total counter\nsallyport_x_total{a=\"1\"} 1\nsallyport_x_total{a=\"2\"} 4\ngo_info 1\n"))
	if err != nil || got["sallyport_poddefaults"] != 3 || got["sallyport_x_total"] != 5 || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "<html>", "go_info 1\n"} {
		if _, err := readMetrics([]byte(text)); err == nil {
			t.Errorf("%q are metrics", text)
		}
	}
}
