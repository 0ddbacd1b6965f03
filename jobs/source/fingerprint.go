package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// readingRevision is raised when a reader comes to make other items of the
// same bytes, so that a target's "not modified" does not keep the old ones.
const readingRevision = 3

// Fingerprint tells what is asked and how the answer is read: while it is the
// same, a target that says "not modified" speaks of what was read. It is no
// secret, whatever the URL and the headers hold; nor does the key change it.
func (c Config) Fingerprint() string {
	// Texts and numbers alone: this cannot fail.
	text, _ := json.Marshal([]any{
		readingRevision, c.Kind, c.URL, c.BaseURL, c.Method, c.Params, c.Headers,
		c.Pages, c.Items, c.Map, c.Paging, c.Next, c.Ban, c.MaxItems,
	})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}
