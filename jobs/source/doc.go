// Package source builds a feed's request and reads its answer: a file or a few
// for each kind.
//
//	Page ─▶ Request ─▶ (fetch) ─▶ Read ─▶ Answer{Items, Next}
//	                                 └──▶ *AnswerError{Kind, Reason}
//
// A source is authoritative for what an answer means: which items it holds,
// whether another page follows, and, when it holds none, what kind of failure
// that is. It keeps no state: what a page needs to know of those before it
// travels in the cursor and in the request's Label. It trusts nothing that it
// reads: texts are bounded, only http and https links are kept, entities are
// not expanded, depth and number of items are capped.
//
// What an answer lacks is null, never zero or now: a missing count, a missing
// date.
package source
