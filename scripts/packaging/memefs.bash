# bash completion for cm and memefs. Verbs and options come from the programs' own --help, so that
# this file need not be kept in step.
# shellcheck shell=bash

# The verbs that the help lists, one per line and indented by two.
_memefs_verbs()
{
    "$1" --help 2>/dev/null | sed -nE "s/^  ($1 )?([a-z][a-z-]*)( .*)?\$/\2/p" | grep -vx "$1"
}

_memefs_options()
{
    "$@" --help 2>/dev/null | grep -oE -- '(^|[[:space:],[])--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u
}

_memefs()
{
    local program=$1 word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb=
    COMPREPLY=()
    if [ "$COMP_CWORD" -gt 1 ]; then
        verb=${COMP_WORDS[1]}
    fi
    case $previous in
    --provider) mapfile -t COMPREPLY < <(compgen -W local -- "$word") ;;
    --migration) mapfile -t COMPREPLY < <(compgen -W 'hot cold' -- "$word") ;;
    --weights) mapfile -t COMPREPLY < <(compgen -W 'memory bandwidth' -- "$word") ;;
    --config | --lm) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --mount | --state-dir) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --name) mapfile -t COMPREPLY < <(compgen -W "$(ls /run/memefs 2>/dev/null)" -- "$word") ;;
    *)
        if [[ $word == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_memefs_options "$program" ${verb:+"$verb"})" -- "$word")
        elif [ -z "$verb" ]; then
            mapfile -t COMPREPLY < <(compgen -W "$(_memefs_verbs "$program")" -- "$word")
        elif [ "$program" = memefs ]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
        fi
        ;;
    esac
}

complete -o filenames -F _memefs cm memefs
