package quota_test

import (
	"fmt"
	"time"

	"feedwarden/quota"
)

func exampleLedger() *quota.Ledger {
	ledger, err := quota.NewLedger(quota.Config{Name: "api", Windows: []quota.Window{{Limit: 4, Per: time.Minute}}})
	if err != nil {
		panic(err)
	}
	return ledger
}

// foresee is a charge of which an example only wants to know the answer.
func foresee(l *quota.Ledger, at time.Time, id string, cost int64) {
	d, err := l.Charge(at, quota.Request{ID: id, Cost: cost})
	if err != nil {
		panic(err)
	}
	fmt.Println(id, "granted:", d.Granted, "after", d.RetryAfter)
}

func ExampleNewLedger() {
	_, err := quota.NewLedger(quota.Config{Name: "api"})
	fmt.Println(err)
	// Output: quota: config "api": no window; give at least one limit and its length
}

func ExampleLedger_Charge() {
	ledger := exampleLedger()
	foresee(ledger, noon(), "a", 3)
	foresee(ledger, noon().Add(20*time.Second), "b", 3)
	foresee(ledger, noon().Add(time.Minute), "b", 3)
	// Output:
	// a granted: true after 0s
	// b granted: false after 40s
	// b granted: true after 0s
}

func ExampleLedger_Refund() {
	ledger := exampleLedger()
	foresee(ledger, noon(), "a", 3)
	fmt.Println(ledger.Refund(noon(), "a"), ledger.Refund(noon(), "a"))
	// Output:
	// a granted: true after 0s
	// 3 0
}

func ExampleLedger_Leave() {
	ledger := exampleLedger()
	foresee(ledger, noon(), "a", 3)
	foresee(ledger, noon(), "cancelled", 4)
	ledger.Leave("cancelled")
	foresee(ledger, noon(), "b", 1)
	// Output:
	// a granted: true after 0s
	// cancelled granted: false after 1m0s
	// b granted: true after 0s
}

func ExampleLedger_Block() {
	ledger := exampleLedger()
	ledger.Block(noon(), 30*time.Second)
	foresee(ledger, noon(), "a", 1)
	// Output: a granted: false after 30s
}

func ExampleLedger_Unblock() {
	ledger := exampleLedger()
	ledger.Block(noon(), time.Hour)
	ledger.Unblock()
	foresee(ledger, noon(), "a", 1)
	// Output: a granted: true after 0s
}

func ExampleLedger_Configure() {
	ledger := exampleLedger()
	foresee(ledger, noon(), "a", 3)
	if err := ledger.Configure(quota.Config{Name: "api", Windows: []quota.Window{{Limit: 6, Per: time.Minute}}}); err != nil {
		panic(err)
	}
	foresee(ledger, noon(), "b", 3)
	// Output:
	// a granted: true after 0s
	// b granted: true after 0s
}

func ExampleLedger_Windows() {
	ledger := exampleLedger()
	foresee(ledger, noon(), "a", 3)
	for _, at := range []time.Duration{0, time.Minute} {
		for _, w := range ledger.Windows(noon().Add(at)) {
			fmt.Println(w.Used, "of", w.Limit, "per", w.Per)
		}
	}
	// Output:
	// a granted: true after 0s
	// 3 of 4 per 1m0s
	// 0 of 4 per 1m0s
}

func ExampleLedger_Line() {
	ledger := exampleLedger()
	foresee(ledger, noon(), "a", 3)
	foresee(ledger, noon(), "b", 2)
	line, err := ledger.Line(noon(), quota.Scheduled)
	fmt.Println(line.Waiting, "wait for", line.Units, err)
	// Output:
	// a granted: true after 0s
	// b granted: false after 1m0s
	// 1 wait for 2 <nil>
}
