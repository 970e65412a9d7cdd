head -c 2000 captures/../traces/v1-every-kind.zst >t; memtrace info --quiet t >/dev/null && memtrace info --quiet --strict t >/dev/null
