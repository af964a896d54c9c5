// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/google/go-cmp/cmp"
)

func TestUsersOfAProxy(t *testing.T) {
	proxy := &Proxy{UserHeader: "kubeflow-userid", GroupsHeader: "X-Groups", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	type headers = http.Header
	for name, tc := range map[string]struct {
		from    string
		headers headers
		want    rest.ImpersonationConfig // empty if the request is refused
	}{
		"a user":                        {"192.0.2.7:1", headers{"Kubeflow-Userid": {"anna@example.com"}}, rest.ImpersonationConfig{UserName: "anna@example.com"}},
		"a user in groups":              {"[::ffff:192.0.2.7]:1", headers{"Kubeflow-Userid": {" anna "}, "X-Groups": {"a, b", "c"}}, rest.ImpersonationConfig{UserName: "anna", Groups: []string{"a", "b", "c"}}},
		"no header":                     {"192.0.2.7:1", headers{}, rest.ImpersonationConfig{}},
		"an empty header":               {"192.0.2.7:1", headers{"Kubeflow-Userid": {" "}}, rest.ImpersonationConfig{}},
		"two users":                     {"192.0.2.7:1", headers{"Kubeflow-Userid": {"anna", "admin"}}, rest.ImpersonationConfig{}},
		"a header from another address": {"198.51.100.1:1", headers{"Kubeflow-Userid": {"anna"}}, rest.ImpersonationConfig{}},
		"no address":                    {"@", headers{"Kubeflow-Userid": {"anna"}}, rest.ImpersonationConfig{}},
		"a component of Kubernetes":     {"192.0.2.7:1", headers{"Kubeflow-Userid": {"system:kube-controller-manager"}}, rest.ImpersonationConfig{}},
		"a group of Kubernetes":         {"192.0.2.7:1", headers{"Kubeflow-Userid": {"anna"}, "X-Groups": {"a,system:masters"}}, rest.ImpersonationConfig{}},
		"a line break":                  {"192.0.2.7:1", headers{"Kubeflow-Userid": {"anna\nImpersonate-Group: x"}}, rest.ImpersonationConfig{}},
		"a name that is not UTF-8":      {"192.0.2.7:1", headers{"Kubeflow-Userid": {"anna\xff"}}, rest.ImpersonationConfig{}},
		"a name that hides itself":      {"192.0.2.7:1", headers{"Kubeflow-Userid": {"\u202eanna"}}, rest.ImpersonationConfig{}},
		"a name that is too long":       {"192.0.2.7:1", headers{"Kubeflow-Userid": {strings.Repeat("a", 2000)}}, rest.ImpersonationConfig{}},
		"headers of Kubernetes itself":  {"192.0.2.7:1", headers{"Impersonate-User": {"admin"}}, rest.ImpersonationConfig{}},
		"another header of a platform":  {"192.0.2.7:1", headers{"X-Forwarded-User": {"admin"}}, rest.ImpersonationConfig{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr, r.Header = tc.from, tc.headers
			base := &rest.Config{BearerToken: "own"}
			user, config, err := proxy.Identify(r, base)
			if refused := tc.want.UserName == ""; (err != nil) != refused {
				t.Fatalf("error %v", err)
			} else if refused {
				return
			}
			if diff := cmp.Diff(tc.want, config.Impersonate); diff != "" || user != tc.want.UserName {
				t.Errorf("user %q; %s", user, diff)
			}
			if base.Impersonate.UserName != "" {
				t.Error("the next user gets these rights")
			}
		})
	}
}

func FuzzIdentify(f *testing.F) {
	f.Add("anna", "a,b", "192.0.2.7:1")
	f.Add("system:admin", "system:masters", "[::ffff:192.0.2.7]:1")
	f.Add("", ",", "x")
	proxy := &Proxy{UserHeader: "user", GroupsHeader: "groups", Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	f.Fuzz(func(t *testing.T, user, groups, from string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header = from, http.Header{"User": {user}, "Groups": {groups}}
		_, config, err := proxy.Identify(r, &rest.Config{})
		if err != nil {
			return
		}
		for _, name := range append([]string{config.Impersonate.UserName}, config.Impersonate.Groups...) {
			if name == "" || strings.HasPrefix(name, "system:") || strings.ContainsAny(name, "\r\n\x00") {
				t.Errorf("%q, %q gives %+v", user, groups, config.Impersonate)
			}
		}
		if !strings.Contains(from, "192.0.2.") && !strings.Contains(strings.ToLower(from), "c000:2") {
			t.Errorf("%q is trusted", from)
		}
	})
}

func TestAProxyNeedsAHeaderAndSomebodyToTrust(t *testing.T) {
	for name, tc := range map[string]struct {
		proxy Proxy
		want  string
	}{
		"no header":         {Proxy{Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, "header with the user is required"},
		"nobody to trust":   {Proxy{UserHeader: "user"}, "who may send the header"},
		"an invalid header": {Proxy{UserHeader: "a b:", Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, `"a b:"`},
	} {
		if err := tc.proxy.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
