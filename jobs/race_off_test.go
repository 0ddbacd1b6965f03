//go:build !race

package jobs

const paced = true
