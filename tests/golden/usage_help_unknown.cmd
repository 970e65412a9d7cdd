memtrace help frobnicate; echo $?
memtrace help skil; echo $?
memtrace help verson; echo $?
memtrace run.pickle; echo $?
memtrace --help live | head -n 1
memtrace captures/leak.pickle.zst -q >file; memtrace analyze captures/leak.pickle.zst -q | cmp - file; echo $?
memtrace help captures/leak.pickle.zst; echo $?
mkfifo fifo; memtrace export sqlite captures/leak.pickle.zst -o fifo; echo $?
