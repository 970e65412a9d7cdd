#!/bin/sh
# .githooks/commit-msg must take good messages and refuse bad ones, in any locale.
set -eu
hook=$(cd "$(dirname "$0")/.." && pwd)/.githooks/commit-msg
file=$(mktemp)
trap 'rm -f "$file"' EXIT
export LC_ALL=C
scissors='# ------------------------ >8 ------------------------'
ae72=$(printf 'ä%.0s' $(seq 72))

must_pass() {
    printf '%b' "$1" >"$file"
    "$hook" "$file" || {
        printf 'commit-msg refused:\n%s\n' "$1" >&2
        exit 1
    }
}

# must_fail MESSAGE REASON
must_fail() {
    printf '%b' "$1" >"$file"
    if said=$("$hook" "$file" 2>&1); then
        printf 'commit-msg took:\n%s\n' "$1" >&2
        exit 1
    fi
    [ "$said" = "commit-msg: $2" ] || {
        printf "commit-msg said '%s', not '%s', of:\n%s\n" "$said" "$2" "$1" >&2
        exit 1
    }
}

must_pass 'area: what\n\nThe reason.\n'
must_pass "$ae72\n\nThe reason.\n"
must_fail "${ae72}x\n\nThe reason.\n" 'the subject has more than 72 columns'
must_fail 'area: what\nThe reason.\n' 'the second line must be empty'

no_body='say in the body why the change is made'
must_fail 'area: what\n' "$no_body"
must_fail 'area: what\n\n# Please enter the message\n' "$no_body"
must_fail "area: what\n\n$scissors\n# Do not modify\ndiff --git a/a b/a\n" "$no_body"
must_fail 'Merge the lists of free blocks\n' "$no_body"
must_fail 'Reverted lists have no end\n' "$no_body"
for subject in "Merge branch 'x'" "Merge remote-tracking branch 'o/x'" 'Revert "area: what"' \
    'fixup! area: what' 'squash! area: what'; do
    must_pass "$subject\n"
done
