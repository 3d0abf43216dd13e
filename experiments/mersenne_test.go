package experiments

import (
	"slices"
	"testing"
)

// TestMersenne holds the generator to numbers that Python 3 draws with this seed.
func TestMersenne(t *testing.T) {
	m := newMersenne(4471)
	var small, large []int
	for range 5 {
		small = append(small, m.between(5, 50))
	}
	for range 5 {
		large = append(large, m.between(51, 300))
	}
	if !slices.Equal(small, []int{30, 46, 11, 10, 45}) || !slices.Equal(large, []int{268, 89, 182, 209, 238}) {
		t.Errorf("%v %v", small, large)
	}
	ten := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	shuffled(m, ten)
	if !slices.Equal(ten, []int{1, 3, 6, 4, 8, 5, 0, 7, 2, 9}) {
		t.Errorf("shuffled %v", ten)
	}
	var sixty []int
	for i := range 60 {
		sixty = append(sixty, i)
	}
	if got := sampled(m, sixty, 5); !slices.Equal(got, []int{28, 2, 11, 35, 22}) {
		t.Errorf("sampled %v", got)
	}
	if got := m.exponential(5400); int(got*1e6) != 18480976805 {
		t.Errorf("exponential %v", got)
	}
}
