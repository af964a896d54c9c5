// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/console/access"
	"github.com/sallyport-io/sallyport/cmd/internal/live/console/clusters"
)

// document requests a page as JSON.
func (w *world) document(t *testing.T, user, target string, want int) (document, string) {
	t.Helper()
	r := localRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept", "application/json")
	response, body := visitPage(t, w.options(user), r)
	if response.StatusCode != want || response.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("%s: status %d, %s:\n%s", target, response.StatusCode, response.Header.Get("Content-Type"), body)
	}
	var d document
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatalf("%s: %v in\n%s", target, err, body)
	}
	return d, body
}

// testDocuments requests each page as JSON: it has what the page shows, and no values.
func testDocuments(t *testing.T, w *world) {
	for target, want := range map[string]string{
		"/": `"checks":[`, "/poddefaults": `"namespace":"team-c"`, "/poddefaults?namespace=team-c": "credentials", "/pod?namespace=team-c": "web-0",
		"/pod?namespace=team-c&type=pod&name=web-0": "PodDefault team-c/credentials", "/who?kind=Secret": "user-gcp-sa", "/try": "data", "/rollouts": "[", "/drift": `"pods":`,
		"/exemptions": "data", "/webhooks": "Links", "/latency": "data", "/upgrade": `"check":`, "/search?text=web": `"name":"web-0"`,
	} {
		t.Run(target, func(t *testing.T) {
			d, body := w.document(t, "", target, http.StatusOK)
			has(t, body, want, "!hunter", "!<img")
			if d.Page != strings.Trim(strings.Split(target, "?")[0], "/") || d.Problem != nil {
				t.Errorf("%+v", d)
			}
		})
	}
	d, body := w.document(t, "stranger", "/pod?namespace=team-c&type=pod&name=web-0", http.StatusForbidden)
	if has(t, body, "You may not read this", "!credentials"); d.Problem == nil || d.Data != nil {
		t.Errorf("%+v", d)
	}
	if d, _ := w.document(t, "alice", "/drift", http.StatusOK); len(d.Hidden) == 0 || d.Data != nil {
		t.Errorf("%+v", d)
	}
}

func TestWhoGetsJSON(t *testing.T) {
	for accept, want := range map[string]bool{
		"application/json": true, "text/html,application/xhtml+xml,application/json;q=0.9": false, "application/json; charset=utf-8, */*": true, "*/*": false, "": false, ";;": false,
	} {
		r := localRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		if got := access.ForPrograms(r); got != want {
			t.Errorf("%q: %t", accept, got)
		}
	}
}

// TestAClusterIsOneOfTheList checks that only a local user chooses a cluster, and only one of the kubeconfig.
func TestAClusterIsOneOfTheList(t *testing.T) {
	o := unreachable()
	o.Clusters = []string{"here", "there"}
	var asked []string
	o.Connect = func(name string) (*rest.Config, string, error) {
		asked = append(asked, name)
		return nil, "", errors.New("the cluster is being moved")
	}
	response, body := visitPage(t, o, localRequest(http.MethodGet, "/?cluster=there", nil))
	if has(t, body, "the cluster is being moved", `<option selected>there</option>`, "cluster=there"); response.StatusCode != http.StatusBadRequest || len(asked) != 1 {
		t.Errorf("status %d, asked for %q", response.StatusCode, asked)
	}
	response, body = visitPage(t, o, localRequest(http.MethodGet, "/?cluster=elsewhere", nil))
	if has(t, body, "there is no cluster", "!cluster=elsewhere\""); response.StatusCode != http.StatusBadRequest || len(asked) != 1 {
		t.Errorf("status %d, asked for %q", response.StatusCode, asked)
	}
	handler := o.handler(func(_ *http.Request, base *rest.Config) (string, *rest.Config, error) { return "alice", base, nil })
	if body := recorded(handler, localRequest(http.MethodGet, "/?cluster=there", nil)).Body.String(); len(asked) != 1 || strings.Contains(body, "<option selected>") {
		t.Errorf("a user of a proxy chose a cluster: %q", asked)
	}
}

// TestClustersAreReadSideBySide has clusters that answer nothing, that are not there, and that no configuration is of.
func TestClustersAreReadSideBySide(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	o := unreachable()
	o.Clusters = []string{"silent", "silent-too", "gone", "broken"}
	o.Connect = func(name string) (*rest.Config, string, error) {
		switch name {
		case "broken":
			return nil, "", errors.New("its token is no file")
		case "gone":
			return &rest.Config{Host: "https://127.0.0.1:1"}, "", nil
		}
		return &rest.Config{Host: "http://" + silent.Addr().String()}, "", nil
	}
	began := time.Now()
	response, body := visitPage(t, o, localRequest(http.MethodGet, "/clusters", nil))
	has(t, body, "its token is no file", "it was not read within 10s", "127.0.0.1:1", `href="./?cluster=gone"`, ">All clusters</a>")
	if took := time.Since(began); response.StatusCode != http.StatusOK || took > 2*clusters.Patience {
		t.Errorf("status %d after %s", response.StatusCode, took)
	}
	o.Clusters = o.Clusters[:1]
	_, body = visitPage(t, o, localRequest(http.MethodGet, "/clusters", nil))
	has(t, body, "This console reads one cluster", "!>All clusters</a>")
}
