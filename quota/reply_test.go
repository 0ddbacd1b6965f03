package quota

import (
	"slices"
	"testing"
	"time"
)

func TestRepliesOfAnotherFormAreErrors(t *testing.T) {
	t.Parallel()
	c := Config{Name: "q", Windows: []Window{{Limit: 1, Per: time.Second}}}
	pack := func(n ...int64) string { return string(packed(nil, n...)) }
	good := func() []any {
		return []any{pack(1000000), pack(5, 77, 9), []any{int64(5), int64(77), int64(1), int64(2), "window", int64(9)}}
	}
	q := Request{ID: "a", Cost: 5}
	if ds, err := decisions(c, good(), q, q); err != nil || ds[0].Cost != 5 || ds[0].Windows[0].Used != 9 || ds[1].Position != 2 {
		t.Fatalf("%+v, %v", ds, err)
	}
	if d, err := hotGrant(c, pack(5, 77, 1000000, 9), q); err != nil || !d.Granted || d.Cost != 5 || d.At.UnixMicro() != 77 || d.Windows[0].Used != 9 || d.Windows[0].Per != time.Second {
		t.Fatalf("%+v, %v", d, err)
	}
	for what, bad := range map[string]any{"a number": int64(1), "short": pack(1, 2, 3), "odd": pack(1, 2, 3, 4)[1:]} {
		if d, err := hotGrant(c, bad, q); err == nil {
			t.Errorf("%s: %+v", what, d)
		}
	}
	for what, spoil := range map[string]func([]any) []any{
		"empty":              func([]any) []any { return nil },
		"no answer":          func(r []any) []any { return r[:1] },
		"one answer less":    func(r []any) []any { return r[:2] },
		"one answer more":    func(r []any) []any { return append(r, r[1]) },
		"answer is a number": func(r []any) []any { r[1] = int64(1); return r },
		"grant is short":     func(r []any) []any { r[1] = pack(5, 77); return r },
		"grant is long":      func(r []any) []any { r[1] = pack(5, 77, 9, 9); return r },
		"no spans":           func(r []any) []any { r[0] = ""; return r },
		"spans are a number": func(r []any) []any { r[0] = int64(1); return r },
		"refusal is short":   func(r []any) []any { r[2] = r[2].([]any)[:5]; return r },
		"refusal is long":    func(r []any) []any { r[2] = append(r[2].([]any), int64(1)); return r },
		"text for a number":  func(r []any) []any { r[2].([]any)[0] = "1"; return r },
		"number for a text":  func(r []any) []any { r[2].([]any)[4] = int64(1); return r },
	} {
		if ds, err := decisions(c, spoil(good()), q, q); err == nil {
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
