package journal

import "context"

// Prove returns nil when a durable later record proves that entry n is durable,
// so that damage to n is not taken for a torn write (C15). An end of the log that
// is cut off together with its proof is not noticed by the log itself. What must not be lost that way, a revocation or a person's decision, is
// told to its caller only then. Where nothing was appended behind n it appends a
// SEAL: two syncs in all, with the Update that appended n.
func Prove(ctx context.Context, s Store, n Seq) error {
	if err := s.Durable(ctx, n); err != nil {
		return err
	}
	_, err := s.Update(ctx, func(h Head) ([]Entry, error) {
		if h.Proven >= n {
			return nil, nil // Update waits for the record that proves it
		}
		return []Entry{{Kind: Seal}}, nil
	})
	return err
}
