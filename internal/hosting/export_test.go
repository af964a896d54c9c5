// SPDX-License-Identifier: Apache-2.0

package hosting

// Identity returns the leader's identity in its lease. Tests that need an API server are in an
// external package, because the package that starts one imports this package.
func (l *Leader) Identity() string { return l.settings.Lock.Identity() }
