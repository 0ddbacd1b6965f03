package scheduler

// item is a schedule as a running dispatcher holds it. While it is being
// worked on it is in no heap, and belongs to the worker.
type item struct {
	plan  *planned
	last  int64 // every tick up to this instant is settled, as far as we know; Unix ms
	fire  int64 // when the first tick after last is due
	look  int64 // when to look at it next; it is fire, or later
	since int64 // when this dispatcher took it up
	index int   // place in the heap; -1 while it is worked on
	gone  bool  // it is no longer configured
	next  *planned
}

// aim works out when the first tick after last is due.
func (it *item) aim() {
	it.fire = never
	if instant, ok := it.plan.after(it.last); ok {
		it.fire = it.plan.fireAt(instant)
	}
	it.look = it.fire
}

// never is later than every tick.
const never = 1 << 62

// agenda is a heap of items, the next to look at on top.
type agenda []*item

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].look < a[j].look }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

// Push is for container/heap.
func (a *agenda) Push(x any) {
	it := x.(*item)
	it.index = len(*a)
	*a = append(*a, it)
}

// Pop is for container/heap.
func (a *agenda) Pop() any {
	old := *a
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	it.index = -1
	return it
}
