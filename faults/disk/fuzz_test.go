package disk

import "testing"

// FuzzLog opens any bytes as the one segment of a log, and holds what comes of it
// against the independent reader.
func FuzzLog(f *testing.F) {
	dir, remove, err := LockDir()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(remove)
	var all told
	for _, w := range Workloads {
		if w.Name != "ten" && w.Name != "authority" {
			continue
		}
		s := newSession(dir, &Disk{})
		if err := s.run(w, nil); err != nil {
			f.Fatal(err)
		}
		all.given = append(all.given, s.told.given...)
		whole := s.Disk.Synced()["0000000001.seg"]
		for _, b := range [][]byte{whole, whole[:len(whole)-600], append(whole[:2048:2048], whole[512:1024]...), whole[:512], {}} {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		if _, err := (Workload{}).rotted(dir, Image{"0000000001.seg": b}, all, false, newSeen()); err != nil {
			t.Error(err)
		}
	})
}
