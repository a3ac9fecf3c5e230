# Completion for `cautious` in bash; in zsh after `autoload -U +X bashcompinit && bashcompinit`. No program is started: the
# table is what the programs say of themselves, put in by share/manual.py when they are built.
#   VERB: verbs below it. VERB OPTIONS, VERB ARGUMENT, VERB --option, KEYS, VERB KEYS, KEY --section.key: what can stand there,
#   names first, then @file or @dir for those, and @list where commas separate several names.
typeset -gA _cautious_table
_cautious_table=(
  # TABLE
)
_cautious() {
  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} verb= front= key names i
  # bash splits --key=value at the '=', and also --option key=value,key=value; zsh does not
  if [[ $word == "=" ]]; then word=
  elif [[ $option == "=" ]]; then
    for ((i = COMP_CWORD; i > 1; i -= 2)); do [[ ${COMP_WORDS[i-1]} == "=" ]] || break; done
    option=${COMP_WORDS[i]}
    [[ $option == -* ]] || option=${COMP_WORDS[i-1]}
  elif [[ $word == --*=* ]]; then option=${word%%=*} front=${word%%=*}= word=${word#*=}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    key=${COMP_WORDS[i]}
    if [[ $verb == launch && ( $key == train || $key == finetune ) ]]; then verb=$key
    elif [[ " ${_cautious_table[$verb VERBS]-} " == *" $key "* ]]; then verb=${verb:+$verb }$key
    fi
  done
  key="$verb $option"
  [[ $option == --*.* ]] && key="KEY $option"
  if [[ -n ${_cautious_table[$key]+there} && $option == -* ]]; then
    names=${_cautious_table[$key]}
  elif [[ $word == -* ]]; then
    names=${_cautious_table[$verb OPTIONS]-}
    if [[ $word == --*.* && ( $verb == train || $verb == finetune || $verb == compare ) ]]; then
      names=${_cautious_table[$verb KEYS]-${_cautious_table[KEYS]-}}
    fi
  else
    names="${_cautious_table[$verb VERBS]-} ${_cautious_table[$verb ARGUMENT]-}"
    [[ $verb == launch ]] && names="train finetune"
  fi
  [[ $names == *@list* && $word == *,* ]] && front+=${word%,*}, word=${word##*,}
  COMPREPLY=($(compgen -P "$front" -W "${names%%@*}" -- "$word"))
  if [[ ${#COMPREPLY[@]} == 0 && $word == --*-* ]]; then  # options are found with - or _, and are listed with one of them
    i=${word#--}
    COMPREPLY=($(compgen -P "$front" -W "${names%%@*}" -- "--${i//-/_}"))
  fi
  if [[ $names == *@file* ]]; then COMPREPLY+=($(compgen -P "$front" -f -- "$word"))
  elif [[ $names == *@dir* ]]; then COMPREPLY+=($(compgen -P "$front" -d -- "$word"))
  fi
  [[ $names == *= || $names == *"= "* ]] && compopt -o nospace 2>/dev/null
  [[ $names == *@[fd]i* ]] && compopt -o filenames 2>/dev/null
  return 0
}
complete -F _cautious cautious
