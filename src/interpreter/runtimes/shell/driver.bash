# Sourced by a non-interactive bash whose standard input is its socket to the host. For each block the host sends a
# few lines: __oi_enter, the block as a file to source, __oi_leave. Frames go back on descriptor 0, which blocks never
# see, since they get a separate standard input. Only builtins are used, so nothing here forks.

# -- interrupts ---------------------------------------------------------------------------------------------------

__oi_on_interrupt='if __oi_must_jump; then __oi_unwind; return 130; else __oi_unwind; fi'

# A builtin that reads continues after a trap unless the trap returns; jumping out of a wait is the last resort.
__oi_must_jump() {
  [[ $__oi_block && ($__oi_interrupted || $BASH_COMMAND == *read* || $BASH_COMMAND == *mapfile* ||
    $BASH_COMMAND == select*) ]]
}

# Leaves every function and file of the block, because DEBUG returns 2 before the next command.
# The trap is set last: a command after it in here would be skipped, too.
__oi_unwind() {
  [[ $__oi_block ]] || return 0
  if [[ -z $__oi_interrupted ]]; then
    __oi_interrupted=1
    { builtin trap -p DEBUG; builtin shopt -p extdebug; builtin shopt -po functrace errtrace; } >|"$__oi_folder/debugging"
  fi
  builtin shopt -s extdebug
  builtin set -T
  builtin trap __oi_skip DEBUG
}

__oi_skip() {
  [[ -z $__oi_block || ${#FUNCNAME[@]} -lt 2 ]] || return 2
}

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
  if [[ $__oi_reached ]]; then
    __oi_status=$__oi_reached __oi_reached=
    builtin printf '{"event":"active_line","block":%s,"line":%s}\n' "$1" "$2" >&0
  elif [[ -z $__oi_over ]]; then
    __oi_over=/dev/null __oi_last=$__oi_status # sourced instead of the remaining pieces
  fi
  builtin return "$__oi_status"
}

# __oi_leave BLOCK ARGUMENTS...; __oi_status is set, and __oi_block is empty, so an interrupt has nothing to end.
__oi_leave() {
  __oi_how=ok
  [[ -z $__oi_over ]] || __oi_status=$__oi_last
  [[ $__oi_status == 0 ]] || __oi_how=error
  [[ $__oi_status != 130 ]] || __oi_how=interrupted # by a key, or by another program
  if [[ $__oi_interrupted ]]; then
    builtin trap - DEBUG
    builtin shopt -u extdebug
    . "$__oi_folder/debugging"
    __oi_how=interrupted __oi_status=130
  fi
  exec >/dev/null
  __oi_report
  builtin printf '{"event":"done","block":%s,"status":"%s","exit_code":%s}\n' "$1" "$__oi_how" "$__oi_status" >&0
  __oi_keep_traps
  __oi_save "$__oi_folder/state.$1" "${@:2}"
}

# Writes the directory and the exported variables, for the other languages.
__oi_report() {
  { builtin pwd; builtin printf '\0'; __oi_variables -px; } >|"$__oi_folder/exports"
}

# -- traps --------------------------------------------------------------------------------------------------------

# A child that is killed before it runs its program still has our trap.
__oi_on_exit='__oi_status=$?; [[ ${BASHPID-$$} != $$ ]] || __oi_exit "$@"'

# Keeps our traps: before the user's on EXIT, and on INT if the user has none.
__oi_keep_traps() {
  __oi_trapped EXIT
  if [[ $__oi_trap != *__oi_exit* ]]; then
    builtin eval "set -- $__oi_trap"
    __oi_users_exit=${3-}
    builtin trap "$__oi_on_exit" EXIT
  fi
  __oi_trapped INT
  if [[ -z $__oi_trap || ($__oi_interrupted && $__oi_trap == *__oi_unwind*) ]]; then
    builtin trap '' INT # after a jump out of a wait, another handler is installed
    builtin trap "$__oi_on_interrupt" INT
  fi
}

__oi_trapped() {
  builtin trap -p "$1" >|"$__oi_folder/trap"
  IFS= builtin read -r -d '' __oi_trap <"$__oi_folder/trap"
}

__oi_exit() {
  if [[ $__oi_users_exit ]]; then
    builtin eval "$__oi_users_exit"
    __oi_users_exit= # it has run; the next shell starts without it
  fi
  if [[ ${#FUNCNAME[@]} -gt 1 ]]; then
    __oi_peel "${#FUNCNAME[@]}"
    builtin set --
  fi
  __oi_report
  __oi_save "$__oi_folder/state.exit" "$@"
}

# -- state --------------------------------------------------------------------------------------------------------

# __oi_save FILE ARGUMENTS...: saves what a new shell needs to continue; the last line marks it as complete.
__oi_save() {
  {
    [[ -z ${BASHOPTS-} ]] || builtin printf '__oi_options shopt :%s:\n' "$BASHOPTS" # bash 3 has no BASHOPTS
    __oi_places
    __oi_variables -p
    builtin declare -f
    builtin declare -F
    builtin umask -p
    builtin trap -p
    builtin printf 'builtin unalias -a\n' # BASH_ALIASES, one of the variables, may have older aliases
    builtin alias -p
    if [[ $# -gt 1 ]]; then
      builtin printf 'set --'
      builtin printf ' %q' "${@:2}"
      builtin printf '\n'
    fi
    builtin printf '__oi_options setopt :%s:\n' "$SHELLOPTS"
    builtin printf '# whole\n'
  } >|"$1" 2>/dev/null
}

# Saves the working directory and the directory stack of pushd.
__oi_places() {
  for ((__oi_layer = ${#DIRSTACK[@]} - 1; __oi_layer > 0; __oi_layer--)); do
    builtin printf 'builtin pushd -n -- %q\n' "${DIRSTACK[__oi_layer]}"
  done
  builtin printf 'builtin cd -- %q\n' "$PWD"
}

__oi_variables() {
  if [[ $__oi_layers ]]; then builtin printf '%s\n' "$__oi_layers"; else builtin declare "$1"; fi
}

# __oi_peel DEPTH: prints every layer of variables, the global one last, because a function's locals hide the globals.
__oi_peel() {
  builtin compgen -v >|"$__oi_folder/names"
  while IFS= builtin read -r __oi_name; do
    for ((__oi_layer = 0; __oi_layer <= $1; __oi_layer++)); do
      builtin declare -p "$__oi_name" || break
      [[ $__oi_name != __oi_* && $__oi_name != PWD && $__oi_name != DIRSTACK ]] || break # needed below
      builtin unset -v "$__oi_name" || break
    done
  done <"$__oi_folder/names" >|"$__oi_folder/layers" 2>/dev/null
  IFS= builtin read -r -d '' __oi_layers <"$__oi_folder/layers"
}

# __oi_options shopt|setopt :NAME:NAME:...: turns these on and all others off.
__oi_options() {
  builtin compgen -A "$1" >|"$__oi_folder/names"
  while IFS= builtin read -r __oi_name; do
    __oi_layer=-u
    [[ $2 != *:$__oi_name:* ]] || __oi_layer=-s
    [[ $1 == shopt ]] || __oi_layer+=o
    builtin shopt "$__oi_layer" "$__oi_name"
  done <"$__oi_folder/names"
}

# -- start --------------------------------------------------------------------------------------------------------

# __oi_start FOLDER [STATE]
__oi_start() {
  __oi_folder=$1 __oi_status=${__oi_status-0} __oi_users_exit=${__oi_users_exit-} __oi_block= __oi_interrupted= __oi_layers=
  builtin set +o monitor +o history
  builtin shopt -s expand_aliases
  __oi_keep_traps
}

__oi_ready() {
  builtin printf '{"event":"ready","language":"bash","version":"%s"}\n' "$BASH_VERSION" >&0
}

# __oi_snapshot FOLDER FILE: runs in a separate shell that has read the user's start-up files
__oi_snapshot() {
  __oi_folder=$1 __oi_layers=
  __oi_save "$2"
}
