#!/bin/sh
# Includes point one way: base <- trace <- {collector, analyzer}, analyzer <-
# render, cli sees all. File names are unique, so that an include by name
# means one file; libraries neither print nor exit (a failed MT_ASSERT of
# base/check.c does, in builds that have it).
#
#   check_layers.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/..}"
status=0

complain() {
    echo "check_layers: $*" >&2
    status=1
}

allowed() {
    case $1 in
    base) echo base ;;
    trace) echo base trace ;;
    collector) echo base trace collector ;;
    analyzer) echo base trace analyzer ;;
    render) echo base trace analyzer render ;;
    cli) echo base trace collector analyzer render cli ;;
    esac
}

folders=
for layer in base trace collector analyzer render cli; do
    [ ! -d "$layer" ] || folders="$folders $layer"
done
# shellcheck disable=SC2086 # one word a folder
headers=$(find $folders -name '*.h')

# layer_of HEADER: the top folder that holds it, nothing if it is not ours.
layer_of() {
    for path in $headers; do
        if [ "${path##*/}" = "$1" ]; then
            echo "${path%%/*}"
            return
        fi
    done
}

# shellcheck disable=SC2086
twins=$(find $folders -name '*.[ch]' | sed 's,.*/,,' | sort | uniq -d)
[ -z "$twins" ] || complain "more than one file is called: $twins"

for layer in $folders; do
    for include in $(find "$layer" -name '*.[ch]' -exec grep -ho '^ *# *include *"[^"]*"' {} + |
        sed 's/.*"\(.*\)"/\1/' | sort -u); do
        owner=$(layer_of "$include")
        case " $(allowed "$layer") " in
        *" $owner "*) ;;
        *) complain "$layer must not include $include (of ${owner:-nobody}):" \
            "$(grep -rl "\"$include\"" "$layer" | tr '\n' ' ')" ;;
        esac
    done
    [ "$layer" != cli ] || continue
    if grep -rnE --include='*.[ch]' '(^|[^a-z_])(printf|puts|putchar|perror|exit|_exit|abort) ?\(|std(out|err)\b' \
        "$layer" | grep -vE '/\*|^[^:]*:[0-9]+: \*|collector/record/|^base/check\.c:|__attribute__'; then
        complain "$layer is a library: it must not print or exit"
    fi
done
exit $status
