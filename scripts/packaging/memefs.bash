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
    "$1" mount --help 2>/dev/null | sed -nE 's/^  ([a-z_]+)(=[^ ]*)?  .*$/\1\2/p' | sed 's/=.*/=/'
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
    --name) mapfile -t COMPREPLY < <(compgen -W "$(ls /run/memefs 2>/dev/null)" -- "$word") ;;
    -o)
        mapfile -t COMPREPLY < <(compgen -W "$(_memefs_mount_options "$program")" -- "$word")
        compopt -o nospace 2>/dev/null # a value or a comma follows
        ;;
    --*) mapfile -t COMPREPLY < <(compgen -W "$(_memefs_choices "$previous" "$program" ${verb:+"$verb"})" -- "$word") ;;
    esac
    if [ ${#COMPREPLY[@]} -gt 0 ]; then
        return
    fi
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_memefs_options "$program" ${verb:+"$verb"})" -- "$word")
    elif [ -z "$verb" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_memefs_verbs "$program")" -- "$word")
    elif [ "${program##*/}" = memefs ]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}

complete -o filenames -F _memefs cm memefs
