// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sallyport-io/sallyport/cmd/internal/offline/inspect"
	"github.com/sallyport-io/sallyport/internal/kube/cluster"
	"github.com/sallyport-io/sallyport/internal/kube/privatepath"
)

// checkCallers checks whether the webhooks accept any caller, who could then read what their
// answers disclose. It sends an empty body without credentials.
func (d *doctor) checkCallers(ctx context.Context) {
	const check = "callers"
	var open *cluster.Webhook
	path := ""
	for i, w := range d.webhooks {
		at := pathOf(w.ClientConfig)
		if _, private := privatepath.Public(at); !private {
			open, path = &d.webhooks[i], at
			break
		}
	}
	switch {
	case len(d.webhooks) == 0:
		d.Skip(check, "no webhook is registered")
		return
	case open == nil:
		d.OK(check, "the paths are private: only callers that can read the webhook configurations know them")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, inspect.DialTimeout)
	defer cancel()
	status, err := d.askAnonymously(ctx, open.ClientConfig, path)
	switch {
	case err != nil && apierrors.IsForbidden(err):
		d.Skip(check, "no permission to create services/proxy in %s", open.ClientConfig.Service.Namespace)
	case err != nil:
		d.Skip(check, "whether callers must authenticate cannot be seen from here: %v", err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		d.OK(check, "callers must authenticate")
	case status >= http.StatusInternalServerError || status == http.StatusTooManyRequests:
		d.Skip(check, "the server is not ready yet")
	case open.ClientConfig.URL != nil && loopbackHost(d.url().Hostname()):
		d.OK(check, "callers need not authenticate, but only processes on the host of the API server reach the server")
	default:
		d.Fix(check, "restrict who may call, see docs/security.md; "+d.Serve+" --private-paths=Always needs nothing else once every replica runs this version",
			"any caller that reaches the port may call %s, whose answers disclose %s", open.Name, d.Discloses)
	}
}

// pathOf returns the path of a webhook.
func pathOf(c admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case c.Service != nil && c.Service.Path != nil:
		return *c.Service.Path
	case c.URL != nil:
		if u, err := url.Parse(*c.URL); err == nil {
			return u.Path
		}
	}
	return "/"
}

// askAnonymously posts an empty body and returns the status of the answer.
func (d *doctor) askAnonymously(ctx context.Context, at admissionregistrationv1.WebhookClientConfig, path string) (int, error) {
	if s := at.Service; s != nil {
		port := int32(443)
		if s.Port != nil {
			port = *s.Port
		}
		var status int
		result := d.Client.CoreV1().RESTClient().Post().Namespace(s.Namespace).Resource("services").SubResource("proxy").
			Name("https:" + s.Name + ":" + strconv.Itoa(int(port))).Suffix(path).Body([]byte{}).Do(ctx).StatusCode(&status)
		err := result.Error()
		if apierrors.IsForbidden(err) && isOfTheAPIServer(err) {
			return 0, err
		}
		// For a plain-text answer, which the server sends with a rejection, the client returns
		// the code only in the error.
		if answer := apierrors.APIStatus(nil); status == 0 && errors.As(err, &answer) {
			status = int(answer.Status().Code)
		}
		if status == 0 {
			return 0, err
		}
		return status, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, *at.URL, bytes.NewReader(nil))
	if err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: inspect.DialTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, // its certificate is looked at by another check
	}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// isOfTheAPIServer distinguishes an error of the API server itself from one that it proxies: it
// names the forbidden resource.
func isOfTheAPIServer(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Details != nil && status.Status().Details.Kind == "services" && len(status.Status().Details.Causes) == 0
}
