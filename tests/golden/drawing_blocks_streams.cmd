drawing_list blocks captures/streams.pickle.zst -o - --whole --x=events
