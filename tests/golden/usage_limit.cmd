for limit in lots 24 24GB "rtx 4090" A100 "1,690 MiB" 0GiB; do memtrace replay --policies --limit "$limit" >policies; echo "$limit: $?"; done
memtrace replay -q --policies -l L4 >policies
