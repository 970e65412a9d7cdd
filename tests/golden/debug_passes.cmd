# Times differ from run to run, and memory from change to change of a struct.
mask() { sed -E 's/[0-9.]+ (ns|µs|ms|s)\b/TIME/; s/[0-9.]+ (B|[KMG]iB)$/MEMORY/; s/ +/ /g'; }
MEMTRACE_DEBUG=passes memtrace analyze captures/churn_noctx.pickle.zst 2>&1 >/dev/null | mask
MEMTRACE_DEBUG=passes memtrace analyze recorded/twogpu.trace.zst 2>&1 >/dev/null | mask
MEMTRACE_DEBUG=passes memtrace live captures/leak.pickle.zst 2>&1 >/dev/null | mask
MEMTRACE_DEBUG=nothing,passes, memtrace info captures/leak.pickle.zst >/dev/null
