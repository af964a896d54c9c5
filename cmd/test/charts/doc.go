// SPDX-License-Identifier: Apache-2.0

// Package charts lints what other projects install, rendered as their documentation says, and pins
// the findings. The charts and manifests are in their Go modules, which are downloaded.
package charts
