// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func selector(t *testing.T, text string) *metav1.LabelSelector {
	t.Helper()
	out, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTermsThatAreNotRecordedAreForeign(t *testing.T) {
	for name, tc := range map[string]struct {
		ours, there Webhook
		want        []string
	}{
		"nothing was added": {
			ours:  Webhook{NamespaceSelector: selector(t, "a notin (x,y),b=1")},
			there: Webhook{NamespaceSelector: selector(t, "b in (1),a notin (y,x)"), ObjectSelector: &metav1.LabelSelector{}},
		},
		"a label for a selector that the server leaves to others": {
			there: Webhook{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"never": "x"}}},
			want:  []string{"webhook w: objectSelector never=x"},
		},
		"a term beside ours, and a stricter one instead of ours": {
			ours:  Webhook{NamespaceSelector: selector(t, "a notin (x)")},
			there: Webhook{NamespaceSelector: selector(t, "a notin (x,y),!b")},
			want:  []string{"webhook w: namespaceSelector !b", "webhook w: namespaceSelector a notin (x,y)"},
		},
		"a match condition": {
			ours:  Webhook{MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "own"}}},
			there: Webhook{MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "own"}, {Name: "off", Expression: "false"}}},
			want:  []string{"webhook w: matchConditions off"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.ours.Name, tc.there.Name = "w", "w"
			of := metav1.ObjectMeta{Annotations: map[string]string{Annotation: Record([]Webhook{tc.ours})}}
			terms, known := Terms(of, []Webhook{tc.there, {Name: "of-another-client", ObjectSelector: selector(t, "c")}}, "sallyport")
			var got []string
			for _, term := range terms {
				got = append(got, term.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !known {
				t.Errorf("known: %t, terms (-want +got):\n%s", known, diff)
			}
			record, _ := Read(of.Annotations)
			stripped := record["w"].Strip(tc.there)
			if left, _ := Terms(of, []Webhook{stripped}, "sallyport"); len(left) > 0 {
				t.Errorf("left after stripping: %v", left)
			}
		})
	}
}

func TestWithoutARecordNoTermIsKnownToBeForeign(t *testing.T) {
	for _, value := range []string{"", "null", "[]", "{"} {
		of := metav1.ObjectMeta{Annotations: map[string]string{Annotation: value}}
		if terms, known := Terms(of, []Webhook{{Name: "w", ObjectSelector: selector(t, "a")}}, "sallyport"); known || terms != nil {
			t.Errorf("%q: %v", value, terms)
		}
	}
}

func TestManagersAreNamedWhoeverTheyClaimToBe(t *testing.T) {
	fields := &metav1.FieldsV1{}
	if err := fields.UnmarshalJSON([]byte(`{"f:webhooks":{"k:{\"name\":\"w\"}":{"f:objectSelector":{}}}}`)); err != nil {
		t.Fatal(err)
	}
	entry := func(manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: fields}
	}
	of := metav1.ObjectMeta{
		Annotations: map[string]string{Annotation: Record([]Webhook{{Name: "w"}})},
		ManagedFields: []metav1.ManagedFieldsEntry{
			entry("sallyport", metav1.ManagedFieldsOperationApply), entry("sallyport", metav1.ManagedFieldsOperationUpdate), entry("kubectl-patch", metav1.ManagedFieldsOperationUpdate),
		},
	}
	terms, _ := Terms(of, []Webhook{{Name: "w", ObjectSelector: selector(t, "a")}}, "sallyport")
	if len(terms) != 1 || terms[0].String() != "webhook w: objectSelector a (kubectl-patch, sallyport)" {
		t.Errorf("terms %v", terms)
	}
}
