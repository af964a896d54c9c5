// SPDX-License-Identifier: Apache-2.0

package control

import "context"

// Leader is the leader election, for work that only one replica may do.
type Leader interface {
	Leading() bool
	// Changed returns a channel that is closed when Leading changes next; nil if never.
	Changed() <-chan struct{}
}

// WhileLeading runs lead each time this replica becomes the leader, with a context that
// ends when it stops leading or ctx ends. It returns after ctx has ended and lead has
// returned.
func WhileLeading(ctx context.Context, leader Leader, lead func(context.Context)) {
	for ctx.Err() == nil {
		changed := leader.Changed()
		if !leader.Leading() {
			select {
			case <-ctx.Done():
			case <-changed:
			}
			continue
		}
		leading, stop := context.WithCancel(ctx)
		go func() {
			defer stop()
			for leader.Leading() {
				changed := leader.Changed()
				if !leader.Leading() {
					return
				}
				select {
				case <-leading.Done():
					return
				case <-changed:
				}
			}
		}()
		lead(leading)
		stop()
	}
}
