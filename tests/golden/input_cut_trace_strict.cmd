memtrace import -q captures/seq2seq.pickle.zst -o t >/dev/null; head -c 33000 t >cut; memtrace info --strict cut
