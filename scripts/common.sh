# What the scripts share. Sourced, never run; the sourcing script has set -euo pipefail.
# shellcheck shell=bash

# The top of the source tree, wherever the caller stands.
# shellcheck disable=SC2034
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${0##*/}

# What is only for reading by the scripts that source this file.
# shellcheck disable=SC2034
jobs=$(nproc 2>/dev/null || echo 2)

say()
{
    printf '==> %s\n' "$*"
}

die()
{
    printf '%s: %s\n' "$program" "$*" >&2
    exit 1
}

usage_error()
{
    printf '%s: %s (see %s --help)\n' "$program" "$*" "$program" >&2
    exit 2
}

# Prints the comment block that stands below the first line of the calling script.
show_help()
{
    sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "$0"
}

# Runs a command as root: directly, or through sudo where there is one.
as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "must be root (or have sudo) to run: $*"
    fi
}

is_preset()
{
    case $1 in
    release | debug | asan | tsan | fuzz) return 0 ;;
    *) return 1 ;;
    esac
}
