//go:build race

package jobs

// paced says whether pace is judged. The race detector makes code several times
// as slow, and a crowd's pace is that of its code.
const paced = false
