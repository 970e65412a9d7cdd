memtrace import -q captures/twogpu.pickle.zst -o t >/dev/null; memtrace dump captures/twogpu.pickle.zst >a; memtrace dump t >b; cmp a b
