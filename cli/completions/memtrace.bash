# Completion of memtrace for bash. The program knows its commands, options and values:
#   source memtrace.bash
_memtrace() {
    local line=${COMP_LINE:0:COMP_POINT} part=${COMP_WORDS[COMP_CWORD]} words word lead candidate
    local bare='[:alnum:]_./:=+,@%#-' IFS=$' \t\n'
    # Without -r, read removes the backslashes that quote characters of a word.
    read -a words <<<"$line"
    [[ $line != *[[:space:]] || $line == *\\[[:space:]] ]] || words+=("")
    part=${part//\\/}
    COMPREPLY=()
    word=${words[-1]}
    # bash splits words at "=" and ":" and replaces only the part behind them.
    [[ $part != [=:] ]] || part=
    lead=${word%"$part"}
    while IFS= read -r candidate; do
        candidate=${candidate#"$lead"}
        # bash inserts candidates as they are, and names of phases come from a trace.
        [[ $candidate != *[!$bare]* ]] || printf -v candidate %q "$candidate"
        COMPREPLY+=("$candidate")
    done < <(if [ ${#words[@]} -le 2 ]; then
        memtrace --completion-helper "$word"
    else
        memtrace "${words[1]}" --completion-helper "${words[@]:2}"
    fi 2>/dev/null)
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -o default -F _memtrace memtrace
