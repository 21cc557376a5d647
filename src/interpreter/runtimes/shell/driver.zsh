# Sourced by a non-interactive zsh whose standard input is its socket to the host. For each block the host sends a
# few lines: __oi_enter, the block as a file to source, __oi_leave. Frames go back on descriptor 0, which blocks never
# see, since they get a separate standard input. Only builtins are used, so nothing here forks.

builtin zmodload zsh/parameter zsh/system

# Sends a frame. Not with printf: zsh runs traps inside the signal handler, so Ctrl-C would send it twice or lock up.
__oi_send() {
  builtin syswrite -o 0 -- "$1"$'\n'
}

# Special parameters worth keeping; the others describe the shell, not what the user did.
__oi_kept=(PATH FPATH CDPATH MANPATH IFS NULLCMD READNULLCMD TIMEFMT TMPPREFIX WORDCHARS PS4)

# -- blocks -------------------------------------------------------------------------------------------------------

# __oi_enter BLOCK TERMINAL
__oi_enter() {
  __oi_interrupted= __oi_over= __oi_reached=$__oi_status __oi_block=$1
  exec >"$2"
  builtin return "$__oi_status" # the block sees $? as the last one left it
}

# __oi_at BLOCK LINE: begins a piece of the block, if the one before reached its end
__oi_at() {
  __oi_status=$?
  if [[ -n $__oi_reached ]]; then
    __oi_status=$__oi_reached __oi_reached=
    __oi_send "{\"event\":\"active_line\",\"block\":$1,\"line\":$2}"
  elif [[ -z $__oi_over ]]; then
    __oi_over=/dev/null __oi_last=$__oi_status # sourced instead of the remaining pieces
  fi
  builtin return "$__oi_status"
}

# __oi_leave BLOCK ARGUMENTS...; __oi_status is set, and __oi_block is empty, so an interrupt has nothing to end.
__oi_leave() {
  __oi_keep_traps
  __oi_options=("${(@k)options[(R)on]}")
  builtin emulate -L zsh
  __oi_how=ok
  [[ -z $__oi_over ]] || __oi_status=$__oi_last
  [[ $__oi_status == 0 ]] || __oi_how=error
  [[ -z $__oi_interrupted && $__oi_status != 130 ]] || __oi_how=interrupted __oi_status=130
  exec >/dev/null
  __oi_report
  __oi_send "{\"event\":\"done\",\"block\":$1,\"status\":\"$__oi_how\",\"exit_code\":$__oi_status}"
  __oi_save $__oi_folder/state.$1 "${@:2}"
}

# Writes the directory and the exported variables, for the other languages.
__oi_report() {
  {
    builtin pwd
    builtin printf '\0'
    for __oi_name in ${(k)parameters[(R)*export*]}; do
      builtin print -rN -- "$__oi_name=${(P)__oi_name}"
    done
  } >|$__oi_folder/exports
}

# -- traps --------------------------------------------------------------------------------------------------------

# Keeps our traps: on INT if the user has none, and before the user's on EXIT. An EXIT trap cannot be seen or set in a
# function: the host's lines write the list of traps before they call us, and set ours afterwards.
__oi_keep_traps() {
  builtin setopt local_options no_local_traps # else the trap would end with this function
  __oi_trap=$(<"$__oi_folder/trap")
  [[ $__oi_trap == *TRAPINT* || $__oi_trap == *" INT"* ]] || __oi_watch_interrupts
  if [[ $__oi_trap != *__oi_exit* ]]; then
    __oi_users_exit=
    trap() { [[ $3 != EXIT ]] || __oi_users_exit=$2 } # reads the list
    builtin eval "$__oi_trap"
    builtin unfunction trap
  fi
}

# A trap function that returns non-zero ends everything up to the `always` around the block.
__oi_watch_interrupts() {
  TRAPINT() {
    [[ -z $__oi_block ]] && return 0
    __oi_interrupted=1
    return 130
  }
}

__oi_exit() {
  __oi_status=$? __oi_options=("${(@k)options[(R)on]}")
  ((ZSH_SUBSHELL == 0)) || return 0
  builtin eval "$__oi_users_exit"
  builtin emulate -L zsh
  __oi_users_exit= # it has run; the next shell starts without it
  __oi_report
  __oi_save $__oi_folder/state.exit
}

# -- state --------------------------------------------------------------------------------------------------------

# __oi_save FILE ARGUMENTS...: saves what a new shell needs to continue; the last line marks it as complete.
__oi_save() {
  {
    builtin printf 'builtin unsetopt aliases\nbuiltin cd -- %q\n' $PWD
    builtin printf 'dirstack=(%s)\n' "${(j: :)${(@q)dirstack}}"
    __oi_names=(${(k)parameters[(R)*(special|local)*]} ${(M)${(k)parameters}:#__oi_*})
    builtin typeset -p ${${(k)parameters}:|__oi_names} ${(k)parameters[(I)(${(j:|:)~__oi_kept})]}
    builtin typeset -p __oi_status __oi_users_exit
    builtin functions
    builtin printf 'umask '
    builtin umask
    builtin trap
    builtin alias -L
    (($# > 1)) && builtin printf 'set --' && builtin printf ' %q' "${@:2}" && builtin printf '\n'
    builtin printf '__oi_set_options %s\n' ${(j: :)__oi_options}
    builtin printf '# whole\n'
  } >|$1 2>/dev/null
}

# __oi_set_options NAME...: turns these on and all others off, among those that a running shell may change.
__oi_set_options() {
  __oi_names=(${(k)options})
  builtin unsetopt ${__oi_names:|argv} 2>/dev/null
  builtin setopt "$@" 2>/dev/null
}

# -- start --------------------------------------------------------------------------------------------------------

# __oi_start FOLDER
__oi_start() {
  __oi_folder=$1 __oi_status=${__oi_status-0} __oi_users_exit=${__oi_users_exit-} __oi_block= __oi_interrupted=
  builtin unsetopt monitor
  __oi_keep_traps
}

__oi_ready() {
  __oi_send "{\"event\":\"ready\",\"language\":\"zsh\",\"version\":\"$ZSH_VERSION\"}"
}

# __oi_snapshot FOLDER FILE: runs in a separate shell that has read the user's start-up files
__oi_snapshot() {
  __oi_options=("${(@k)options[(R)on]}") __oi_status=0 __oi_users_exit=
  builtin emulate -L zsh
  __oi_folder=$1
  __oi_save $2
}
