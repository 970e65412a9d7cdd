memtrace import -q captures/seq2seq.pickle.zst -o run_rank3.trace && memtrace info run_rank3.trace.mtsum | sed 's/, [0-9.]* KiB$//'
memtrace analyze run_rank3.trace.mtsum; echo $?
memtrace import -q captures/seq2seq.pickle.zst -o run_rank3.trace; echo $?
memtrace import -q --no-summary captures/graph.pickle.zst -o other.trace; ls other*
printf 'mine' >taken.trace.mtsum; memtrace import captures/graph.pickle.zst -o taken.trace >said; echo $?; sed 's/, [0-9,]* bytes, .*//' said; cat taken.trace.mtsum
