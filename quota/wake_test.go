package quota_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// sleeper is a job that asks, and when refused asks again at the first poll after its promise.
type sleeper struct {
	id    string
	asked int
	due   time.Time
	done  time.Time
}

// Four thousand jobs at once, looked after once a second, out of order among those due together.
func TestAJobWakesAboutOnce(t *testing.T) {
	t.Parallel()
	const jobs, limit = 4000, 1000
	d := open(t, window(limit, time.Minute))
	all := make([]*sleeper, jobs)
	for i := range all {
		all[i] = &sleeper{id: strconv.Itoa(i), due: epoch}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	left := jobs
	for sec := 0; left > 0; sec++ {
		if sec > 400 {
			t.Fatalf("%d jobs are left after %d s", left, sec)
		}
		d.hand.at(time.Duration(sec) * time.Second)
		now := d.hand.now()
		var due []*sleeper
		for _, s := range all {
			if s.done.IsZero() && !s.due.After(now) {
				due = append(due, s)
			}
		}
		if sec > 0 {
			rnd.Shuffle(len(due), func(i, k int) { due[i], due[k] = due[k], due[i] })
		}
		for _, s := range due {
			d.hand.add(50 * time.Microsecond)
			got := d.charge(s.id, 1)
			s.asked++
			if got.Granted {
				s.done = got.At
				left--
			} else {
				s.due = d.hand.now().Add(got.RetryAfter)
			}
		}
	}
	var sum int
	asked := make([]int, jobs)
	end := epoch
	for i, s := range all {
		sum += s.asked
		asked[i] = s.asked
		if s.done.After(end) {
			end = s.done
		}
	}
	slices.Sort(asked)
	mean, median, took := float64(sum)/jobs, asked[jobs/2], end.Sub(epoch)
	t.Logf("asked %.2f times a job on average, %d in the median, %d at most; all done in %s", mean, median, asked[jobs-1], took)
	if mean > 2.5 || median > 2 {
		t.Errorf("asked %.2f times a job on average, %d in the median; want 2.5 and 2 at most", mean, median)
	}
	if best := 3 * time.Minute; took > best+best/10 {
		t.Errorf("all done in %s; want within a tenth of %s", took, best)
	}
}
