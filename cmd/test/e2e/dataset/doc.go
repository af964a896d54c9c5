// SPDX-License-Identifier: Apache-2.0

// Package dataset tests the dataset webhook, as the sallyport command hosts it, with a
// real API server and a real scheduler. kwok plays the nodes, which are labelled as
// Fluid's controllers label them, and runs the pods.
package dataset
