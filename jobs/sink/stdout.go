package sink

import (
	"bytes"
	"fmt"
)

// print writes one line a version. A line is one write under a lock, so lines
// of this process do not mix. Of several processes on one pipe the kernel keeps
// lines of up to 4096 bytes apart, and no longer ones.
func (o *Outlet) print(d Delivery) error {
	var line bytes.Buffer
	if err := encoder(&line).Encode(d.document()); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.stdout.Write(line.Bytes()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
