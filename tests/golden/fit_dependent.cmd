memtrace fit captures/seq2seq_cap.pickle.zst -p pytorch: --no-cards
