// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"
)

func TestAppendBase64IsTheStandardEncoding(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for length := range 500 {
		src := make([]byte, length)
		for i := range src {
			src[i] = byte(random.UintN(256))
		}
		for _, room := range []int{0, 1000} { // the buffer grows, or has more than enough
			dst := append(make([]byte, 0, 1+room), 'x')
			if got, want := string(appendBase64(dst, src)), "x"+base64.StdEncoding.EncodeToString(src); got != want {
				t.Fatalf("%d bytes: got %s, want %s", length, got, want)
			}
		}
	}
}
