// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sallyport-io/sallyport/admission"
	configv1alpha1 "github.com/sallyport-io/sallyport/cmd/internal/serve/config/v1alpha1"
)

func TestTheOldestRecentReviewsLeaveFirst(t *testing.T) {
	const mebibyte = 1 << 20
	for name, tc := range map[string]struct {
		most  int
		lines []string
		want  string // the first bytes of the lines
	}{
		"as many as there is room for":      {3, []string{"a", "b", "c"}, "abc"},
		"more than may be kept":             {3, []string{"a", "b", "c", "d", "e"}, "cde"},
		"too many bytes":                    {9, []string{"a" + strings.Repeat("-", mebibyte/2), "b" + strings.Repeat("-", mebibyte/2), "c"}, "bc"},
		"a single one with too many bytes":  {9, []string{"a", "b" + strings.Repeat("-", mebibyte)}, ""},
		"one after a single one that large": {9, []string{"b" + strings.Repeat("-", mebibyte), "c"}, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRing(tc.most, 1)
			size := 0
			for _, line := range tc.lines {
				r.add([]byte(line))
			}
			got := ""
			lines, _, _ := r.after("")
			for _, line := range lines {
				got += string(line[:1])
				size += len(line)
			}
			if got != tc.want || size != r.bytes || size > mebibyte {
				t.Errorf("got %q with %d bytes of %d, want %q", got, size, r.bytes, tc.want)
			}
		})
	}
}

func TestACursorContinuesWhereAnAnswerEnded(t *testing.T) {
	r := newRing(3, 1)
	read := func(cursor string) (text, next string, missed int) {
		lines, next, missed := r.after(cursor)
		for _, line := range lines {
			text += string(line)
		}
		return text, next, missed
	}
	expect := func(cursor, want string, wantMissed int) (next string) {
		t.Helper()
		text, next, missed := read(cursor)
		if text != want || missed != wantMissed {
			t.Errorf("after %q: got %q and %d missed, want %q and %d", cursor, text, missed, want, wantMissed)
		}
		return next
	}
	start := expect("", "", 0)
	r.add([]byte("a"))
	r.add([]byte("b"))
	second := expect(start, "ab", 0)
	expect(second, "", 0)
	r.add([]byte("c"))
	r.add([]byte("d"))
	expect(second, "cd", 0)
	expect(start, "bcd", 1)
	expect("", "bcd", 0)
	for _, foreign := range []string{"x.1", r.epoch, r.epoch + ".-1", r.epoch + ".99999999999999999999", "other." + strings.Repeat("9", 40)} {
		expect(foreign, "bcd", 0)
	}
	expect(r.epoch+".1000", "", 0)
}

// What is kept in memory is the text that is written to files.
func TestRecentReviewsAreRedactedAsFilesAre(t *testing.T) {
	s := settings(t, 1_000_000)
	s.RecentReviews, s.RecentMegabytes = 10, 1
	r, err := New(s, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	allow := admission.HandlerFunc(func(context.Context, *admissionv1.AdmissionRequest) (*admission.Response, error) {
		return admission.Allowed(), nil
	})
	for _, uid := range []string{"1", "2"} {
		if _, err := r.Handle(t.Context(), "a", request(uid), allow); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ended); err != nil {
		t.Fatal(err)
	}
	get := func(method string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		r.Recent().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, RecentPath, nil))
		return answer
	}
	written, err := os.ReadFile(filepath.Join(s.Directory, FileName))
	if err != nil {
		t.Fatal(err)
	}
	answer := get(http.MethodGet)
	if diff := cmp.Diff(string(written), answer.Body.String()); diff != "" || answer.Code != http.StatusOK || answer.Body.Len() == 0 {
		t.Errorf("status %d (-file +memory):\n%s", answer.Code, diff)
	}
	if strings.Contains(answer.Body.String(), "s3cret") {
		t.Errorf("a value is served: %s", answer.Body)
	}
	if code := get(http.MethodPost).Code; code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	for range maxReaders {
		r.recent.readers <- struct{}{}
	}
	if answer := get(http.MethodGet); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
		t.Errorf("one reader too many: %d", answer.Code)
	}
}

func TestNothingIsInMemoryUnlessItIsAskedFor(t *testing.T) {
	for name, s := range map[string]configv1alpha1.Recording{"nothing is recorded": {}, "files are written": settings(t, 1)} {
		r, err := New(s, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		if err != nil || r.Recent() != nil {
			t.Errorf("%s: %v, %v", name, r.Recent(), err)
		}
	}
	r, err := New(configv1alpha1.Recording{SamplingRatePerMillion: 1, RecentReviews: 1, RecentMegabytes: 1}, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil || r.Recent() == nil || r.file != nil {
		t.Errorf("memory only: %+v, %v", r, err)
	}
}
