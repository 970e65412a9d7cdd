trace=captures/seq2seq.pickle.zst
for words in "analyze $trace" "analyze --json $trace" "replay $trace" "fit $trace" "tune $trace" \
    "lines $trace" "live $trace" "dump $trace" "info $trace" "export folded $trace" \
    "optimal $trace" "diff $trace $trace" "render timeline $trace -o t.svg" "import $trace -o t"; do
    memtrace ${words%% *} --max-memory 600KiB ${words#* } >out 2>said
    echo "$? ${words%% *} $(wc -c <out) $(grep -c '600 KiB that --max-memory allows; raise --max-memory' said)"
done
for kib in 500 1000 1500 2000 2300 2600 3000; do
    memtrace render timeline captures/leak.pickle.zst -o t.svg --max-memory ${kib}KiB 2>said
    echo "$? $(grep -c 'that --max-memory allows; raise --max-memory' said)"
done | sort -u
rm -f t.svg
MEMTRACE_MAX_MEMORY=600KiB memtrace info $trace
MEMTRACE_MAX_MEMORY=600KiB memtrace info --max-memory 100MiB $trace >out
echo "$?"
for kib in 600 3300; do # for none of the two, and for the first
    memtrace diff --max-memory ${kib}KiB captures/leak.pickle.zst $trace
done
memtrace analyze $trace --base captures/leak.pickle.zst --max-regression 2% --max-memory 600KiB
MEMTRACE_MAX_MEMORY=much memtrace info $trace
memtrace info --max-memory 0 $trace
ls
