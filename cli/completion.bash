# Completion of memtrace for bash, from the program's own option tables:
#   source completion.bash
_memtrace() {
    local word=${COMP_WORDS[COMP_CWORD]} words
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$(memtrace --completion-helper)
    elif [[ $word == -* ]]; then
        words=$(memtrace "${COMP_WORDS[1]}" --completion-helper 2>/dev/null)
    else
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    if [[ ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
}
complete -o default -F _memtrace memtrace
