package sqlite_test

type gateTask struct{}

func gateChild(path string, k gateTask) error { return nil }
