# Completion of memtrace for fish. The program knows its commands, options and values.
function __memtrace_candidates
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l word (commandline --current-token --cut-at-cursor)
    if test (count $words) -le 1
        memtrace --completion-helper "$word" 2>/dev/null
    else
        memtrace $words[2] --completion-helper $words[3..] "$word" 2>/dev/null
    end
end
complete --command memtrace --arguments '(__memtrace_candidates)'
