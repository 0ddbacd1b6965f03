package scheduler

import (
	"math/bits"
	"time"
)

const day = 24 * 3600

// calendar is the set of civil minutes that an expression's five fields
// name, as bits: bit n of a field stands for the value n.
type calendar struct {
	minutes, hours, days, months, weekdays uint64

	lastDay bool // L: the month's last day too
	both    bool // days and weekdays must both hold, else either is enough
	follows bool // hour or minute starts with *: it follows the clock through gaps and overlaps
}

// month is a month of the calendar: its first civil second, its length in
// days and the weekday of its first day.
type month struct {
	start  int64
	number time.Month
	year   int
	days   int
	first  int
}

func monthOf(civil int64) month {
	y, m, _ := time.Unix(civil, 0).UTC().Date()
	start := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return month{start: start.Unix(), number: m, year: y, days: daysIn(y, m), first: int(start.Weekday())}
}

func (m month) next() month {
	n := month{start: m.start + int64(m.days)*day, number: m.number + 1, year: m.year, first: (m.first + m.days) % 7}
	if n.number > time.December {
		n.number, n.year = time.January, m.year+1
	}
	n.days = daysIn(n.year, n.number)
	return n
}

func (m month) previous() month {
	p := month{number: m.number - 1, year: m.year}
	if p.number < time.January {
		p.number, p.year = time.December, m.year-1
	}
	p.days = daysIn(p.year, p.number)
	p.start = m.start - int64(p.days)*day
	p.first = (m.first + 35 - p.days) % 7
	return p
}

func daysIn(year int, m time.Month) int {
	switch m {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	}
	return 31
}

// named is the set of days of m that the expression names; bit n is day n.
func (c *calendar) named(m month) uint64 {
	if c.months&(1<<m.number) == 0 {
		return 0
	}
	days := c.days
	if c.lastDay {
		days |= 1 << m.days
	}
	// Turn the week so that bit 0 is the first day's weekday, then lay it over five weeks.
	week := (c.weekdays>>m.first | c.weekdays<<(7-m.first)) & 0x7f
	weekdays := week * (1<<1 | 1<<8 | 1<<15 | 1<<22 | 1<<29)
	if c.both {
		days &= weekdays
	} else {
		days |= weekdays
	}
	return days & (1<<(m.days+1) - 2)
}

// next is the first named civil second in from..limit. months counts the
// months that were looked at.
func (c *calendar) next(from, limit int64) (civil int64, months int, ok bool) {
	for m := monthOf(from); m.start <= limit; m = m.next() {
		months++
		days := c.named(m)
		if from > m.start {
			days &^= 1<<((from-m.start)/day+1) - 1
		}
		for ; days != 0; days &= days - 1 {
			midnight := m.start + int64(bits.TrailingZeros64(days)-1)*day
			if second, ok := c.timeFrom(max(0, from-midnight)); ok {
				civil = midnight + second
				return civil, months, civil <= limit
			}
		}
	}
	return 0, months, false
}

// previous is the last named civil second in limit..from.
func (c *calendar) previous(from, limit int64) (civil int64, months int, ok bool) {
	for m := monthOf(from); m.start+int64(m.days)*day > limit; m = m.previous() {
		months++
		days := c.named(m)
		if from < m.start+int64(m.days)*day {
			days &= 1<<((from-m.start)/day+2) - 1
		}
		for days != 0 {
			top := bits.Len64(days) - 1
			midnight := m.start + int64(top-1)*day
			if second, ok := c.timeUpTo(min(day-1, from-midnight)); ok {
				civil = midnight + second
				return civil, months, civil >= limit
			}
			days &^= 1 << top
		}
	}
	return 0, months, false
}

// timeFrom is the first named second of a day that is not before second.
func (c *calendar) timeFrom(second int64) (int64, bool) {
	minute := (second + 59) / 60
	hour := minute / 60
	if c.hours&(1<<hour) != 0 {
		if minutes := c.minutes >> (minute % 60); minutes != 0 {
			return (minute + int64(bits.TrailingZeros64(minutes))) * 60, true
		}
	}
	hours := c.hours >> (hour + 1)
	if hours == 0 {
		return 0, false
	}
	hour += 1 + int64(bits.TrailingZeros64(hours))
	return hour*3600 + int64(bits.TrailingZeros64(c.minutes))*60, true
}

// timeUpTo is the last named second of a day that is not after second.
func (c *calendar) timeUpTo(second int64) (int64, bool) {
	minute := second / 60
	hour := minute / 60
	if c.hours&(1<<hour) != 0 {
		if minutes := c.minutes & (1<<(minute%60+1) - 1); minutes != 0 {
			return hour*3600 + int64(bits.Len64(minutes)-1)*60, true
		}
	}
	hours := c.hours & (1<<hour - 1)
	if hours == 0 {
		return 0, false
	}
	return int64(bits.Len64(hours)-1)*3600 + int64(bits.Len64(c.minutes)-1)*60, true
}
