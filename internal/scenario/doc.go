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
//	enqueue TOPIC [n= id= key= unique-for= delay= due= priority= max-attempts= backoff-base= backoff-max= timeout= orphan-max-attempts=
//	               payload= lock= on-locked=skip limit= unseen]
//	claim WORKER TOPIC[=N]… [most=N]
//	complete M… [result=]   fail M… [error= jitter=]   release M… [reason= delay=]   dead-letter M… [error=]   cancel M… token=N
//	settle [from= recordable= unrecorded= held]    with one of the five above per line
//	cancel M…   take-back M… [force=yes]   redrive M…   [by= detail= after=]   erase M…   [by= detail=]
//	lock L permits=N   force-release L [token=]   [by= detail=]   expire L   repair L
//	acquire WORKER L [ttl=]   unlock WORKER L [token= recordable=]
//	worker-start [NAME] [interval= fence= proof=yes]   worker-stop W   worker-lose W   worker-return W   worker-gap W from= to=
//	worker-purge W ttl=
//	reclaim WORKER [by= limit= page=]
//	step-clock WORKER from= to= [tolerance=]
//	together   parallel                   with one step per line: as one commit, or at the same time
//	again      again other                the last commit once more, with the same rule or with another one
//
// What goes by itself, see process.go, sweep.go and lead.go:
//
//	advance DURATION                      time goes by; whoever has an interval beats, and whoever leads does its part of the beat
//	beat W… [behind=]   silence W…   wake W…   kill W…   still W…
//	sweep WORKER [after= grace= limit= count= term= commits=N]    with what happens before its first commit, a step per line
//	lead WORKER [interval= life= ttl= retention= and the settings of a sweep]   resign WORKER
//	prune older=DURATION [events= rows= commits= by= detail=] [plan]    what is older goes, or only how much would; durations in days end in d
//	set-clock DURATION   blind   sighted  the store's clock moves by that; from here on nobody can read who lives, or everybody
//
// And the looks:
//
//	verify   state [ENTITY…]   permits [L]   waiting   lease   contents M…   beginning
//	checkpoint NAME [version= sequence=] [nowhere]    a durable projection has come to the end of the log, or nowhere yet
//	log [ENTITY]                          all of an entity, or what no step has shown yet
//	expect                                with one expectation per line, see expect.go; it fails by itself
//
// A step with the word quiet says only how many events it led to.
//
// The five that end a claim carry the token of the message's last claim unless token=N says otherwise, and come from its worker unless
// from=W does. A name that nothing has is a made-up id; one given by id= or worker-start NAME is shown as it was given. Times are since
// the start. Whoever has proof=yes is proven to have ended once it was killed, on every engine: one that cannot tell is given a kernel that can.
//
// The texts of the files are filled in by
//
//	go test ./internal/scenario -rewrite
//
// and are then to be read: what they say is not checked by anybody else, but for the expectations and the laws.
package scenario
