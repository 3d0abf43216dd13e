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
	var logs [2]told
	of := [2]Workload{}
	for _, w := range Workloads {
		i := 0
		switch w.Name {
		case "authority":
			i = 1
		case "ten":
		default:
			continue
		}
		s := newSession(dir, &Disk{})
		if err := s.run(w, nil); err != nil {
			f.Fatal(err)
		}
		logs[i], of[i] = s.told, w
		whole := s.Disk.Synced()["0000000001.seg"]
		for _, b := range [][]byte{whole, whole[:len(whole)-600], append(whole[:2048:2048], whole[512:1024]...), whole[:512], {}} {
			f.Add(b, i == 1)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, authority bool) {
		i := 0
		if authority {
			i = 1
		}
		if len(b) > 1<<16 {
			return
		}
		if _, err := of[i].rotted(dir, Image{"0000000001.seg": b}, logs[i], false); err != nil {
			t.Error(err)
		}
	})
}
