for f in twogpu oom_adam streams graph; do memtrace import -q captures/$f.pickle.zst -o t >/dev/null; memtrace dump --json captures/$f.pickle.zst >a; memtrace dump --json t >b; diff a b; done
