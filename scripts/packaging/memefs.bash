# bash completion for cm and memefs. Verbs, options and their choices come from the programs' own
# --help, so that this file need not be kept in step.
# shellcheck shell=bash

# The verbs that the help lists, one per line and indented by two.
_memefs_verbs()
{
    "$1" --help 2>/dev/null | sed -nE 's/^  ([a-z][a-z-]*)( .*)?$/\1/p'
}

_memefs_options()
{
    "$@" --help 2>/dev/null | sed -nE 's/^  (--[a-z][a-z-]*)( .*)?$/\1/p'
}

# The words that an option may be followed by: "--migration hot|cold" in the help.
_memefs_choices() # OPTION PROGRAM [VERB]
{
    local option=$1
    shift
    "$@" --help 2>/dev/null | sed -nE "s/^  $option ([a-z|]+)( .*)?\$/\\1/p" | tr '|' '\n'
}

# The mount options: what the help of "memefs mount" lists without dashes.
_memefs_mount_options()
{
    "$1" mount --help 2>/dev/null | sed -nE 's/^  ([a-z_]+)(=[^ ]*)?(  .*)?$/\1\2/p' | sed 's/=.*/=/'
}

# The deployments that there are. Others may have put anything there: only what may be a name is one.
_memefs_deployments()
{
    local dir
    for dir in /run/memefs/*/; do
        dir=${dir%/}
        dir=${dir##*/}
        if [[ $dir =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]]; then
            printf '%s\n' "$dir"
        fi
    done
}

# Those lines of the input that begin with the word. Not by "compgen -W", which expands what it is given, so that
# it runs the commands in a name like $(…).
_memefs_reply() # WORD
{
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == "$1"* ]]; then
            COMPREPLY+=("$line")
        fi
    done
}

_memefs()
{
    local program=$1 word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb=
    COMPREPLY=()
    if [ "$COMP_CWORD" -gt 1 ]; then
        verb=${COMP_WORDS[1]}
    fi
    case $previous in
    --config | --lm | --log) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --mount | --state-dir) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --name) _memefs_reply "$word" < <(_memefs_deployments) ;;
    -o | --options)
        _memefs_reply "$word" < <(_memefs_mount_options "$program")
        compopt -o nospace 2>/dev/null # a value or a comma follows
        ;;
    --*) _memefs_reply "$word" < <(_memefs_choices "$previous" "$program" ${verb:+"$verb"}) ;;
    esac
    if [ ${#COMPREPLY[@]} -gt 0 ]; then
        return
    fi
    if [[ $word == -* ]]; then
        _memefs_reply "$word" < <(_memefs_options "$program" ${verb:+"$verb"})
    elif [ -z "$verb" ]; then
        _memefs_reply "$word" < <(_memefs_verbs "$program")
    elif [ "${program##*/}" = memefs ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}

complete -o filenames -F _memefs cm memefs
