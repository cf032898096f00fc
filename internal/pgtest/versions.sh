#!/usr/bin/env bash
# versions.sh LIST tests the engine on Postgres on several major versions, 14,16 for one, and notes in docs/postgres.md what came of it. ./test --postgres
# calls it. The servers are those of npm's embedded-postgres, which stay in the user's cache folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# What may differ between versions: all that is sent to a server, and what the server makes of it.
tests='^(TestContract|TestContractInBatches|TestTail.*|.*WalkIndexes|TestRoundTrips|TestACheckpointMay.*|TestConnectionsOf.*)$'
notes=docs/postgres.md

release() { # the newest package of a version
  case $1 in
    14) echo 14.23.0-beta.17 ;;
    16) echo 16.14.0-beta.17 ;;
    17) echo 17.10.0-beta.17 ;;
    18) echo 18.4.0-beta.17 ;;
    *) echo "versions.sh: '$1' is not one of 14, 16, 17, 18" >&2; exit 2 ;;
  esac
}
lacking() { echo "./test --postgres: $1" >&2; exit 3; }

system=$(go env GOOS)-$(go env GOARCH)
package=@embedded-postgres/${system/amd64/x64}
case $(go env GOOS) in
  darwin) cache=$HOME/Library/Caches ;;
  *) cache=${XDG_CACHE_HOME:-$HOME/.cache} ;;
esac
cache+=/foundling/postgres

scratch=$(mktemp -d)
chmod 711 "$scratch" # the server's user passes through it
trap 'rm -rf "$scratch"' EXIT

# bring RELEASE has its binaries in the cache. npm checks what it loads, from wherever its own settings say.
bring() {
  local part=$cache/part-$$
  [ ! -d "$cache/$1" ] || return 0
  command -v npm >/dev/null || lacking 'there is no npm, which brings servers of other versions; it comes with Node.js'
  mkdir -p "$part"
  npm install --prefix "$part" --no-audit --no-fund --loglevel=error "$package@$1" >&2 ||
    { rm -rf "$part"; lacking "npm brings no $package@$1"; }
  mv "$part" "$cache/$1"
}

# note MAJOR VERSION PASSED FAILED writes the row of a version anew.
note() {
  local row="| $1 | $2 | $3 | $4 | $(date -u +%F) |"
  awk -v row="$row" -v major="| $1 |" 'index($0, major) == 1 { $0 = row; found = 1 } { print } END { exit !found }' "$notes" >"$scratch/notes" ||
    { echo "versions.sh: $notes has no row that begins with | $1 |" >&2; exit 1; }
  cat "$scratch/notes" >"$notes"
}

go build -o "$scratch/testreport" ./internal/testreport
go test -c -o "$scratch/tests" ./store/postgres
unset DATABASE_URL FOUNDLING_LONG
export FOUNDLING_ENGINES=postgres
wrong=''
for major in ${1//,/ }; do
  release=$(release "$major")
  bring "$release"
  # A copy, since who a server runs as for root may not pass through the folders of root's.
  cp -R "$cache/$release/node_modules/$package/native" "$scratch/$major"
  chmod -R a+rX "$scratch/$major"
  version=$("$scratch/$major/bin/postgres" --version)
  version=${version##* }
  echo "== Postgres $version"
  (cd store/postgres && FOUNDLING_POSTGRES_BIN=$scratch/$major/bin go tool test2json -t -p github.com/foundling-go/foundling/store/postgres \
    "$scratch/tests" -test.v=test2json -test.timeout 60m -test.run "$tests") |
    tee "$scratch/events" | "$scratch/testreport" -part -engines "postgres $version" || wrong+=" $version"
  note "$major" "$version" "$(grep -c '"Action":"pass".*"Test":' "$scratch/events")" "$(grep -c '"Action":"fail".*"Test":' "$scratch/events" || true)"
  rm -rf "${scratch:?}/$major"
done
[ -z "$wrong" ] || { echo "failed on Postgres$wrong"; exit 1; }
echo "all passed; $notes has it"
