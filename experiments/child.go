package experiments

// ServeChild runs the column under test where this process was started by a
// supervisor, and does not return then. It is called first in main.
func ServeChild() {}
