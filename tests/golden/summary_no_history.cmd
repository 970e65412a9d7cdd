memtrace analyze no_history/snapshot.pickle -q -o out > analysis.txt
cat out/summary.md
