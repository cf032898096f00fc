package pgtest

// Counts are what has gone through a Proxy.
type Counts struct {
	// Trips is how often a client waited for the server: it spoke, was answered in full, and only then went on. What is sent in
	// one go counts once, however many statements it has and however early the server begins to answer; so do a COPY and its rows.
	// A login is three with a password, one without.
	Trips int
	// Connections is how many were opened.
	Connections int
	// Statements is how many Query and Execute messages the clients sent.
	Statements int
	// Sent and Received are bytes, as the clients see it.
	Sent, Received int64
}

// trips counts the round trips of one connection.
//
// When bytes pass does not tell: a server answers the beginning of a long batch while the client still sends its end. So a turn of
// the client's ends with a message that has an answer, and is over when that has come.
type trips struct {
	open     bool // the client has spoken, and has not been answered in full
	speaking bool // what it said last has no answer of its own: more will come
	asked    int  // ends of an answer (ReadyForQuery) that are still to come
	flushed  bool // it wants to see what there is, without such an end
}

// sent notes a message of the client's and tells whether a trip begins with it.
func (t *trips) sent(m Message) (begins bool) {
	if m.Type == 'X' { // Terminate
		return false
	}
	begins = !t.open
	t.open, t.speaking = true, false
	switch m.Type {
	case 'Q', 'S', 'F': // Query, Sync, FunctionCall
		t.asked++
	case 'H': // Flush
		t.flushed = true
	case 0, 'p', 'c', 'f': // login, and the end of rows for a COPY
	default:
		t.speaking = true
	}
	return begins
}

// received notes a message of the server's.
func (t *trips) received(m Message) {
	switch {
	case m.Type == 'Z': // ReadyForQuery
		t.asked = max(0, t.asked-1)
		t.open = t.asked > 0 || t.speaking
	case m.Type == 'R': // Authentication: it is the client's turn, or a ReadyForQuery follows
		t.open = false
	case t.flushed && t.asked == 0:
		t.flushed = false
		t.open = t.speaking
	}
}
