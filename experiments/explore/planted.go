package explore

import (
	"github.com/interlock-bench/interlock-bench/faults/disk"
	"github.com/interlock-bench/interlock-bench/protocol/journal"
)

// unsynced is a disk whose files say yes to a sync and do nothing.
type unsynced struct{ *disk.Disk }

func (d unsynced) Open(name string, create bool) (journal.File, error) {
	f, err := d.Disk.Open(name, create)
	return lazy{f}, err
}

type lazy struct{ journal.File }

func (lazy) Sync() error { return nil }
