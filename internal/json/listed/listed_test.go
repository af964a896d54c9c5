// SPDX-License-Identifier: Apache-2.0

package listed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sallyport-io/sallyport/test/lab"
)

func inJSON(t testing.TB, list *metav1.PartialObjectMetadataList) []byte {
	t.Helper()
	raw, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func listOf(names ...string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"}}
	for _, name := range names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"large": strings.Repeat(name, 1000)}}})
	}
	return list
}

// readListed decodes what [Each] visits.
func readListed(body []byte) (*metav1.PartialObjectMetadataList, error) {
	list := &metav1.PartialObjectMetadataList{}
	about, err := Each(iotest.OneByteReader(bytes.NewReader(body)), func(raw []byte, protobuf bool) error {
		var object metav1.PartialObjectMetadata
		list.Items = append(list.Items, object)
		last := &list.Items[len(list.Items)-1]
		if protobuf {
			return last.Unmarshal(raw)
		}
		return json.Unmarshal(raw, last)
	})
	list.ListMeta = about
	return list, err
}

func TestAListIsReadObjectByObject(t *testing.T) {
	for _, want := range []*metav1.PartialObjectMetadataList{listOf(), listOf("a"), listOf("a", "b", "c")} {
		for name, body := range map[string][]byte{"Protobuf": lab.InProtobuf(t, want), "JSON": inJSON(t, want)} {
			got, err := readListed(body)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s of %d objects: %v (-want +got):\n%s", name, len(want.Items), err, diff)
			}
			for cut := range len(body) {
				if _, err := readListed(body[:cut]); err == nil && (name == "JSON" || cut > len(protobufPrefix)+3) { // a message may end behind any field
					if name == "JSON" || len(want.Items) > 0 && cut > len(body)/2 && cut < len(body)-6 {
						t.Fatalf("%s that ends after %d of %d bytes is no error", name, cut, len(body))
					}
				}
			}
		}
	}
	// The metadata of a list may come last, and items may be null.
	got, err := readListed([]byte(`{"items":null,"other":{"items":[1]},"metadata":{"resourceVersion":"8"}}` + "\n"))
	if err != nil || got.ResourceVersion != "8" || len(got.Items) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWhatIsNoListIsAnError(t *testing.T) {
	for _, body := range []string{
		"", "hello", "[]", "1", `{"items":[1,]}`, `{"items":[{"a":1,"a":2}]}`, `{"items":[]}{}`, `{"items":[]`, `{"metadata":1}`,
		"k8s\x00\x12", "k8s\x00\x12\x03\x12\x7f", "k8s\x00\x12\xff\xff\xff\xff\xff\x7f", "k8s\x00\x0b", "k8s\x00\x12\x05\x12\x01", "k8s\x00\x0d\x01", "k8s\x00\x09\x01", "k8s\x00\x08",
	} {
		if got, err := readListed([]byte(body)); err == nil {
			t.Errorf("%q is read as %+v", body, got)
		}
	}
	stop := errors.New("stop")
	for _, body := range [][]byte{lab.InProtobuf(t, listOf("a", "b")), inJSON(t, listOf("a", "b"))} {
		visits := 0
		if _, err := Each(bytes.NewReader(body), func([]byte, bool) error { visits++; return stop }); !errors.Is(err, stop) || visits != 1 {
			t.Errorf("%d visits, error %v", visits, err)
		}
	}
}

// FuzzListed has no answer that ends the program, and finds as many objects as Kubernetes' own decoder.
func FuzzListed(f *testing.F) {
	f.Add(lab.InProtobuf(f, listOf("a", "b")))
	f.Add(inJSON(f, listOf("a", "b")))
	f.Add([]byte("k8s\x00\x12\x03\x12\x7f"))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := readListed(body)
		if err != nil {
			return
		}
		envelope, binary := bytes.CutPrefix(body, []byte(protobufPrefix))
		var unknown runtime.Unknown
		var want metav1.PartialObjectMetadataList
		if !binary || unknown.Unmarshal(envelope) != nil || want.Unmarshal(unknown.Raw) != nil {
			return
		}
		if len(got.Items) < len(want.Items) { // a message may have the list twice, which the last one replaces
			t.Errorf("%s, want %d objects", fmt.Sprint(len(got.Items)), len(want.Items))
		}
	})
}
