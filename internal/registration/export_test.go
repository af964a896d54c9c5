// SPDX-License-Identifier: Apache-2.0

package registration

// Exported for tests only.
var BuildConversions = buildConversions
