head -c 2000 captures/../traces/v1-every-kind.zst >cut; memtrace info cut
memtrace replay oom/cut.trace | head -n 2; memtrace replay -j 2 -p pytorch -p bfc oom/cut.trace | head -n 3
