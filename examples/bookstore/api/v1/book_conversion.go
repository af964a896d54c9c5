// SPDX-License-Identifier: Apache-2.0

package v1

// Hub makes this version the one that the others convert to and from.
func (*Book) Hub() {}

// Author is the first author, for versions that have only one.
func (s *BookSpec) Author() string {
	if len(s.Authors) == 0 {
		return ""
	}
	return s.Authors[0]
}

// AuthorsToStash are those that cannot be restored from the first one.
func (s *BookSpec) AuthorsToStash() []string {
	if len(s.Authors) == 1 && s.Authors[0] != "" {
		return nil
	}
	return s.Authors
}

// SetAuthor takes the author of a version that has only one. The stashed authors are restored
// unless the author was edited in that version.
func (s *BookSpec) SetAuthor(author string, stashed []string) {
	switch {
	case len(stashed) > 0 && stashed[0] == author:
		s.Authors = stashed
	case author != "":
		s.Authors = []string{author}
	}
}
