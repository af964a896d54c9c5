// SPDX-License-Identifier: Apache-2.0

package persistentvolumelabel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/sallyport-io/sallyport/admission"
	"github.com/sallyport-io/sallyport/internal/json/rawjson"
	"github.com/sallyport-io/sallyport/jsonpatch"
)

// How often the controller queries the cloud.
const (
	volumesPerSecond = 5
	volumesAtOnce    = 10
	firstRetry       = time.Second
	maxRetry         = 15 * time.Minute
)

// ControllerOptions configure a [Controller].
type ControllerOptions struct {
	Labeler  Labeler
	Settings Settings
	Metrics  *Metrics // may be nil
	Volumes  coreinformers.PersistentVolumeInformer
	Client   coreclient.PersistentVolumesGetter
	Recorder record.EventRecorder
	Logger   *slog.Logger
	// DryRun only reports what the controller would do, as events and in the log.
	DryRun bool
}

// Controller labels existing volumes without labels: those created while no webhook
// answered. It changes them as the webhook changes an update. Only one replica should
// run it.
type Controller struct {
	ControllerOptions
	handler *handler
	queue   workqueue.TypedRateLimitingInterface[string]
	synced  cache.InformerSynced
}

// NewController returns a controller. Start the informer afterwards, then
// [Controller.Run].
func NewController(o ControllerOptions) (*Controller, error) {
	if err := o.Settings.Validate(); err != nil {
		return nil, err
	}
	if o.Labeler == nil {
		return nil, errors.New("a labeler is required: the cloud provider")
	}
	c := &Controller{
		ControllerOptions: o,
		handler:           &handler{sources: o.Settings.Sources, lookups: newLookups(o.Labeler, o.Settings, o.Metrics)},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, maxRetry),
			&workqueue.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(volumesPerSecond, volumesAtOnce)},
		), workqueue.TypedRateLimitingQueueConfig[string]{Name: "persistentvolumelabel"}),
	}
	registered, err := o.Volumes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, now any) { c.enqueue(now) },
	})
	if err != nil {
		return nil, fmt.Errorf("follow persistent volumes: %w", err)
	}
	c.synced = registered.HasSynced
	return c, nil
}

// enqueue adds an incomplete volume to the queue.
func (c *Controller) enqueue(obj any) {
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		if _, v, err := c.read(pv); err == nil && v.source != "" && !v.deleting && !v.complete() && (v.exists() || v.trusted() != nil) {
			c.queue.AddRateLimited(pv.Name)
		}
	}
}

func (c *Controller) read(pv *corev1.PersistentVolume) (raw []byte, v volume, err error) {
	if raw, err = json.Marshal(pv); err != nil {
		return nil, v, err
	}
	v, ok := readVolume(raw, c.Settings.Sources)
	if !ok {
		return nil, v, errNotAVolume
	}
	return raw, v, nil
}

// Run labels volumes until the context ends.
func (c *Controller) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	c.Logger.Info("labelling persistent volumes that were missed", "dryRun", c.DryRun)
	for {
		name, end := c.queue.Get()
		if end {
			return
		}
		if err := c.sync(ctx, name); err != nil && ctx.Err() == nil {
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

// sync labels one volume. An error causes a retry.
func (c *Controller) sync(ctx context.Context, name string) error {
	pv, err := c.Volumes.Lister().Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	raw, v, err := c.read(pv)
	if err != nil || v.deleting || v.complete() {
		return nil
	}
	k, err := c.handler.ask(ctx, &v, raw)
	if err != nil {
		if _, busy := admission.RetryAfter(err); !busy {
			c.Recorder.Eventf(pv, corev1.EventTypeWarning, "LabelsUnknown", "The labels of its zone and region are not known: %v", err)
		}
		c.Logger.Warn("a persistent volume cannot be labelled", "volume", name, "error", err)
		return err
	}
	if k == nil {
		return nil
	}
	patch, ok := edit(&v, k.answer, isNull(v.affinity))
	if !ok || len(patch) == 0 {
		return nil
	}
	if c.DryRun {
		c.Recorder.Event(pv, corev1.EventTypeNormal, "WouldBeLabelled", "It would get the labels of its zone and region: the controller runs dry")
		c.Logger.Info("a persistent volume would be labelled", "volume", name, "from", k.from)
		return nil
	}
	// The volume may have changed in between.
	patch = append(jsonpatch.Patch{{Op: jsonpatch.Test, Path: "/metadata/resourceVersion", Value: rawjson.AppendString(nil, pv.ResourceVersion)}}, patch...)
	if _, err := c.Client.PersistentVolumes().Patch(ctx, name, types.JSONPatchType, patch.AppendJSON(nil), metav1.PatchOptions{FieldManager: "persistentvolumelabel"}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		c.Logger.Warn("a persistent volume cannot be labelled", "volume", name, "error", err)
		return err
	}
	c.Recorder.Event(pv, corev1.EventTypeNormal, "Labelled", "It has got the labels of its zone and region")
	c.Logger.Info("a persistent volume was labelled", "volume", name, "from", k.from)
	return nil
}
