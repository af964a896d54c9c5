// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"fmt"
	"strconv"
	"strings"
)

// Pointer joins reference tokens to a JSON Pointer and escapes them (RFC 6901, section
// 3). Without tokens it names the whole document.
func Pointer(tokens ...string) string {
	buf := make([]byte, 0, 64)
	for _, token := range tokens {
		buf = appendToken(buf, token)
	}
	return string(buf)
}

// SplitPointer is the inverse of [Pointer]. It returns an error if a non-empty pointer
// does not begin with a slash, or if a tilde is followed by neither 0 nor 1.
func SplitPointer(pointer string) ([]string, error) {
	if err := checkPointer(pointer); err != nil || pointer == "" {
		return nil, err
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		if strings.Contains(token, "~") {
			// In this order, so that ~01 becomes ~1 and not a slash.
			tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		}
	}
	return tokens, nil
}

func checkPointer(pointer string) error {
	if pointer != "" && pointer[0] != '/' {
		return fmt.Errorf("pointer %q does not begin with a slash", pointer)
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return fmt.Errorf("pointer %q: a tilde must be followed by 0 or 1", pointer)
		}
	}
	return nil
}

func appendToken(buf []byte, token string) []byte {
	buf = append(buf, '/')
	if !strings.ContainsAny(token, "~/") {
		return append(buf, token...)
	}
	for i := range len(token) {
		switch c := token[i]; c {
		case '~':
			buf = append(buf, '~', '0')
		case '/':
			buf = append(buf, '~', '1')
		default:
			buf = append(buf, c)
		}
	}
	return buf
}

func itoa(index int) string { return strconv.Itoa(index) }
