// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sallyport-io/sallyport/api/kubeflow/v1alpha1"
)

// hostileKey is the label by which a hostile pod selects its PodDefault; the value is the
// name of the input.
const hostileKey = "hostile"

// A hostileInput is a PodDefault and a pod that is small beside what the two would become.
type hostileInput struct {
	name string
	spec v1alpha1.PodDefaultSpec // without the selector
	pod  []byte                  // JSON
	// says is part of the denial; or of the warning, if the pod is admitted without the
	// PodDefault because that one can never work.
	says     string
	admitted bool
}

// hostileInputs are those that took more than a gigabyte when the merge was not bounded.
func hostileInputs() ([]hostileInput, error) {
	values := make([]corev1.EnvVar, 20)
	for i := range values {
		values[i] = corev1.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat("x", 50<<10)}
	}
	inputs := []struct {
		hostileInput
		containers, terms int // of the pod
	}{
		{hostileInput{name: "containers", says: "more than 1000 containers",
			spec: v1alpha1.PodDefaultSpec{Env: []corev1.EnvVar{{Name: "TINY", Value: "1"}}}}, 150_000, 0},
		{hostileInput{name: "variables", says: "with it the pod would have more than 3 MiB",
			spec: v1alpha1.PodDefaultSpec{Env: values}}, 1000, 0},
		{hostileInput{name: "node-terms", says: "required node affinity would have more than 100 terms",
			spec: v1alpha1.PodDefaultSpec{Affinity: nodeTerms(100, "object")}}, 1, 2000},
	}
	out := make([]hostileInput, len(inputs))
	for i, input := range inputs {
		var pod bytes.Buffer
		fmt.Fprintf(&pod, `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"%s-","labels":{"%s":"%s"}},"spec":{`, input.name, hostileKey, input.name)
		if input.terms > 0 {
			affinity, err := json.Marshal(nodeTerms(input.terms, "pod"))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&pod, `"affinity":%s,`, affinity)
		}
		pod.WriteString(`"containers":[`)
		for n := range input.containers {
			if n > 0 {
				pod.WriteByte(',')
			}
			// As short as can be: 150,000 fit into what the API server reads.
			fmt.Fprintf(&pod, `{"name":"c%d"}`, n)
		}
		pod.WriteString("]}}")
		out[i] = input.hostileInput
		out[i].pod = pod.Bytes()
		if input.containers < 10 { // complete, so that nothing but the webhook stands in its way
			out[i].pod = bytes.Replace(out[i].pod, []byte(`"c0"`), []byte(`"c0","image":"registry.example.com/app:1"`), 1)
		}
	}
	return out, nil
}

func nodeTerms(n int, key string) *corev1.Affinity {
	terms := make([]corev1.NodeSelectorTerm, n)
	for i := range terms {
		terms[i].MatchExpressions = []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprint(i)}}}
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

// hostileMerge has callers send inputs whose merge would take all memory: strangers straight
// to the port, and tenants to the API server. Pods are created in another namespace
// meanwhile.
func hostileMerge(ctx context.Context, c *cluster, _ int, out *result) error {
	strangers, length := 4, 30*time.Second
	if c.settings.short {
		strangers, length = 2, 5*time.Second
	}
	inputs, err := hostileInputs()
	if err != nil {
		return err
	}
	hostile := c.namespace + "-tenant"
	if err := c.createNamespace(ctx, hostile); err != nil {
		return err
	}
	for _, input := range inputs {
		pd := &v1alpha1.PodDefault{ObjectMeta: metav1.ObjectMeta{Namespace: hostile, Name: input.name}, Spec: input.spec}
		pd.Spec.Selector.MatchLabels = map[string]string{hostileKey: input.name}
		if err := c.objects.Create(ctx, pd); err != nil {
			return err
		}
	}
	live, err := c.deployLimited(ctx)
	if err != nil {
		return err
	}
	stopWatching := c.watchReadiness(ctx, live)
	defer stopWatching()
	s, err := c.startStreamAt(ctx, "pod", typicalPodDefaults, quietRate)
	if err != nil {
		return err
	}
	attack, stop := context.WithTimeout(ctx, length)
	defer stop()
	var group sync.WaitGroup
	answers := newAnswers()
	stranger := &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(hoarderAddress)}}).DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the caller is the attacker here
	}}
	defer stranger.CloseIdleConnections()
	for _, input := range inputs {
		review, err := input.review(hostile)
		if err != nil {
			return err
		}
		url := fmt.Sprintf("https://%s:%d/apply-poddefault?timeout=10s", live[0].address, webhookPort)
		for range strangers {
			group.Go(func() {
				for attack.Err() == nil {
					answers.add(attack, input, "stranger", func(ctx context.Context) (answer, error) { return postReview(ctx, stranger, url, review) })
				}
			})
		}
		group.Go(func() {
			for attack.Err() == nil {
				answers.add(attack, input, "tenant", func(ctx context.Context) (answer, error) { return c.createRaw(ctx, hostile, input.pod) })
			}
		})
	}
	group.Wait()
	others := s.stop(ctx, out)
	out.requireNothingLost(others)
	live[0].checkMemory(out, memoryLimit)
	for _, input := range inputs {
		answers.judge(input, out)
	}
	out.notef("p99 of creates in the other namespace %s", percentile99(others.took).Round(time.Millisecond))
	if err := c.checkHostileStored(ctx, hostile, inputs, out); err != nil {
		return err
	}
	stopWatching()
	if err := c.clients.CoreV1().Pods(hostile).DeleteCollection(ctx, atOnce, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := c.objects.DeleteAllOf(ctx, &v1alpha1.PodDefault{}, client.InNamespace(hostile)); err != nil {
		return err
	}
	return c.withdraw(ctx, live)
}

// review is the input as the API server would send it, less what it defaults.
func (input hostileInput) review(namespace string) ([]byte, error) {
	review := newReview(namespace)
	review.Request.Object.Raw = input.pod
	return json.Marshal(review)
}

// checkHostileStored looks at each hostile pod that was stored: only such may be whose
// PodDefault can never work, of which their creators were warned.
func (c *cluster) checkHostileStored(ctx context.Context, namespace string, inputs []hostileInput, out *result) error {
	for _, input := range inputs {
		stored, err := c.clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: hostileKey + "=" + input.name})
		switch {
		case err != nil:
			return err
		case input.admitted:
			out.notef("%d pods stored whose creators were warned that the PodDefault can never work", len(stored.Items))
		case len(stored.Items) > 0:
			out.Uninjected += len(stored.Items)
			out.problemf("%s: %d pods were stored without their PodDefault", input.name, len(stored.Items))
		}
	}
	return nil
}

// An answer is what a caller was told.
type answer struct {
	admitted bool
	text     string // the reason, or the warnings
}

// errTurnedAway is an answer that is not a decision: the door was shut, for now or for such
// bodies.
var errTurnedAway = errors.New("rejected")

// postReview sends a review to the port.
func postReview(ctx context.Context, client *http.Client, url string, review []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, errors.Join(errTurnedAway, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return answer{}, errors.Join(errTurnedAway, err)
	}
	var reviewed admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &reviewed); err != nil {
		return answer{}, err
	}
	switch got := reviewed.Response; {
	case got == nil:
		return answer{}, errors.New("a review without a response")
	case got.Allowed:
		return answer{true, strings.Join(got.Warnings, "\n")}, nil
	case got.Result == nil:
		return answer{}, errors.New("a denial without a reason")
	default:
		return answer{false, got.Result.Message}, nil
	}
}

// createRaw creates a pod of that JSON.
func (c *cluster) createRaw(ctx context.Context, namespace string, pod []byte) (answer, error) {
	result := c.clients.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").
		SetHeader("Content-Type", "application/json").Body(pod).MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil {
		text := err.Error()
		if !strings.Contains(text, "denied the request") { // by a decision
			return answer{}, errors.Join(errTurnedAway, err)
		}
		return answer{false, text}, nil
	}
	var warnings []string
	for _, warning := range result.Warnings() {
		warnings = append(warnings, warning.Text)
	}
	return answer{true, strings.Join(warnings, "\n")}, nil
}

// answers are counted by input and caller.
type answers struct {
	mu         sync.Mutex
	decided    map[string]int
	turnedAway map[string]int
	wrong      map[string][]string
}

func newAnswers() *answers {
	return &answers{decided: map[string]int{}, turnedAway: map[string]int{}, wrong: map[string][]string{}}
}

// add asks once. What is still under way when the attack ends counts for nothing.
func (a *answers) add(attack context.Context, input hostileInput, who string, ask func(context.Context) (answer, error)) {
	ctx, cancel := context.WithTimeout(attack, createTimeout)
	defer cancel()
	got, err := ask(ctx)
	if attack.Err() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(err, errTurnedAway):
		a.turnedAway[input.name+who]++
	case err != nil:
		a.wrong[input.name] = append(a.wrong[input.name], who+": "+err.Error())
	case got.admitted != input.admitted, !strings.Contains(got.text, input.says):
		a.wrong[input.name] = append(a.wrong[input.name], fmt.Sprintf("%s: admitted is %t, with %.300q", who, got.admitted, got.text))
	default:
		a.decided[input.name+who]++
	}
}

// judge wants no answer that is wrong, and that the merge was come to at all.
func (a *answers) judge(input hostileInput, out *result) {
	if wrong := a.wrong[input.name]; len(wrong) > 0 {
		out.problemf("%s: %d answers are wrong, for example: %s", input.name, len(wrong), wrong[0])
	}
	if a.decided[input.name+"stranger"] == 0 {
		out.problemf("%s: no stranger has got as far as to a decision", input.name)
	}
	out.notef("%s: %d decisions for strangers (%d rejected), %d for tenants (%d)", input.name,
		a.decided[input.name+"stranger"], a.turnedAway[input.name+"stranger"], a.decided[input.name+"tenant"], a.turnedAway[input.name+"tenant"])
}
