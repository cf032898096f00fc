#!/bin/sh
# watchdog.sh DIR ends the server in DIR/data and removes DIR when standard input ends: when whoever holds its other end closes
# it or is no more, in whatever way that came. It must outlive the signals that end the others.
trap '' HUP INT QUIT TERM PIPE
while read -r _; do :; done

pidfile=$1/data/postmaster.pid
pid=$(sed -n 1p "$pidfile" 2>/dev/null)

# runs tells whether the server's process is there; a killed one's number may have become somebody else's.
runs() {
  [ "$pid" ] && { tr '\0' ' ' <"/proc/$pid/cmdline" || ps -p "$pid" -o args=; } 2>/dev/null | grep -qF "$1/data"
}

tries=0
while runs "$1"; do
  if [ $tries = 0 ]; then kill -QUIT "$pid"; fi
  if [ $tries = 100 ]; then kill -KILL "$pid"; fi
  if [ $tries = 200 ]; then break; fi
  sleep 0.1
  tries=$((tries + 1))
done

# What a server that was killed leaves in the system.
memory=$(sed -n '7s/.* //p' "$pidfile" 2>/dev/null)
if [ "$memory" ]; then ipcrm -m "$memory" 2>/dev/null; fi

# Again while something still writes there.
tries=0
until rm -rf "$1" 2>/dev/null || [ $tries = 50 ]; do
  sleep 0.1
  tries=$((tries + 1))
done
