memtrace diff -q captures/leak.pickle.zst captures/keeps.pickle.zst -o change.svg | tail -3
head -c 70 change.svg; echo
memtrace analyze captures/keeps.pickle.zst -o out --base captures/leak.pickle.zst | grep -A20 '^Files'
memtrace diff captures/leak.pickle.zst captures/keeps.pickle.zst -o -
