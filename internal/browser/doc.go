// Package browser holds tests alone: it looks at every page as a person does,
// with Debian's Chromium, at a demo that runs as a process of its own.
//
// Each page is opened once and looked at in both themes and three widths: no
// error in the console, no scrolling to the side, nothing serious found by
// axe-core (npm's, of a pinned version and hash, kept in the user's cache). What
// was seen is left in build/screenshots. The actions are done by clicks, and the
// same facts are asked for with scripts switched off.
package browser
