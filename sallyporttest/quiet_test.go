// SPDX-License-Identifier: Apache-2.0

package sallyporttest

import (
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	controllerlog "sigs.k8s.io/controller-runtime/pkg/log"
)

func TestControllerRuntimeDoesNotComplainThatNoLoggerWasSet(t *testing.T) {
	if quietAfter >= 30*time.Second {
		t.Errorf("controller-runtime complains after 30 s, before %s", quietAfter)
	}
	discardLog()
	written := false
	controllerlog.SetLogger(funcr.New(func(string, string) { written = true }, funcr.Options{}))
	controllerlog.Log.Info("a line")
	if written {
		t.Error("no logger was set")
	}
}
