package experiments

import "math"

// mersenne is the MT19937 generator, seeded and read as Python's random module
// does it: the reference days were drawn with that, and are the same days here.
type mersenne struct {
	state [624]uint32
	next  int
}

func newMersenne(seed uint32) *mersenne {
	m := &mersenne{next: 624}
	m.state[0] = 19650218
	for i := uint32(1); i < 624; i++ {
		m.state[i] = 1812433253*(m.state[i-1]^m.state[i-1]>>30) + i
	}
	i := uint32(1)
	for range 624 { // a key of one word
		m.state[i] = (m.state[i] ^ (m.state[i-1]^m.state[i-1]>>30)*1664525) + seed
		if i++; i == 624 {
			m.state[0], i = m.state[623], 1
		}
	}
	for range 623 {
		m.state[i] = (m.state[i] ^ (m.state[i-1]^m.state[i-1]>>30)*1566083941) - i
		if i++; i == 624 {
			m.state[0], i = m.state[623], 1
		}
	}
	m.state[0] = 1 << 31
	return m
}

func (m *mersenne) word() uint32 {
	if m.next == 624 {
		for i := range m.state {
			y := m.state[i]&(1<<31) | m.state[(i+1)%624]&(1<<31-1)
			m.state[i] = m.state[(i+397)%624] ^ y>>1 ^ y&1*0x9908b0df
		}
		m.next = 0
	}
	y := m.state[m.next]
	m.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below is a number from 0 to n-1.
func (m *mersenne) below(n int) int {
	bits := 0
	for n>>bits > 0 {
		bits++
	}
	for {
		if r := int(m.word() >> (32 - bits)); r < n {
			return r
		}
	}
}

// between is a number from low to high, both included.
func (m *mersenne) between(low, high int) int { return low + m.below(high-low+1) }

// exponential is a time with the given mean.
func (m *mersenne) exponential(mean float64) float64 {
	a, b := m.word()>>5, m.word()>>6
	return -math.Log(1-(float64(a)*(1<<26)+float64(b))/(1<<53)) * mean
}

// shuffled puts a list in another order.
func shuffled[T any](m *mersenne, list []T) {
	for i := len(list) - 1; i > 0; i-- {
		j := m.below(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}

// sampled are n different ones of a list that is much longer.
func sampled[T any](m *mersenne, list []T, n int) (some []T) {
	taken := map[int]bool{}
	for range n {
		j := m.below(len(list))
		for taken[j] {
			j = m.below(len(list))
		}
		taken[j] = true
		some = append(some, list[j])
	}
	return some
}
