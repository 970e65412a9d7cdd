memtrace analyze skipped/alloc.pickle.zst -q -o out > analysis.txt
head -n 1 out/summary.md
grep -o "<p id=.verdict.*" out/report.html
memtrace analyze captures/gpt_ring.pickle.zst -q -o out2 > analysis.txt
head -n 1 out2/summary.md
