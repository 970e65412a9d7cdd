memtrace fit captures/seq2seq.pickle.zst --pool 'site=~forward,size<20MiB' --no-cards
