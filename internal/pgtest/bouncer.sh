#!/bin/sh
# bouncer.sh PROGRAM DIR runs PgBouncer by DIR/pgbouncer.ini until standard input ends: when whoever holds its other end closes it or is no
# more, in whatever way that came. Then nothing is left of DIR.
trap '' HUP INT QUIT TERM PIPE
"$1" "$2/pgbouncer.ini" </dev/null >>"$2/log" 2>&1 &
bouncer=$!
while read -r _; do :; done
kill -KILL "$bouncer" 2>/dev/null
wait "$bouncer" 2>/dev/null
rm -rf "$2"
