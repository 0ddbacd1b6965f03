package quota

import (
	"slices"
	"testing"
	"time"
)

func TestRepliesOfAnotherFormAreErrors(t *testing.T) {
	t.Parallel()
	c := Config{Name: "q", Windows: []Window{{Limit: 1, Per: time.Second}}}
	good := func() []any {
		return []any{int64(1000000), []any{int64(1), int64(5), int64(77), int64(0), int64(0), "", int64(9)}}
	}
	q := Request{ID: "a", Cost: 5}
	if ds, err := decisions(c, good(), q); err != nil || ds[0].Cost != 5 || ds[0].Windows[0].Used != 9 {
		t.Fatalf("%+v, %v", ds, err)
	}
	for what, spoil := range map[string]func([]any) []any{
		"empty":              func([]any) []any { return nil },
		"no answer":          func(r []any) []any { return r[:1] },
		"one answer more":    func(r []any) []any { return append(r, r[1]) },
		"answer is a number": func(r []any) []any { r[1] = int64(1); return r },
		"answer is short":    func(r []any) []any { r[1] = r[1].([]any)[:4]; return r },
		"answer is long":     func(r []any) []any { r[1] = append(r[1].([]any), int64(1)); return r },
		"text for a number":  func(r []any) []any { r[1].([]any)[0] = "1"; return r },
		"number for a text":  func(r []any) []any { r[1].([]any)[5] = int64(1); return r },
	} {
		if ds, err := decisions(c, spoil(good()), q); err == nil {
			t.Errorf("%s: %+v", what, ds)
		}
	}
	counters := make([]any, 20)
	for i := range counters {
		counters[i] = int64(0)
	}
	s := []any{int64(1), int64(0), int64(0), "", counters, int64(0), int64(0), int64(0), int64(0), int64(0), int64(1000000), int64(3)}
	if st, err := state(c, s); err != nil || st.Windows[0].Used != 3 {
		t.Fatalf("%+v, %v", st, err)
	}
	for what, bad := range map[string][]any{
		"short":           s[:8],
		"few counters":    slices.Concat(s[:4], []any{counters[:19]}, s[5:]),
		"many counters":   slices.Concat(s[:4], []any{append(counters[:20:20], int64(0))}, s[5:]),
		"half a waiter":   append(s[:len(s):len(s)], int64(1), "id"),
		"an odd class":    append(s[:len(s):len(s)], int64(3), "id", int64(1), int64(2), int64(3)),
		"a waiter's cost": append(s[:len(s):len(s)], int64(1), "id", "x", int64(2), int64(3)),
	} {
		if st, err := state(c, bad); err == nil {
			t.Errorf("%s: %+v", what, st)
		}
	}
}
