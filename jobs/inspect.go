package jobs

import "context"

// inspect asks asynq's inspector, which takes no context, and waits no longer for
// its answer than ctx lasts. A question that is left behind ends by the client's
// own time limits.
func inspect[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	came := make(chan answer, 1)
	go func() {
		v, err := ask()
		came <- answer{v, err}
	}()
	select {
	case a := <-came:
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
