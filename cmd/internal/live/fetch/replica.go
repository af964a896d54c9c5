// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sallyport-io/sallyport/cmd/internal/live/portforward"
	"github.com/sallyport-io/sallyport/cmd/internal/serve/recording"
	"github.com/sallyport-io/sallyport/internal/kube/manifest"
)

const (
	// answerTimeout limits one answer of a replica.
	answerTimeout = 30 * time.Second
	// maxAnswer limits its size, and is above what a server may keep in memory.
	maxAnswer = 80 << 20
	// minTokenLifetime is the shortest lifetime of a token that the API server accepts.
	minTokenLifetime = 10 * time.Minute
)

// replica is a server of the installation.
type replica struct{ name, url string }

// line is a recorded review with its line feed.
type line struct {
	time time.Time
	text []byte
}

// connect prepares the client: it verifies certificates as the API server does, and presents the
// credentials.
func (f *fetcher) connect(ctx context.Context) error {
	webhooks, err := f.Cluster.Webhooks(ctx, f.Configuration)
	if err != nil {
		return fmt.Errorf("read the webhook configurations %s: %w", f.Configuration, err)
	}
	if len(webhooks) == 0 && (len(f.Replicas) == 0 || len(f.CABundle) == 0) {
		return fmt.Errorf("there is no webhook configuration %s: name it by --configuration-name, or pass --replica and --ca-file", f.Configuration)
	}
	config := rest.CopyConfig(f.Cluster.Config)
	if f.ServiceAccount != "" {
		token, err := f.token(ctx)
		if err != nil {
			return err
		}
		config = rest.AnonymousClientConfig(config)
		config.BearerToken = token
	}
	config.Insecure, config.CAFile, config.CAData, config.ServerName = false, "", f.CABundle, ""
	for _, w := range webhooks {
		if len(config.CAData) == 0 {
			config.CAData = w.ClientConfig.CABundle
		}
		if s := w.ClientConfig.Service; s != nil {
			config.ServerName = s.Name + "." + s.Namespace + ".svc"
			f.namespace, f.service = s.Namespace, s.Name
		} else if w.ClientConfig.URL != nil && config.ServerName == "" {
			if u, err := url.Parse(*w.ClientConfig.URL); err == nil {
				config.ServerName = u.Hostname()
			}
		}
	}
	if len(f.Replicas) > 0 {
		f.service = ""
	} else {
		if f.service == "" {
			return errors.New("the server is reached by a URL: name the ports for metrics of its replicas by --replica")
		}
		forwarder := &portforward.Forwarder{Config: f.Cluster.Config, Client: f.Cluster.Client}
		config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // as for the API server
		config.Dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			pod, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return forwarder.DialPod(ctx, f.namespace, pod, int32(f.Port)) // it is that of a port
		}
	}
	config.Timeout = answerTimeout
	f.client, err = rest.HTTPClientFor(config)
	return err
}

// token requests a token of the service account.
func (f *fetcher) token(ctx context.Context) (string, error) {
	namespace, name, _ := strings.Cut(f.ServiceAccount, "/")
	seconds := int64(max(minTokenLifetime, f.For+answerTimeout).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	request, err := f.Cluster.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token of the service account %s: %w", f.ServiceAccount, err)
	}
	return request.Status.Token, nil
}

// replicas returns the servers to ask, at least one.
func (f *fetcher) replicas(ctx context.Context) ([]replica, error) {
	var out []replica
	for _, base := range f.Replicas {
		out = append(out, replica{base, strings.TrimRight(base, "/")})
	}
	if f.service == "" {
		return out, nil
	}
	ready, _, err := f.Cluster.Endpoints(ctx, f.namespace, f.service)
	if err != nil {
		return nil, fmt.Errorf("list the endpoints of Service %s/%s: %w", f.namespace, f.service, err)
	}
	for _, e := range ready {
		if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
			out = append(out, replica{e.TargetRef.Name, "https://" + e.TargetRef.Name})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no ready endpoint of Service %s/%s is a pod", f.namespace, f.service)
	}
	return out, nil
}

// ask returns what a replica has recorded since it was last asked.
func (f *fetcher) ask(ctx context.Context, of replica) ([]line, error) {
	query := url.Values{recording.AfterParameter: {f.cursors[of.name]}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, of.url+recording.RecentPath+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := f.client.Do(request)
	if err != nil {
		if apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("%w; or pass --replica", err)
		}
		return nil, unreached(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, refused(response.StatusCode, body)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	lines, err := parse(body)
	if err != nil {
		return nil, err
	}
	if missed, err := strconv.Atoi(response.Header.Get(recording.MissedHeader)); err == nil && missed > 0 && f.cursors[of.name] != "" {
		manifest.Note(f.Notes, "%s: %d reviews left the memory before they were read: raise recording.recentReviews and recentMegabytes, or lower samplingRatePerMillion", of.name, missed)
	}
	f.cursors[of.name] = response.Header.Get(recording.CursorHeader)
	return lines, nil
}

// unreached adds a remedy to an error of the connection.
func unreached(err error) error {
	if strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return errors.New("the port speaks plain HTTP: set authentication.metrics to Delegated and recording.recentReviews in the server's configuration")
	}
	return err
}

// refused explains a status.
func refused(status int, body []byte) error {
	switch status {
	case http.StatusUnauthorized:
		return errors.New("the server does not know you: its API server accepts neither a client certificate nor a token of yours; see --as-service-account")
	case http.StatusForbidden:
		return fmt.Errorf("you may not read the recent reviews: bind the ClusterRole that ends in -recorded-reviews-reader, or one with nonResourceURLs: [%s] and verbs: [get]", recording.RecentPath)
	case http.StatusNotFound:
		return errors.New("the server keeps no reviews in memory: set recording.recentReviews in its configuration, and restart it")
	}
	const limit = 200
	return fmt.Errorf("status %d: %s", status, bytes.TrimSpace(body[:min(len(body), limit)]))
}

// parse splits an answer into its lines.
func parse(body []byte) ([]line, error) {
	var out []line
	for text := range bytes.Lines(body) {
		var review struct {
			Time metav1.MicroTime `json:"time"`
		}
		if err := json.Unmarshal(text, &review); err != nil || review.Time.IsZero() {
			return nil, errors.New("the answer is not a list of recorded reviews: see whether --metrics-port or --replica is right")
		}
		if text[len(text)-1] != '\n' {
			return nil, errors.New("the answer ends within a review: try again")
		}
		out = append(out, line{review.Time.Time, text})
	}
	return out, nil
}
