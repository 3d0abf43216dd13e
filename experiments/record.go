package experiments

// Record is what is kept of one cell, one JSON line in results/<experiment>.jsonl.
type Record struct {
	V          int               `json:"v"`
	ID         string            `json:"id"` // experiment[.table]/row/column
	Experiment string            `json:"experiment"`
	Row        string            `json:"row"`
	Column     string            `json:"column"`
	Axes       map[string]string `json:"axes"`
	Cell       string            `json:"cell"`    // status and money of the worst trial, "COMMITTED_ON_QUERY $20"
	Verdict    string            `json:"verdict"` // its class
	Trials     int               `json:"trials"`
	Counts     map[string]int    `json:"counts"` // class: trials
	Broke      []string          `json:"broke"`
	Unfired    int               `json:"unfired"`
	Answer     string            `json:"answer"`
	Record     string            `json:"record"`
	Attempts   int               `json:"attempts"`
	Requests   int               `json:"requests"`
	ModelCalls int               `json:"model_calls"`
	Replay     string            `json:"replay"` // the worst trial's line
	Extra      map[string]any    `json:"extra"`
}
