head -c 2000 captures/../traces/v1-every-kind.zst >cut; memtrace info cut
memtrace replay oom/cut.trace | head -n 2; memtrace replay -j 2 -p pytorch -p bfc oom/cut.trace | head -n 3
memtrace import -q captures/churn_gc.pickle.zst -o t >/dev/null; head -c 1000 t >cut; memtrace info cut; echo $?
memtrace replay -q cut; echo $?; memtrace analyze --strict cut; echo $?
