// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sallyporttest

func memory() (folder string, ok bool) { return "", false }
