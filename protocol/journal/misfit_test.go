package journal

import "testing"

// TestMisfit: an entry that is intact and not the next one is told from it, by
// each of the things that link entries.
func TestMisfit(t *testing.T) {
	l := &Log{seq: 4, hash: Hash{4}, trails: map[ID]trail{{1}: {hash: Hash{2}}}}
	for _, c := range []struct {
		why     string
		e       Entry
		durable Seq
		fits    bool
	}{
		{"the next of a known effect", Entry{Seq: 5, Before: Hash{4}, Effect: ID{1}, Prev: Hash{2}}, 4, true},
		{"the next of a new effect", Entry{Seq: 5, Before: Hash{4}, Effect: ID{9}}, 0, true},
		{"the next without effect", Entry{Seq: 5, Before: Hash{4}}, 3, true},
		{"one is left out", Entry{Seq: 6, Before: Hash{4}}, 4, false},
		{"one comes twice", Entry{Seq: 4, Before: Hash{4}}, 3, false},
		{"it was written behind another entry", Entry{Seq: 5, Before: Hash{3}}, 4, false},
		{"its effect had another entry", Entry{Seq: 5, Before: Hash{4}, Effect: ID{1}, Prev: Hash{1}}, 4, false},
		{"its effect had none", Entry{Seq: 5, Before: Hash{4}, Effect: ID{9}, Prev: Hash{1}}, 4, false},
		{"it proves what comes after it", Entry{Seq: 5, Before: Hash{4}}, 5, false},
	} {
		if why := l.misfit(c.e, c.durable); (why == "") != c.fits {
			t.Errorf("%s: %q", c.why, why)
		}
	}
}

func TestRemoteFileSystemsAreRefused(t *testing.T) {
	for magic, name := range map[uint32]string{0x6969: "NFS", 0xff534d42: "CIFS", 0x65735546: "FUSE", 0x01021997: "9P"} {
		if remote[magic] != name {
			t.Errorf("%#x is %q, want %s", magic, remote[magic], name)
		}
	}
	for _, magic := range []uint32{0xef53, 0x01021994, 0x58465342, 0x9123683e, 0x794c7630} { // ext4, tmpfs, XFS, btrfs, overlay
		if name, ok := remote[magic]; ok {
			t.Errorf("%#x is refused as %s", magic, name)
		}
	}
}
