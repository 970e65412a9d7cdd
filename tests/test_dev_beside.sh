#!/bin/sh
# What ./dev runs beside a build ends with it, if the build fails or ./dev is stopped. Its failure
# is reported.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'kill $(cat "$folder/pids") 2>/dev/null || :; rm -rf "$folder"' EXIT
mkdir "$folder/build"
sed -n '/^beside() {/,/^}/p; /^joined() {/,/^}/p' dev >"$folder/functions"
cd "$folder"

fail() {
    echo "$1"
    exit 1
}

# The lock is held until the checks and their child have ended.
cat >checks <<'EOF'
exec 9>lock
flock 9
sleep 300 &
echo $$ $! >>pids
wait
EOF

# run COMMAND: its status, in a shell in which the checks have begun. Runs in the background ignore
# signals.
run() {
    rm -f lock
    status=0
    env --default-signal=HUP,INT,TERM sh -euc ". ./functions; beside sh checks
        while flock -n lock true; do sleep 0.1; done
        $1" || status=$?
}

run false
[ "$status" = 1 ] || fail "a build that fails: status $status"
flock -w 10 lock true || fail "a build that fails: the checks go on"
for signal in HUP INT TERM; do
    # shellcheck disable=SC2016 # the number of that shell
    run "kill -s $signal"' $$; sleep 60'
    [ "$status" = 130 ] || fail "$signal: status $status"
    flock -w 10 lock true || fail "$signal: the checks go on"
done
sh -euc '. ./functions; beside true; joined' || fail "checks that pass: a failure"
sh -euc '. ./functions; beside sh -c "echo why; false"; joined' >out &&
    fail "checks that fail: status 0"
[ "$(cat out)" = why ] || fail "checks that fail: no output"
