// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sallyport-io/sallyport/admission"
)

func disk(id string) *admissionv1.AdmissionRequest {
	return create([]byte(`{"metadata":{"name":"pv-` + id + `"},"spec":{"gcePersistentDisk":{"pdName":"` + id + `"}}}`))
}

func handlerOf(t *testing.T, labeler Labeler, change func(*Settings)) admission.Handler {
	t.Helper()
	settings := DefaultSettings()
	if change != nil {
		change(&settings)
	}
	webhooks, err := New(labeler, settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	return webhooks[0].Handler
}

var zoneA = map[string]string{corev1.LabelTopologyZone: "a"}

func TestQuestionsForOneVolumeShareOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		h := handlerOf(t, labelerFunc(func(_ context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
			calls.Add(1)
			time.Sleep(200 * time.Millisecond)
			return map[string]string{corev1.LabelTopologyZone: pv.Spec.GCEPersistentDisk.PDName}, nil
		}), nil)
		var group sync.WaitGroup
		for i := range 500 {
			group.Go(func() {
				resp, err := h.Handle(t.Context(), disk(fmt.Sprint("d", i%10)))
				if err != nil || len(resp.Patch) == 0 || !strings.Contains(string(resp.Patch.AppendJSON(nil)), fmt.Sprint("d", i%10)) {
					t.Errorf("%+v %v", resp, err)
				}
			})
		}
		group.Wait()
		if calls.Load() != 10 {
			t.Errorf("%d calls for 10 volumes", calls.Load())
		}
		time.Sleep(29 * time.Second)
		if _, err := h.Handle(t.Context(), disk("d1")); err != nil || calls.Load() != 10 {
			t.Errorf("the answer is not remembered: %v, %d calls", err, calls.Load())
		}
		time.Sleep(2 * time.Second)
		if _, err := h.Handle(t.Context(), disk("d1")); err != nil || calls.Load() != 11 {
			t.Errorf("the answer is remembered for too long: %v, %d calls", err, calls.Load())
		}
	})
}

func TestALabelThatIsAHintMakesAnotherQuestion(t *testing.T) {
	var calls atomic.Int32
	h := handlerOf(t, labelerFunc(func(_ context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
		calls.Add(1)
		return map[string]string{corev1.LabelTopologyZone: pv.Labels[corev1.LabelTopologyZone] + "x"}, nil
	}), nil)
	for _, zone := range []string{"a", "b", "a"} {
		req := create([]byte(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"` + zone + `"}},"spec":{"gcePersistentDisk":{"pdName":"d"}}}`))
		resp, err := h.Handle(t.Context(), req)
		if err != nil || !strings.Contains(string(resp.Patch.AppendJSON(nil)), zone+"x") {
			t.Errorf("zone %s: %+v %v", zone, resp, err)
		}
	}
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestErrorsOfTheCloudAreSharedAndNotRemembered(t *testing.T) {
	var calls atomic.Int32
	h := handlerOf(t, labelerFunc(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
		if calls.Add(1) == 1 {
			return nil, errors.New("not found")
		}
		return zoneA, nil
	}), nil)
	resp, err := h.Handle(t.Context(), disk("d"))
	if err != nil || resp.Allowed || resp.Status.Code != http.StatusForbidden || resp.Status.Reason != "Forbidden" ||
		resp.Status.Message != `persistentvolumes "pv-d" is forbidden: error querying GCE PD volume d: not found` {
		t.Errorf("%+v %v", resp.Status, err)
	}
	if resp, err := h.Handle(t.Context(), disk("d")); err != nil || !resp.Allowed || len(resp.Patch) == 0 {
		t.Errorf("%+v %v", resp, err)
	}
}

func TestAPanicOfTheCloudIsAFaultThatSaysWhere(t *testing.T) {
	h := handlerOf(t, labelerFunc(func(_ context.Context, pv *corev1.PersistentVolume) (map[string]string, error) {
		return nil, errors.New(pv.Spec.AWSElasticBlockStore.VolumeID) // there is none
	}), nil)
	for range 2 { // and the next one is asked too
		resp, err := h.Handle(t.Context(), disk("d"))
		if resp != nil || err == nil || !strings.Contains(err.Error(), "nil pointer") || !strings.Contains(err.Error(), "TestAPanicOfTheCloudIsAFaultThatSaysWhere") {
			t.Errorf("%+v %v", resp, err)
		}
	}
	h = handlerOf(t, labelerFunc(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) { panic("canary") }), nil)
	if _, err := h.Handle(t.Context(), disk("d")); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("the value of the panic is told: %v", err)
	}
}

func TestACloudThatIsSlowEndsWithTheCallOfTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		var calls atomic.Int32
		h := handlerOf(t, labelerFunc(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
			calls.Add(1)
			<-answer // whatever the context says
			return zoneA, nil
		}), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 9500*time.Millisecond)
		defer cancel()
		if resp, err := h.Handle(ctx, disk("d")); resp != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v %v", resp, err)
		}
		close(answer)
		synctest.Wait()
		// A retry finds the answer that came too late.
		if resp, err := h.Handle(t.Context(), disk("d")); err != nil || len(resp.Patch) == 0 || calls.Load() != 1 {
			t.Errorf("%+v %v, %d calls", resp, err, calls.Load())
		}
	})
}

func TestACloudThatHangsIsGivenUpAndTakesNoMoreThanItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		h := handlerOf(t, labelerFunc(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
			<-answer
			return zoneA, nil
		}), func(s *Settings) { s.CallSeconds, s.MaxCalls = 5, 2 })
		for range 2 {
			if resp, err := h.Handle(t.Context(), disk("d")); resp != nil || err == nil || !strings.Contains(err.Error(), "within 5s") {
				t.Errorf("%+v %v", resp, err)
			}
		}
		_, err := h.Handle(t.Context(), disk("d"))
		if _, passes := admission.RetryAfter(err); !passes || !strings.Contains(err.Error(), "2 calls to the cloud") {
			t.Errorf("a third call is begun: %v", err)
		}
		close(answer)
		synctest.Wait()
		if resp, err := h.Handle(t.Context(), disk("d")); err != nil || len(resp.Patch) == 0 {
			t.Errorf("the slots are not free again: %+v %v", resp, err)
		}
	})
}

func TestAnEndOfTheContextThatTheCloudReportsIsAFault(t *testing.T) {
	h := handlerOf(t, labelerFunc(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
		return nil, fmt.Errorf("get: %w", context.DeadlineExceeded)
	}), nil)
	if resp, err := h.Handle(t.Context(), disk("d")); resp != nil || err == nil {
		t.Errorf("%+v %v", resp, err)
	}
}

func TestOnlySoMuchIsRemembered(t *testing.T) {
	var calls atomic.Int32
	h := handlerOf(t, labelerFunc(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
		calls.Add(1)
		return zoneA, nil
	}), nil)
	for i := range maxRemembered + 1 {
		if _, err := h.Handle(t.Context(), disk(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	l := h.(*handler).lookups
	if len(l.calls) != maxRemembered || len(l.answered) != maxRemembered {
		t.Errorf("%d calls, %d answers", len(l.calls), len(l.answered))
	}
	if _, err := h.Handle(t.Context(), disk("0")); err != nil || calls.Load() != maxRemembered+2 {
		t.Errorf("the first is remembered: %d calls, %v", calls.Load(), err)
	}
}

func TestNothingIsRememberedIfThatIsWanted(t *testing.T) {
	var calls atomic.Int32
	h := handlerOf(t, labelerFunc(func(context.Context, *corev1.PersistentVolume) (map[string]string, error) {
		calls.Add(1)
		return zoneA, nil
	}), func(s *Settings) { s.RememberSeconds = 0 })
	for range 2 {
		if _, err := h.Handle(t.Context(), disk("d")); err != nil {
			t.Fatal(err)
		}
	}
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
}
