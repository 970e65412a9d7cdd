memtrace analyze captures/leakval.pickle.zst --base captures/leak.pickle.zst --max-regression allocated=2% --max-growth 1MiB/step --max-peak device=1GiB -o report >/dev/null
echo "$?"
ls report
cat report/summary.md report/junit.xml
