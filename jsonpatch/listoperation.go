// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// bytesPerOperation is the length up to which a list is sent as a whole, per element
// that is added, moved or removed. See listOperation.
const bytesPerOperation = 512

// listOperation reports whether one operation with the whole list, originally so many
// bytes, is cheaper than one operation per element. BenchmarkListThreshold measures the
// time that the API server needs to read the answer and the patch, apply it to a 7 KB
// pod and write it into the audit log. In µs, with operations per element / for the
// list (minimum of 400 runs, two cores):
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
// An operation costs 3 µs and a byte sent again 1 to 4 ns, so the API server itself
// breaks even at 1 to 3 KB per operation. The limit is lower because the webhook also
// copies and encodes every such byte, TLS encrypts and decrypts it, and the audit log
// keeps it.
func listOperation(operations, before int) bool {
	return operations > 1 && before <= operations*bytesPerOperation
}
