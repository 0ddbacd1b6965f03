package scheduler_test

import (
	"errors"
	"fmt"
	"time"

	"feedwarden/scheduler"
)

func ExampleNextInstants() {
	from := time.Date(2024, 3, 9, 17, 0, 0, 0, time.UTC)
	instants, err := scheduler.NextInstants("30 2 * * *", "America/New_York", from, 3)
	if err != nil {
		panic(err)
	}
	for _, at := range instants {
		fmt.Println(at)
	}
	// Output:
	// 2024-03-10T03:00:00-04:00
	// 2024-03-11T02:30:00-04:00
	// 2024-03-12T02:30:00-04:00
}

func ExampleParse() {
	s, err := scheduler.Parse("TZ=Asia/Dhaka 0 9 L * *", nil)
	if err != nil {
		panic(err)
	}
	at, _ := s.Next(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(s, "in", s.Location(), "comes at", at.Format(time.RFC3339))

	_, err = scheduler.Parse("0 22-2 * * *", nil)
	fmt.Println(err)
	_, err = scheduler.Parse("0 0 31 2 *", nil)
	fmt.Println(err, errors.Is(err, scheduler.ErrNeverFires))
	// Output:
	// 0 9 L * * in Asia/Dhaka comes at 2026-02-28T09:00:00+06:00
	// expression "0 22-2 * * *": hour: "22-2": the range runs backwards; write it as 22-23,0-2
	// expression "0 0 31 2 *": it never fires: none of its times ever comes in UTC true
}

func ExampleSchedule_Between() {
	s, err := scheduler.Parse("*/30 * * * *", nil)
	if err != nil {
		panic(err)
	}
	from := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	s.Between(from, from.Add(time.Hour), func(at time.Time) bool {
		fmt.Println(at.Format(time.TimeOnly))
		return true
	})
	// Output:
	// 08:00:00
	// 08:30:00
}

func ExamplePhaseOf() {
	for i := range 4 {
		fmt.Println(scheduler.PhaseOf(time.Minute, i, 4))
	}
	// Output:
	// 0s
	// 15s
	// 30s
	// 45s
}
