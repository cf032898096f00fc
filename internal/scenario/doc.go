// Package scenario tells stories to a store: a file says what happened to whom, step by step on a virtual clock, and every engine must
// print the same text for it.
//
// A [World] is one store with everything that a story needs around it: a clock that only the story moves, ids that come out the same
// each time and are shown by order of appearance (m1, m2 for messages, w1, w2 for workers), and faults on demand. [World.Do] carries out
// one step and gives its text: the events that it led to, then what was answered and refused. Each event is checked against the laws on
// the way, see [World.Check] for what is checked of the rows.
//
// The steps (every one that commits takes fault=lost-before, lost-after, late, twice or fail):
//
//	topic NAME limit=N [by= detail=]      count NAME [page=N]      pause NAME      resume NAME
//	enqueue TOPIC [n= id= key= unique-for= delay= due= priority= max-attempts= backoff-base= backoff-max= timeout= payload= limit= unseen]
//	claim WORKER TOPIC[=N]… [most=N]
//	complete M…   fail M… [error= jitter=]   release M… [reason= delay=]   dead-letter M… [error=]   cancel M… token=N
//	settle [from= recordable= unrecorded= held]    with one of the five above per line
//	cancel M…   take-back M…   redrive M…   [by= detail=]
//	worker-start [NAME]   worker-stop W   worker-lose W   worker-return W   worker-gap W from= to=
//	reclaim WORKER [by= limit= page=]
//	together   parallel                   with one step per line: as one commit, or at the same time
//	again      again other                the last commit once more, with the same rule or with another one
//	advance DURATION   verify   state [ENTITY…]
//	log [ENTITY]                          all of an entity, or what no step has shown yet
//	expect                                with one expectation per line, see expect.go; it fails by itself
//
// The five that end a claim carry the token of the message's last claim unless token=N says otherwise, and come from its worker unless
// from=W does. A name that nothing has is a made-up id; one given by id= or worker-start NAME is shown as it was given. Times are since
// the start.
//
// The texts of the files are filled in by
//
//	go test ./internal/scenario -rewrite
//
// and are then to be read: what they say is not checked by anybody else, but for the expectations and the laws.
package scenario
