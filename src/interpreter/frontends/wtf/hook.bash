# Open Interpreter: remembers the last command that failed, for `wtf`. It stays in this shell until `wtf` is called.
if [[ $- == *i* && -z ${__wtf_status+x} ]]; then
  __wtf_status= __wtf_command= __wtf_folder= __wtf_ran=0 __wtf_number=0 __wtf_before=0 __wtf_sure=

  __wtf_after() {
    local last=$? line
    if (( __wtf_ran )); then
      [[ -z ${WTF_RECORD-} ]] || printf '\e]133;D;%s\a' "$last"
      if (( last )); then
        line=$(HISTTIMEFORMAT='' builtin history 1)
        if [[ $line =~ ^\ *[0-9]+[\ *]\ (.*)$ && ${BASH_REMATCH[1]} != wtf && ${BASH_REMATCH[1]} != wtf\ * ]]; then
          __wtf_status=$last __wtf_command=${BASH_REMATCH[1]:0:8000} __wtf_folder=$PWD __wtf_sure=1
          # A command that the history was told to leave out has no number of its own.
          (( __wtf_number != __wtf_before )) || __wtf_sure=
        fi
      fi
      __wtf_ran=0
    fi
    return "$last"
  }

  # PS0 is looked at when a command is about to run: a note in this shell, and no process.
  PS0=${PS0-}'${__wtf_ran:$((__wtf_ran = 1, __wtf_before = __wtf_number, __wtf_number = \!, 9)):0}${WTF_RECORD:+'$'\e]133;C\a''}'
  if [[ $(declare -p PROMPT_COMMAND 2>/dev/null) == 'declare -a'* ]]; then
    PROMPT_COMMAND=(__wtf_after "${PROMPT_COMMAND[@]}")
  else
    PROMPT_COMMAND="__wtf_after${PROMPT_COMMAND:+; $PROMPT_COMMAND}"
  fi

  wtf() {
    WTF_SHELL=bash WTF_STATUS=$__wtf_status WTF_COMMAND=$__wtf_command WTF_FOLDER=$__wtf_folder \
      WTF_SURE=$__wtf_sure command wtf "$@"
  }
fi
