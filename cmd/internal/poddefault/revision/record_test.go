// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1alpha1 "github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	sallyportv1alpha1 "github.com/sallyport-io/sallyport/api/sallyport/v1alpha1"
)

const meaning = `{"env":[{"name":"A","value":"1"}],"selector":{}}`

func ownedBy(kind string) *metav1.OwnerReference {
	ref := &metav1.OwnerReference{APIVersion: kubeflowv1alpha1.GroupVersion.String(), Kind: kind, Name: "proxy", UID: "1", Controller: new(true)}
	if kind == sallyportv1alpha1.ClusterPodDefaultKind {
		ref.APIVersion = sallyportv1alpha1.GroupVersion.String()
	}
	return ref
}

func TestWhatARevisionMustBeToBeUsed(t *testing.T) {
	name := NameOf([]byte(meaning))
	for what, c := range map[string]struct {
		change func(o *Object)
		want   string // in the problem; empty for none
	}{
		"as it was written":                    {func(*Object) {}, ""},
		"as the API server orders its members": {func(o *Object) { o.Spec.Raw = []byte(`{"selector": {}, "env": [{"value":"1","name":"A"}]}`) }, ""},
		"a name that the API server has made":  {func(o *Object) { o.Name += "-x7k2p" }, ""},
		"an older version of the owner's kind": {func(o *Object) { o.OwnerReferences[0].APIVersion = "kubeflow.org/v1" }, ""},
		"other content":                        {func(o *Object) { o.Spec.Raw = []byte(`{"selector":{}}`) }, "its spec is that of revision "},
		"more content": {func(o *Object) {
			o.Spec.Raw = []byte(strings.Replace(meaning, "{", `{"serviceAccountName":"admin",`, 1))
		}, "its spec is that of revision "},
		"no content":                         {func(o *Object) { o.Spec.Raw = nil }, "its spec is not valid JSON"},
		"a member twice":                     {func(o *Object) { o.Spec.Raw = []byte(`{"selector":{},"selector":{}}`) }, "its spec is not valid JSON"},
		"the first digits of the name alone": {func(o *Object) { o.Labels[Label], o.Name = name[:10], "proxy-"+name[:10] }, "is not the name of a revision"},
		"another name with the same beginning": {func(o *Object) {
			o.Labels[Label] = name[:10] + strings.Repeat("0", Size-10)
			o.Name = "proxy-" + o.Labels[Label]
		}, "its spec is that of revision "},
		"an object of another name":               {func(o *Object) { o.Name = "proxy-" + strings.Repeat("0", Size) }, "it is not named proxy-" + name},
		"a longer suffix":                         {func(o *Object) { o.Name += "-another" }, "it is not named proxy-" + name},
		"no owner":                                {func(o *Object) { o.OwnerReferences = nil }, "no PodDefault owns it"},
		"an owner that is not the controller":     {func(o *Object) { o.OwnerReferences[0].Controller = nil }, "no PodDefault owns it"},
		"an owner of another kind":                {func(o *Object) { o.OwnerReferences[0].Kind = "Deployment" }, "no PodDefault owns it"},
		"an owner of the cluster, in a namespace": {func(o *Object) { o.OwnerReferences[0] = *ownedBy("ClusterPodDefault") }, "no PodDefault owns it"},
		"an owner in a namespace, of the cluster": {func(o *Object) { o.Namespace = "" }, "no ClusterPodDefault owns it"},
		"number 0":                    {func(o *Object) { o.Revision = 0 }, "its number is out of range"},
		"a number without a next one": {func(o *Object) { o.Revision = 1 << 62 }, "its number is out of range"},
	} {
		o := New(ownedBy("PodDefault"), "team-a", []byte(meaning), 3)
		c.change(o)
		switch r := Prove(o); {
		case c.want == "" && (r.Problem != nil || r.Name != name || string(r.Meaning) != meaning || r.Owner != Owner{"team-a", "1"} || r.OwnerName != "proxy"):
			t.Errorf("%s: %+v", what, r)
		case c.want != "" && (r.Problem == nil || !strings.Contains(r.Problem.Error(), c.want) || r.Meaning != nil || r.Name != "" || r.Stable):
			t.Errorf("%s: %+v, want %q", what, r, c.want)
		}
	}
}

// A UID is that of an object wherever it is: what another namespace says of it does not count.
func TestARevisionIsOfTheObjectInItsNamespace(t *testing.T) {
	set := &Set{}
	for _, namespace := range []string{"team-a", "team-b"} {
		o := New(ownedBy("PodDefault"), namespace, []byte(meaning), 3)
		o.Labels[StableLabel] = "true"
		set.Add(Prove(o))
	}
	if set.Stable(Owner{"team-a", "1"}) == nil || set.Stable(Owner{"team-b", "1"}) == nil {
		t.Error("a revision is not known")
	}
	for _, other := range []Owner{{"", "1"}, {"team-c", "1"}, {"team-a", "2"}} {
		if r := set.Stable(other); r != nil {
			t.Errorf("%+v has %s", other, r)
		}
	}
}

func TestTheOrderOfRevisionsIsDecidedWhateverTheyAre(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_000_000, 0))
	record := func(suffix string, number, created int64) *Record {
		o := New(ownedBy("PodDefault"), "team-a", []byte(meaning), number)
		o.Name += suffix
		o.CreationTimestamp = metav1.NewTime(at.Add(time.Duration(created) * time.Second))
		o.Labels[StableLabel] = "true"
		return Prove(o)
	}
	want := []*Record{record("-00001", 9, 0), record("-00002", 5, 3), record("-00003", 5, 1), record("-00004", 5, 1), record("", 1, 9)}
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}} {
		var all []*Record
		for _, i := range order {
			all = append(all, want[i])
		}
		got, refused := Of(Owner{"team-a", "1"}, all)
		if len(refused) > 0 || len(got) != len(want) || StableAmong(got) != want[0] {
			t.Fatalf("got %v, refused %v", got, refused)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%v: at %d is %s", order, i, got[i])
			}
		}
	}
}

func TestLongNamesOfOwners(t *testing.T) {
	owner := ownedBy("ClusterPodDefault")
	owner.Name = strings.Repeat("x", 253)
	o := New(owner, "", []byte(meaning), 1)
	if len(o.Name) > 253-1-generatedSuffix || len(o.Labels[OwnerLabel]) > 63 {
		t.Errorf("%d characters of a name, %d of a label", len(o.Name), len(o.Labels[OwnerLabel]))
	}
	if r := Prove(o); r.Problem != nil {
		t.Error(r.Problem)
	}
	other := *owner
	other.Name = strings.Repeat("x", 252) + "y"
	if again := New(&other, "", []byte(meaning), 1); again.Name == o.Name {
		t.Error("two owners have the same name of a revision")
	}
}

// FuzzProve checks that whatever is used has the content that its name says, and is proven again.
func FuzzProve(f *testing.F) {
	f.Add([]byte(meaning), NameOf([]byte(meaning)), "proxy", int64(1))
	f.Add([]byte(`{}`), "0123456789", "proxy-x", int64(-1))
	f.Fuzz(func(t *testing.T, spec []byte, name, owner string, number int64) {
		ref := ownedBy("PodDefault")
		ref.Name = owner
		o := New(ref, "team-a", spec, number)
		o.Labels[Label] = name
		r := Prove(o)
		if r.Problem != nil {
			return
		}
		if NameOf(r.Meaning) != name || r.Name != name || r.Number != number {
			t.Fatalf("%+v", r)
		}
		if again := Prove(New(ref, "team-a", r.Meaning, number)); again.Problem != nil || again.Name != name {
			t.Fatalf("again: %+v", again)
		}
	})
}
