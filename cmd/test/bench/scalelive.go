// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
	"github.com/sallyport-io/sallyport/internal/hosting/freeport"
	"github.com/sallyport-io/sallyport/test/lab"
)

const (
	replicas = 3
	// changesPerSecond is how many PodDefaults others change while one is looked at.
	changesPerSecond = 100
	// conflictingEvery is of how many namespaces one has PodDefaults that conflict: its first sets another value
	// than all others.
	conflictingEvery = 10
)

// changed is how long a changed PodDefault takes to be in force in all replicas.
type changed struct {
	Samples        int     `json:"samples"`
	OtherChanges   int     `json:"otherChanges"`
	Seconds        float64 `json:"seconds"` // how long all was changed
	MedianMillis   float64 `json:"medianMillis"`
	Percentile99Ms float64 `json:"percentile99Millis"`
}

// conflicts is how long a leader takes to know all.
type conflicts struct {
	Objects int     `json:"objects"`
	Known   int     `json:"known"` // when it was given up, if these are fewer
	Seconds float64 `json:"seconds"`
}

// drifted is one `sallyport drift` over all pods.
type drifted struct {
	Pods       int     `json:"pods"`
	Seconds    float64 `json:"seconds"`
	PeakRSSMiB float64 `json:"peakRSSMiB"`
	Requests   int     `json:"requests"` // to the API server
}

// opened is how long pages of the console take.
type opened struct {
	FirstSeconds     float64 `json:"firstSeconds"`
	NamespaceSeconds float64 `json:"namespaceSeconds"`
}

// stormed is what others notice of replicas after the API server has restarted: the 99th percentile of reads.
type stormed struct {
	AloneMillis    float64 `json:"aloneMillis"`
	ReplicasMillis float64 `json:"replicasMillis"`
}

func (s stormed) ratio() float64 {
	if s.AloneMillis == 0 {
		return 0
	}
	return s.ReplicasMillis / s.AloneMillis
}

// conflictObjects is how many PodDefaults conflict with another one.
func (s scale) conflictObjects() (n int) {
	for i := range s.PodDefaults {
		if s.conflicts(i % s.Namespaces) {
			n++
		}
	}
	return n
}

func (s scale) conflicts(namespace int) bool {
	return namespace%conflictingEvery == 0 && s.PodDefaults > s.Namespaces
}

// awaitConflicts waits until a leader knows all conflicts, or the time is over.
func (s *site) awaitConflicts(ctx context.Context, want int, since time.Time, most time.Duration) (conflicts, error) {
	out := conflicts{Objects: want}
	for {
		text, err := lab.Get(ctx, http.DefaultClient, "http://"+s.leaderMetrics+"/metrics")
		if err != nil {
			return out, err
		}
		if out.Known, err = gauge(text, "sallyport_poddefaults_conflicting"); err != nil {
			return out, err
		}
		if out.Known >= want {
			out.Seconds = time.Since(since).Seconds()
			return out, nil
		}
		if time.Since(since) > most {
			return out, nil
		}
		if !lab.Sleep(ctx, 100*time.Millisecond) {
			return out, ctx.Err()
		}
	}
}

// gauge reads a metric without labels.
func gauge(text []byte, name string) (int, error) {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			n, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
			return int(n), err
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// withReplicas starts several servers, and stops them after use.
func (s *site) withReplicas(ctx context.Context, use func([]*server) error) error {
	var all []*server
	defer func() {
		for _, srv := range all {
			srv.stop()
		}
	}()
	for range replicas {
		srv, err := s.start(ctx, sallyportName)
		if err != nil {
			return err
		}
		all = append(all, srv)
	}
	return use(all)
}

// probeName is the PodDefault whose changes are looked for, and the label by which a pod asks for it.
const probeName = "scale-probe"

// measureChanges changes one PodDefault again and again, while others change, and asks each replica until it answers
// with the new value.
func (s *site) measureChanges(ctx context.Context, p schedule) (changed, error) {
	probe := &v1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: probeName}}
	probe.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{probeName: "true"}}
	if err := s.cp.objects.Create(ctx, probe); err != nil {
		return changed{}, err
	}
	body, err := podReview(namespace, map[string]string{probeName: "true"})
	if err != nil {
		return changed{}, err
	}
	out := changed{}
	err = s.withReplicas(ctx, func(all []*server) error {
		transport := &http.Transport{TLSClientConfig: s.trust(), MaxIdleConnsPerHost: 1}
		defer transport.CloseIdleConnections()
		asking := &http.Client{Transport: transport}
		var took []time.Duration
		group, changing := errgroup.WithContext(ctx)
		group.SetLimit(1 + 16)
		changing, stop := context.WithCancel(changing)
		defer stop()
		started := time.Now()
		group.Go(func() error {
			defer stop()
			for i := range p.Changes {
				value := "value-" + strconv.Itoa(i)
				if err := s.setEnv(ctx, namespace, probeName, value); err != nil {
					return err
				}
				written := time.Now()
				for _, srv := range all {
					if err := awaitValue(ctx, asking, srv.url+podDefaultPath, body, value); err != nil {
						return err
					}
				}
				took = append(took, time.Since(written))
				if !lab.Sleep(ctx, 200*time.Millisecond) {
					return ctx.Err()
				}
			}
			return nil
		})
		tick := time.NewTicker(time.Second / changesPerSecond)
		defer tick.Stop()
		for i := 0; changing.Err() == nil; i++ {
			select {
			case <-tick.C:
			case <-changing.Done():
				continue
			}
			n := i % p.Scale.PodDefaults
			group.Go(func() error {
				err := s.describe(ctx, scaleNamespace(n%p.Scale.Namespaces), fmt.Sprintf("team-%05d", n), strconv.Itoa(i))
				if changing.Err() != nil {
					return nil
				}
				return err
			})
			out.OtherChanges++
		}
		err := group.Wait()
		out.Seconds, out.Samples = time.Since(started).Seconds(), len(took)
		out.MedianMillis, out.Percentile99Ms = millis(percentile(took, 0.5)), millis(percentile(took, 0.99))
		return err
	})
	return out, err
}

func (s *site) setEnv(ctx context.Context, namespace, name, value string) error {
	return s.patch(ctx, namespace, name, map[string]any{"spec": map[string]any{"env": []any{map[string]any{"name": "PROBE", "value": value}}}})
}

// describe changes what is of no account to pods, but is a change to all who watch.
func (s *site) describe(ctx context.Context, namespace, name, value string) error {
	return s.patch(ctx, namespace, name, map[string]any{"spec": map[string]any{"desc": "change " + value}})
}

func (s *site) patch(ctx context.Context, namespace, name string, change map[string]any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	object := &v1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return s.cp.objects.Patch(ctx, object, client.RawPatch(types.MergePatchType, text))
}

// awaitValue sends a review until its patch has the value.
func awaitValue(ctx context.Context, client *http.Client, url string, body []byte, value string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		patch, err := patchOf(ctx, client, url, body)
		if err != nil || bytes.Contains(patch, []byte(strconv.Quote(value))) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a changed PodDefault is not in force after a minute: %s", patch)
		}
		if !lab.Sleep(ctx, 2*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// patchOf sends a review, and returns the patch of the answer.
func patchOf(ctx context.Context, client *http.Client, url string, body []byte) (_ []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	var answer struct {
		Response struct {
			Allowed bool   `json:"allowed"`
			Patch   string `json:"patch"`
		} `json:"response"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if !answer.Response.Allowed {
		return nil, fmt.Errorf("%s: a pod was refused", response.Status)
	}
	return base64.StdEncoding.DecodeString(answer.Response.Patch)
}

// measureDrift runs the command over all namespaces.
func (s *site) measureDrift(ctx context.Context) (drifted, error) {
	before, err := s.requests(ctx)
	if err != nil {
		return drifted{}, err
	}
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, s.sallyport, "drift", "--all-namespaces", "-o", "json", "--kubeconfig", s.cp.Kubeconfig) //nolint:gosec // the measured binary
	cmd.Stdout, cmd.Stderr = &out, &errOut
	started := time.Now()
	err = cmd.Run()
	took := time.Since(started)
	if found := new(exec.ExitError); errors.As(err, &found) && found.ExitCode() == 2 {
		err = nil // pods differ
	}
	if err != nil {
		return drifted{}, fmt.Errorf("drift: %w: %s", err, &errOut)
	}
	after, err := s.requests(ctx)
	if err != nil {
		return drifted{}, err
	}
	var counted struct {
		Pods int `json:"pods"`
	}
	err = json.Unmarshal(out.Bytes(), &counted)
	return drifted{Pods: counted.Pods, Seconds: took.Seconds(), PeakRSSMiB: mebibytes(endedRSS(cmd.ProcessState)), Requests: after - before}, err
}

// requests is how many the API server has answered, but for watches, which it counts when they end.
func (s *site) requests(ctx context.Context) (int, error) {
	text, err := s.cp.clients.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	all, errAll := sumMetric(text, "apiserver_request_total", "")
	watches, errWatches := sumMetric(text, "apiserver_request_total", `verb="WATCH"`)
	return all - watches, errors.Join(errAll, errWatches)
}

// measureConsole opens the first page, and that of a namespace, of a console that has just started.
func (s *site) measureConsole(ctx context.Context) (_ opened, err error) {
	port, err := freeport.Get()
	if err != nil {
		return opened{}, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	process, err := lab.Start(s.dir, lab.Program{Name: "console", Path: s.sallyport, Args: []string{
		"console", "--no-browser", "--port", strconv.Itoa(port), "--kubeconfig", s.cp.Kubeconfig,
	}})
	if err != nil {
		return opened{}, err
	}
	defer process.Kill()
	if err := process.Await(ctx, time.Minute, "the console to listen", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}); err != nil {
		return opened{}, err
	}
	page := func(path string) (float64, error) {
		started := time.Now()
		_, err := lab.Get(ctx, http.DefaultClient, "http://"+address+path)
		return time.Since(started).Seconds(), err
	}
	first, err := page("/")
	if err != nil {
		return opened{}, fmt.Errorf("the console's first page: %w", err)
	}
	ofNamespace, err := page("/poddefaults?namespace=" + scaleNamespace(0))
	if err != nil {
		return opened{}, fmt.Errorf("the console's page of a namespace: %w", err)
	}
	return opened{FirstSeconds: first, NamespaceSeconds: ofNamespace}, nil
}

// measureStorm restarts the API server twice, the second time with replicas that list everything anew, and reads
// something else all the while.
func (s *site) measureStorm(ctx context.Context, p schedule) (stormed, error) {
	restarted := func() (float64, error) {
		if err := s.cp.RestartAPIServer(ctx, syscall.SIGTERM); err != nil {
			return 0, err
		}
		return s.readOthers(ctx, p.Reads)
	}
	alone, err := restarted()
	if err != nil {
		return stormed{}, err
	}
	out := stormed{AloneMillis: alone}
	err = s.withReplicas(ctx, func([]*server) error {
		out.ReplicasMillis, err = restarted()
		return err
	})
	return out, err
}

// readOthers reads the service account of a namespace a hundred times a second, with a client that has no connection
// yet, and returns the 99th percentile.
func (s *site) readOthers(ctx context.Context, during time.Duration) (float64, error) {
	config := rest.CopyConfig(s.cp.config)
	config.QPS = -1
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var took []time.Duration
	group, reading := errgroup.WithContext(ctx)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(during); time.Now().Before(end) && reading.Err() == nil; {
		<-tick.C
		group.Go(func() error {
			started := time.Now()
			_, err := clients.CoreV1().ServiceAccounts(namespace).Get(reading, "default", metav1.GetOptions{})
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(started))
			return err
		})
	}
	err = group.Wait()
	return millis(percentile(took, 0.99)), err
}

func writeScaleLive(out *strings.Builder, s *scaled) {
	if c := s.Conflicts; c.Objects > 0 {
		known := fmt.Sprintf("%10.1f", c.Seconds)
		if c.Known < c.Objects {
			known = fmt.Sprintf("%10s", "not all")
		}
		fmt.Fprintf(out, "  %-44s %s\n", fmt.Sprintf("all conflicts of %s PodDefaults known", thousands(c.Objects)), known)
	}
	if c := s.Changes; c.Samples > 0 {
		fmt.Fprintf(out, "  %-44s %10s %13s\n", "", "median ms", "99 % ms")
		fmt.Fprintf(out, "  %-44s %10.0f %13.0f\n",
			fmt.Sprintf("a change in all of %d replicas, %.0f/s others", replicas, float64(c.OtherChanges)/c.Seconds), c.MedianMillis, c.Percentile99Ms)
	}
	if d := s.Drift; d.Pods > 0 {
		fmt.Fprintf(out, "  %-44s %10s %13s %10s\n", "", "s", "RSS MiB", "requests")
		fmt.Fprintf(out, "  %-44s %10.1f %13.0f %10d\n", fmt.Sprintf("drift of %s pods", thousands(d.Pods)), d.Seconds, d.PeakRSSMiB, d.Requests)
		fmt.Fprintf(out, "  %-44s %10s %13.0f\n", "a leader with them, the most of memory", "", s.LeaderWithPodsRSSMiB)
	}
	if o := s.Console; o.FirstSeconds > 0 {
		fmt.Fprintf(out, "  %-44s %10.2f\n  %-44s %10.2f\n", "the console's first page", o.FirstSeconds, "its page of a namespace", o.NamespaceSeconds)
	}
	if st := s.Storm; st.AloneMillis > 0 {
		fmt.Fprintf(out, "  %-44s %10s %13s %10s\n", "", "alone ms", "replicas ms", "×")
		fmt.Fprintf(out, "  %-44s %10.1f %13.1f %10.2f\n", "reads of others after a restart, 99 %", st.AloneMillis, st.ReplicasMillis, st.ratio())
	}
}
