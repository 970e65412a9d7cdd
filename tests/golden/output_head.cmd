memtrace dump captures/oom_adam.pickle.zst | head -n 3
# a reader that stops is no error, and hides none
{ memtrace analyze captures/leak.pickle.zst -q -o out; echo $? >&2; memtrace analyze captures/leak.pickle.zst -q --max-peak reserved=1MiB; echo $? >&2; memtrace dump captures/leak.pickle.zst; echo $? >&2; } | true
ls out/report.html
