// SPDX-License-Identifier: Apache-2.0

// Package delegated asks the API server who may call a webhook, with Kubernetes' own
// machinery: client certificates of the cluster's client CA, bearer tokens by
// TokenReview, requests of the front proxy by its CA and headers, and then a
// SubjectAccessReview for the verb "post" on the path. It is separate from package
// serving because of its dependencies.
package delegated

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/sallyport-io/sallyport/serving"
)

// The values of Kubernetes' own delegating servers (k8s.io/apiserver,
// pkg/server/options, NewDelegatingAuthenticationOptions and
// NewDelegatingAuthorizationOptions).
const (
	cacheTTL      = 10 * time.Second
	reviewTimeout = 10 * time.Second

	configMapNamespace = "kube-system"
	configMapName      = "extension-apiserver-authentication"
	clientCAKey        = "client-ca-file"
)

// Verb is the verb that a caller needs on the path of a webhook as a nonResourceURL.
const Verb = "post"

// MetricsVerb is the verb that a caller needs on /metrics and other paths of that port.
const MetricsVerb = "get"

// Authenticator authenticates and authorizes callers. Create one with [New].
type Authenticator struct {
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
	// These watch the API server's ConfigMap.
	clientCA    *dynamiccertificates.ConfigMapCAController
	proxyCA     *dynamiccertificates.ConfigMapCAController
	proxyHeader *headerrequest.RequestHeaderAuthRequestController

	configMaps corev1client.ConfigMapInterface
	withoutCA  atomic.Bool
	known      func()
	asking     asking
}

// New returns an authenticator that uses the API server of the client. The client's
// user needs the ClusterRole system:auth-delegator, and the Role
// extension-apiserver-authentication-reader in kube-system.
func New(client kubernetes.Interface) (*Authenticator, error) {
	a := &Authenticator{configMaps: client.CoreV1().ConfigMaps(configMapNamespace), known: func() {}}
	var err error
	if a.clientCA, err = dynamiccertificates.NewDynamicCAFromConfigMapController(
		"client-ca", configMapNamespace, configMapName, clientCAKey, client); err != nil {
		return nil, fmt.Errorf("delegated authentication: %w", err)
	}
	if a.proxyCA, err = dynamiccertificates.NewDynamicCAFromConfigMapController(
		"front-proxy-ca", configMapNamespace, configMapName, "requestheader-client-ca-file", client); err != nil {
		return nil, fmt.Errorf("delegated authentication: %w", err)
	}
	a.proxyHeader = headerrequest.NewRequestHeaderAuthRequestController(configMapName, configMapNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")

	// The backoff of Kubernetes' own servers.
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
	if a.authenticator, _, err = (authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient:            client.AuthenticationV1(),
		TokenAccessReviewTimeout:           reviewTimeout,
		WebhookRetryBackoff:                backoff,
		CacheTTL:                           cacheTTL,
		ClientCertificateCAContentProvider: a.clientCA,
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			CAContentProvider:   a.proxyCA,
			UsernameHeaders:     headerrequest.StringSliceProviderFunc(a.proxyHeader.UsernameHeaders),
			UIDHeaders:          headerrequest.StringSliceProviderFunc(a.proxyHeader.UIDHeaders),
			GroupHeaders:        headerrequest.StringSliceProviderFunc(a.proxyHeader.GroupHeaders),
			ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(a.proxyHeader.ExtraHeaderPrefixes),
			AllowedClientNames:  headerrequest.StringSliceProviderFunc(a.proxyHeader.AllowedClientNames),
		},
	}).New(); err != nil {
		return nil, fmt.Errorf("delegated authentication: %w", err)
	}
	if a.authorizer, err = (authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             cacheTTL,
		DenyCacheTTL:              cacheTTL,
		WebhookRetryBackoff:       backoff,
	}).New(); err != nil {
		return nil, fmt.Errorf("delegated authorization: %w", err)
	}
	return a, nil
}

// Ready returns nil once the cluster's client CA is known, or known to be missing, so
// that only tokens remain.
func (a *Authenticator) Ready() error {
	if len(a.clientCA.CurrentCABundleContent()) > 0 || a.withoutCA.Load() {
		return nil
	}
	return fmt.Errorf("the ConfigMap %s/%s of the API server, which has its client CA, has not been read yet", configMapNamespace, configMapName)
}

// WhenKnown sets known to be called whenever Ready may have become nil. Call it before
// Run.
func (a *Authenticator) WhenKnown(known func()) {
	a.known = known
	a.clientCA.AddListener(listener(known))
}

// listener is a dynamiccertificates.Listener.
type listener func()

// Enqueue is called when a CA has changed.
func (l listener) Enqueue() { l() }

// Run watches the API server's ConfigMap until ctx ends.
func (a *Authenticator) Run(ctx context.Context) error {
	var group sync.WaitGroup
	for _, run := range []func(context.Context, int){a.clientCA.Run, a.proxyCA.Run, a.proxyHeader.Run} {
		group.Go(func() { run(ctx, 1) })
	}
	// The watch does not distinguish a ConfigMap without CA from one that has not been
	// read.
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		configMap, err := a.configMaps.Get(ctx, configMapName, metav1.GetOptions{})
		if err != nil {
			return false, nil
		}
		a.withoutCA.Store(configMap.Data[clientCAKey] == "")
		a.known()
		return true, nil
	})
	group.Wait()
	return nil
}

// cannotAsk reports whether authentication failed because the API server is
// unavailable.
func cannotAsk(err error) bool {
	if several, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		return slices.ContainsFunc(several.Errors(), cannotAsk)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError || status.Status().Code == http.StatusTooManyRequests
	}
	_, unreached := errors.AsType[*url.Error](err)
	return unreached || errors.Is(err, context.DeadlineExceeded)
}

// Authenticate is for serving.Options, for webhooks and for metrics. Unknown callers
// get [serving.ErrUnauthenticated], callers that may not use the method on the path
// [serving.ErrForbidden]. If the API server is unavailable, or too many callers send
// unknown tokens, the error is neither.
func (a *Authenticator) Authenticate(r *http.Request) error {
	token := shown(r)
	if err := a.asking.admit(token, r.RemoteAddr); err != nil {
		return err
	}
	who, ok, err := a.authenticator.AuthenticateRequest(r)
	if err != nil && cannotAsk(err) {
		return fmt.Errorf("ask the API server who calls: %w", err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", serving.ErrUnauthenticated, err)
	}
	if !ok {
		return serving.ErrUnauthenticated
	}
	verb := strings.ToLower(r.Method) // the verbs of nonResourceURLs
	decision, _, err := a.authorizer.Authorize(r.Context(), authorizer.AttributesRecord{
		User: who.User, Verb: verb, Path: r.URL.Path,
	})
	switch {
	case decision == authorizer.DecisionAllow:
		a.asking.allowed(token)
		return nil
	case err != nil:
		return fmt.Errorf("check a caller's permissions with the API server: %w", err)
	default:
		return fmt.Errorf("%w: user %q may not %s %s", serving.ErrForbidden, who.User.GetName(), verb, r.URL.Path)
	}
}
