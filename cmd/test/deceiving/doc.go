// SPDX-License-Identifier: Apache-2.0

// Package deceiving asks the commands about objects that were made to deceive them, and compares
// what they say with what the API server does.
package deceiving
