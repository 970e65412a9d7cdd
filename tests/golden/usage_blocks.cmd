memtrace export folds captures/leak.pickle.zst; echo $?
memtrace export folded captures/leak.pickle.zst --json; echo $?
memtrace export folded captures/leak.pickle.zst --metric bytes; echo $?
memtrace export folded captures/leak.pickle.zst --of keptt; echo $?
memtrace export folded captures/leak.pickle.zst --of kept --at peak; echo $?
memtrace render icicle captures/leak.pickle.zst -o - --of kept --step 99; echo $?
memtrace render icicle captures/leak.pickle.zst -o - --of allocated-total --zoom phase:fowrard; echo $?
memtrace render icicle captures/leak.pickle.zst -o - --of allocated-total --zoom forward >/dev/null; echo $?
memtrace export folded captures/leak.pickle.zst --at oom; echo $?
memtrace export folded captures/twogpu.pickle.zst --device 7; echo $?
memtrace render icicle captures/twogpu.pickle.zst -o - --step 1; echo $?
memtrace export folded captures/oom_adam.pickle.zst --of grew; echo $?
memtrace render icicle captures/leak.pickle.zst -o - --at phase:nowhere; echo $?
memtrace render timeline captures/leak.pickle.zst -o - --at end; echo $?
memtrace render flamechart captures/leak.pickle.zst -o - --zoom "step 2" >/dev/null; echo $?
memtrace render flamechart captures/leak.pickle.zst -o - --zoom phase:nowhere; echo $?
