// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
)

var (
	// ErrUnauthenticated means that the caller could not be authenticated: 401.
	ErrUnauthenticated = errors.New("the caller is not authenticated")
	// ErrForbidden means that the caller is authenticated but not authorized: 403.
	ErrForbidden = errors.New("the caller is not authorized")
)

// authenticate checks whether the caller may call. The reason is only logged, at debug
// level, since any caller can cause it.
func (s *Server) authenticate(r *http.Request, to *route) *refusal {
	if s.options.Authenticate == nil || to.Anonymous {
		return nil
	}
	s.connections.waitsFor(r.Context())
	defer s.connections.works(r.Context())
	return s.mayCall(s.options.Authenticate, r, to.Path)
}

// mayCall checks whether the caller of a request may access a path.
func (s *Server) mayCall(authenticate func(*http.Request) error, r *http.Request, path string) *refusal {
	err := authenticate(r)
	if err == nil {
		return nil
	}
	s.log.DebugContext(r.Context(), "caller refused", slog.String("path", path), slog.Any("error", err))
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return unauthenticated
	case errors.Is(err, ErrForbidden):
		return forbidden
	default:
		return notAsked
	}
}

// find returns the route of a path, or nil. With private paths, the last segment must be
// one of the route's current segments, which are compared in constant time.
func (s *Server) find(path string) *route {
	if s.options.PathSegments == nil {
		return s.routes.at(path)
	}
	if s.options.PlainPaths != nil {
		if to := s.routes.at(path); to != nil && s.options.PlainPaths() {
			return to
		}
	}
	slash := strings.LastIndexByte(path, '/')
	if slash <= 0 {
		return nil
	}
	to := s.routes.at(path[:slash])
	if to == nil {
		return nil
	}
	given, right := []byte(path[slash+1:]), 0
	for _, segment := range s.options.PathSegments(to.Path) {
		if segment != "" {
			right |= subtle.ConstantTimeCompare(given, []byte(segment))
		}
	}
	if right == 0 {
		return nil
	}
	return to
}

// withoutSegment returns the request as it would be without private paths, so that no
// handler sees the segment or logs it.
func (s *Server) withoutSegment(r *http.Request, to *route) *http.Request {
	if s.options.PathSegments == nil {
		return r
	}
	r = r.WithContext(r.Context())
	r.URL = &url.URL{Path: to.Path, RawQuery: r.URL.RawQuery}
	r.RequestURI = r.URL.RequestURI()
	return r
}

// The modes of authentication that every application has.
const (
	// AuthenticationNone accepts any caller.
	AuthenticationNone = "None"
	// AuthenticationClientCA accepts callers with a client certificate of a CA.
	AuthenticationClientCA = "ClientCA"
)

// AuthenticationSettings configure who may call the server. The API server presents the
// credentials that its AdmissionConfiguration names.
type AuthenticationSettings struct {
	// mode is the mode of authentication of callers of admission webhooks. With None any
	// caller is accepted, with ClientCA those with a client certificate signed by a given CA,
	// and with Delegated, if the application has it, those that the API server authenticates
	// and authorizes. An application adds modes with sallyport.WithAuthentication. Unless
	// mode is None, the API server's AdmissionConfiguration must name the credentials to
	// present. Default None.
	Mode string `json:"mode" flag:"authentication" value:"mode" group:"Callers"`
	// clientCAFile is the file with the PEM-encoded CA bundle that verifies client
	// certificates. It is reloaded when it changes. Required if mode is ClientCA.
	ClientCAFile string `json:"clientCAFile,omitempty" flag:"client-ca-file" with:"mode=ClientCA,required" value:"file" group:"Callers"`
	// clientCommonNames are the accepted common names of client certificates. If empty, any
	// certificate signed by the CA is accepted. Only used if mode is ClientCA.
	ClientCommonNames []string `json:"clientCommonNames" flag:"client-common-names" with:"mode=ClientCA" value:"names"`
	// metrics is the mode of authentication of readers of /metrics. Unless it is None, the
	// port serves TLS with the certificate of the webhooks, and probes still need no
	// credentials. The modes are those for callers without serving.AuthenticationClientCA.
	// Default None.
	Metrics string `json:"metrics" flag:"metrics-authentication" value:"mode" group:"Callers"`
	// privatePaths is the mode of private paths, which have an unguessable segment to protect
	// the webhooks where the API server cannot be configured to authenticate itself: Auto,
	// Always or Never. Auto uses them if all replicas share an authority and register
	// themselves, unless paths are already registered without the segment. Paths without it
	// are served until two minutes after the last one was registered. Default Never; Auto
	// for serve.
	PrivatePaths string `json:"privatePaths" flag:"private-paths" value:"mode" group:"Callers" enum:"Auto,Always,Never" optional:"Always"`
}
