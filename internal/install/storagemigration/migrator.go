// SPDX-License-Identifier: Apache-2.0

// Package storagemigration has Kubernetes rewrite the stored objects of a CustomResourceDefinition
// in its storage version, and take the other versions out of the definition's
// status.storedVersions: it creates a StorageVersionMigration (KEP-4192) whenever storedVersions
// names another version than the storage version, and reports how that ends.
//
// It keeps no state: the definition says whether a migration is needed, and the
// StorageVersionMigration how far it is. The next leader continues from there.
package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/sallyport-io/sallyport/internal/kube/crdclient"
	"github.com/sallyport-io/sallyport/internal/store/control"
)

const (
	fieldManager = "sallyport-storage-migration"
	// every is how often the definition is read, and untilServed how often where the API is not
	// served.
	every, untilServed = 10 * time.Second, time.Minute
	// settle is how long API servers have to learn of a new storage version before objects are
	// rewritten. No API tells when they have.
	settle = 10 * time.Second
	// A failed migration is repeated after firstRetry, and then after ever longer times.
	firstRetry, maxRetry = time.Minute, 30 * time.Minute
)

// Options are what a [Migrator] is made of. All but Converted are needed.
type Options struct {
	// CRD is the name of the definition, "plural.group".
	CRD string
	// Converted says that a webhook converts the objects: no migration begins before the
	// definition names one.
	Converted bool
	Client    *rest.Config
	Logger    *slog.Logger
	Metrics   prometheus.Registerer
	Leader    control.Leader // decides which of several replicas migrates
}

// Migrator migrates the objects of one definition. Make one with [New].
type Migrator struct {
	name        string
	resource    metav1.GroupResource
	converted   bool
	definitions crdclient.Interface
	metadata    metadata.Interface
	migrations  dynamic.ResourceInterface
	sink        eventsclient.EventsV1Interface
	events      events.EventRecorder // while it leads
	leader      control.Leader
	log         *slog.Logger
	metrics     *metrics
	detail      atomic.Pointer[string]
}

// New returns a migrator. It makes no call.
func New(o Options) (*Migrator, error) {
	if err := Validate(o.CRD); err != nil {
		return nil, err
	}
	definitions, err := crdclient.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	partial, err := metadata.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	migrations, err := dynamic.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	sink, err := eventsclient.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	plural, group, _ := strings.Cut(o.CRD, ".")
	m := &Migrator{
		name: o.CRD, resource: metav1.GroupResource{Group: group, Resource: plural}, converted: o.Converted,
		definitions: definitions, metadata: partial, migrations: migrations.Resource(migrationResource),
		sink: sink, leader: o.Leader, log: o.Logger.With("crd", o.CRD),
	}
	m.metrics, err = newMetrics(o.CRD, o.Metrics)
	return m, err
}

// Detail says in a few words what it waits for; empty for nothing.
func (m *Migrator) Detail() string {
	if detail := m.detail.Load(); detail != nil {
		return *detail
	}
	return ""
}

func (m *Migrator) say(detail string) { m.detail.Store(&detail) }

// Run migrates while this replica leads, until ctx ends.
func (m *Migrator) Run(ctx context.Context) error {
	frame := control.Frame{Leader: m.leader, Log: m.log}
	return frame.Run(ctx, func(ctx context.Context, term *control.Term) {
		recorder, stop := control.Events(ctx, fieldManager, m.sink, m.log)
		m.events = recorder
		var t turn
		term.Go(func() {
			control.Repeat(ctx, func() (again time.Duration) {
				err := m.look(ctx, &t)
				if err != nil && ctx.Err() == nil {
					m.tell(&t, err)
				}
				if errors.Is(err, errNotServed) {
					return untilServed
				}
				return every
			})
		})
		term.AtEnd(stop, m.metrics.clear, func() { m.say("") })
	})
}

// turn is what a leader remembers of the definition.
type turn struct {
	done string // the resourceVersion with which nothing was left to do
	// uid and storage are what is to be migrated, and until is when every API server knows it.
	uid       types.UID
	storage   string
	until     time.Time
	retry     time.Duration // after the next failure
	failed    types.UID     // the last migration that has failed
	told      string        // the last error
	reference *corev1.ObjectReference
}

// look takes the next step of a migration, if the definition asks for one.
func (m *Migrator) look(ctx context.Context, t *turn) error {
	// Definitions are large: a copy without schemas tells whether one has changed.
	brief, err := m.metadata.Resource(definitionResource).Get(ctx, m.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		*t = turn{}
		m.metrics.clear()
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the definition: %w", err)
	}
	if brief.ResourceVersion == t.done {
		return nil
	}
	// In this order, because a definition is pruned before its migration has ended.
	found, unread := m.get(ctx)
	crd, err := m.definitions.Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the definition: %w", err)
	}
	storage := storageVersion(crd)
	t.reference = &corev1.ObjectReference{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: crd.Name, UID: crd.UID, ResourceVersion: crd.ResourceVersion,
	}
	pruned := slices.Equal(crd.Status.StoredVersions, []string{storage})
	if pruned && unread == nil && (found == nil || found.ended() && found.is("Succeeded")) {
		if t.uid == crd.UID {
			m.log.Info("stored objects were migrated", "storageVersion", storage)
			m.events.Eventf(t.reference, nil, corev1.EventTypeNormal, "StorageMigrated", "Migrate", "All objects are stored as %s; status.storedVersions names no other version", storage)
		}
		*t = turn{done: crd.ResourceVersion}
		m.metrics.clear()
		m.say("")
		return nil
	}
	m.metrics.pending.Set(1)
	if t.uid != crd.UID || t.storage != storage {
		*t = turn{uid: crd.UID, storage: storage, until: time.Now().Add(settle), retry: firstRetry, reference: t.reference}
		m.log.Info("stored objects are to be migrated", "storageVersion", storage, "storedVersions", crd.Status.StoredVersions)
	}
	if m.converted && !converts(crd) {
		m.say("waits until the definition names the webhook that converts objects")
		return nil
	}
	if t.failed == "" && time.Now().Before(t.until) {
		m.say("waits until every API server stores " + storage)
		return nil
	}
	if unread != nil {
		return unread
	}
	if pruned && found.ended() {
		// Kubernetes 1.37 also prunes after a failure. Which versions were stored is not known any more.
		m.log.Warn("status.storedVersions names all versions again: a migration has failed, and the others were removed", "storageVersion", storage)
		return m.own(ctx, crd, versionsOf(crd))
	}
	return m.follow(ctx, t, crd, found)
}

// follow follows the migration that there is, if any, and creates another one where the last one
// has ended: it has failed, or the definition has changed meanwhile or since.
func (m *Migrator) follow(ctx context.Context, t *turn, crd *apiextensionsv1.CustomResourceDefinition, found *migration) error {
	running := fmt.Sprintf("%s %s is running", migrationKind, m.name)
	switch {
	case found == nil:
	case !found.ended():
		if err := found.stuck(time.Now()); err != nil {
			m.metrics.blocked.Set(1)
			return err
		}
		m.say(running)
		return nil
	case found.is("Failed"):
		if t.failed != found.UID {
			t.failed, t.until = found.UID, time.Now().Add(t.retry)
			t.retry = min(2*t.retry, maxRetry)
		}
		if time.Now().Before(t.until) {
			m.metrics.blocked.Set(1)
			// The message of the condition may repeat values of objects.
			return fmt.Errorf("%s %s has failed and is repeated later: its condition Failed says why (kubectl get storageversionmigration %[2]s -o yaml); %[3]s", migrationKind, m.name, howToFind)
		}
	}
	if err := m.create(ctx, crd, found); err != nil {
		if errors.Is(err, errNotServed) {
			m.metrics.blocked.Set(1)
		}
		return err
	}
	m.metrics.blocked.Set(0)
	t.told = ""
	m.log.Info("created a "+migrationKind, "name", m.name, "storageVersion", t.storage)
	m.say(running)
	return nil
}

// tell logs an error and records an event, once for each reason.
func (m *Migrator) tell(t *turn, err error) {
	m.say(err.Error())
	if err.Error() == t.told {
		return
	}
	t.told = err.Error()
	m.log.Warn("migrating stored objects", "error", err)
	if t.reference != nil {
		m.events.Eventf(t.reference, nil, corev1.EventTypeWarning, "StorageMigrationBlocked", "Migrate", "%s", shortened(err.Error(), 1000))
	}
}

// shortened cuts what does not fit into an event.
func shortened(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + "…"
}
