memtrace import -q captures/churn_gc.pickle.zst -o t >/dev/null; head -c 1000 t >cut; memtrace info cut; echo $?; memtrace replay -q cut; echo $?; memtrace analyze --strict cut
