memtrace live captures/leak.pickle.zst --at 'phase:step 2, backward' --by role
memtrace live captures/leak.pickle.zst --at 'step 2, backward' --by role
memtrace live captures/leak.pickle.zst --at 'step 99, backward' --by role
memtrace render flamechart captures/leak.pickle.zst --step "step 3" -o flamechart.svg -q
