# Open Interpreter: remembers the last command that failed, for `wtf`. It stays in this shell until `wtf` is called.
if [[ -o interactive && -z ${__wtf_status+x} ]]; then
  typeset -g __wtf_status= __wtf_command= __wtf_folder= __wtf_running=

  __wtf_before() {
    __wtf_running=$1
    [[ -z ${WTF_RECORD-} ]] || printf '\e]133;C\a'
  }

  __wtf_after() {
    local last=$?
    if [[ -n $__wtf_running ]]; then
      [[ -z ${WTF_RECORD-} ]] || printf '\e]133;D;%s\a' $last
      if (( last )) && [[ $__wtf_running != wtf && $__wtf_running != 'wtf '* ]]; then
        __wtf_status=$last __wtf_command=${__wtf_running[1,8000]} __wtf_folder=$PWD
      fi
      __wtf_running=
    fi
    return $last
  }

  preexec_functions=(__wtf_before $preexec_functions)
  precmd_functions=(__wtf_after $precmd_functions)

  wtf() {
    WTF_SHELL=zsh WTF_STATUS=$__wtf_status WTF_COMMAND=$__wtf_command WTF_FOLDER=$__wtf_folder \
      WTF_SURE=1 command wtf "$@"
  }
fi
