memtrace live tags/roles_2_15.pickle.zst --by tag.of | sed -n 4,6p
memtrace live tags/roles_2_15.pickle.zst --by tag.of --json | grep -E '"(by|group)"'
memtrace live tags/roles_2_15.pickle.zst --by tag.off
memtrace live tags/roles_2_15.pickle.zst --by tag.weights
memtrace live tags/words_2_15.pickle.zst --by tag.of
memtrace render timeline tags/words_2_15.pickle.zst --by tag.of -o t.svg
memtrace live tags/roles_2_15.pickle.zst --by tags
memtrace live tags/roles_2_15.pickle.zst --by tag | head -n 9
