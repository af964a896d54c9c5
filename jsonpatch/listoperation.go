// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// bytesPerOperation is how long a list may be, for each of its elements that is
// added, moved or removed, to be sent as a whole. See listOperation.
const bytesPerOperation = 512

// listOperation tells whether one operation that carries the whole list, of which
// so many bytes were there before, is cheaper than an operation for each element.
// BenchmarkListThreshold measures what the API server spends on reading the answer
// and the patch, applying it to a 7 KB pod and writing it into the audit log; in µs,
// with operations for each element / for the list (least of 400 runs, two cores):
//
//	elements before     +1         +2         +5        +10
//	  5 ×  60 B      223/222    219/216    237/222    260/234
//	 20 ×  60 B      257/255    269/264    287/276    298/268
//	100 ×  60 B      543/544    566/554    574/558    604/571
//	  5 × 150 B      180/174    188/184    206/196    244/223
//	 20 × 150 B      265/263    275/270    291/278    330/300
//	100 × 150 B      637/659    653/663    709/716    718/697
//	  5 × 800 B      238/241    275/272    341/320    465/414
//	 20 × 800 B      611/640    653/676    698/709    858/836
//	100 × 800 B    2571/2864  2642/2884  2764/2876  2870/2982
//
// An operation costs 3 µs, a byte that is sent again 1 to 4 ns: the API server
// itself breaks even at 1 to 3 KB an operation. The limit is lower because every
// such byte is also copied and encoded by the webhook, encrypted and decrypted,
// and kept in the audit log.
func listOperation(operations, before int) bool {
	return operations > 1 && before <= operations*bytesPerOperation
}
