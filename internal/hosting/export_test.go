// SPDX-License-Identifier: Apache-2.0

package hosting

// Identity is what the leader writes into its lease. Tests that need an API server are
// outside of the package, which the package that starts one imports.
func (l *Leader) Identity() string { return l.settings.Lock.Identity() }
