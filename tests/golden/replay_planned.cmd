memtrace replay captures/seq2seq.pickle.zst -p pytorch -p planned -p planned:expandable_segments:True
