// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/test/lab"
)

func listOf(t testing.TB, next string, names ...string) *metav1.PartialObjectMetadataList {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: next, ResourceVersion: "7"}}
	var managed metav1.FieldsV1
	if err := managed.UnmarshalJSON([]byte(`{"f:x":{}}`)); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"a": name}, Annotations: map[string]string{"large": strings.Repeat(name, 100)},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &managed}},
		}})
	}
	return list
}

// serverOf answers requests of pages by their token.
func serverOf(t *testing.T, answer func(w http.ResponseWriter, next string)) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r.URL.Query().Get("continue")) }))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL, QPS: -1}, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMetadataOfPages has the answers of an API server of the cluster, and of one of others, page by page.
func TestMetadataOfPages(t *testing.T) {
	pages := map[string]*metav1.PartialObjectMetadataList{"": listOf(t, "2", "a", "b"), "2": listOf(t, "3"), "3": listOf(t, "", "c")}
	for name, encode := range map[string]func(*metav1.PartialObjectMetadataList) []byte{
		"Protobuf": func(list *metav1.PartialObjectMetadataList) []byte { return lab.InProtobuf(t, list) },
		"JSON": func(list *metav1.PartialObjectMetadataList) []byte {
			raw, err := json.Marshal(list)
			if err != nil {
				t.Error(err)
			}
			return raw
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := serverOf(t, func(w http.ResponseWriter, next string) { _, _ = w.Write(encode(pages[next])) })
			var got []*metav1.ObjectMeta
			if err := c.EachMetadata(t.Context(), "/api/v1/pods", "", func(o *metav1.ObjectMeta) { got = append(got, o) }); err != nil {
				t.Fatal(err)
			}
			var want []*metav1.ObjectMeta
			for _, next := range []string{"", "2", "3"} {
				for i := range pages[next].Items {
					want = append(want, &pages[next].Items[i].ObjectMeta)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetadataThatCannotBeRead(t *testing.T) {
	whole := lab.InProtobuf(t, listOf(t, "", "a", "b"))
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter, next string)
		is     func(error) bool
	}{
		"a page is forbidden": {func(w http.ResponseWriter, next string) {
			if next == "" {
				_, _ = w.Write(lab.InProtobuf(t, listOf(t, "2", "a")))
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
		}, apierrors.IsForbidden},
		"the response ends early": {func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			_, _ = w.Write(whole[:len(whole)-10])
		}, func(err error) bool { return strings.Contains(err.Error(), "/api/v1/pods: ") }},
		"the list is cut":   {func(w http.ResponseWriter, _ string) { _, _ = w.Write(whole[:len(whole)-10]) }, func(err error) bool { return strings.Contains(err.Error(), "/api/v1/pods: ") }},
		"it is no object":   {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, "hello") }, func(err error) bool { return strings.Contains(err.Error(), "/api/v1/pods: ") }},
		"an object is none": {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, "k8s\x00\x12\x03\x12\x01\xff") }, func(err error) bool { return strings.Contains(err.Error(), "/api/v1/pods: ") }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := serverOf(t, tc.answer).EachMetadata(t.Context(), "/api/v1/pods", "", func(*metav1.ObjectMeta) {}); err == nil || !tc.is(err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
