# Bash completion for `cautious`: verbs, options, names and configuration keys as the program itself lists them.
_cautious_keys() {
  cautious train --print-config 2>/dev/null |
    awk '/^\[/ {section = substr($1, 2, length($1) - 2)} /^(# )?[a-z_0-9]+ =/ {sub(/^# /, ""); print "--" section "." $1 "="}'
}
# The names that a verb takes as an argument, if it has a list of them.
_cautious_names() {
  case "$1 $2" in
    "data get") cautious data list 2>/dev/null | awk 'NR > 1 {print $1}' ;;
    "lab toy") sed -nE 's/^  PROBLEM +(.*), or a file .*/\1/p' <<<"$3" | tr -d , ;;
    "reproduce "*) cautious reproduce --list 2>/dev/null | awk '$2 ~ /^[0-9]+$/ {print $1}' ;;
  esac
}
_cautious() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words=() help i
  for ((i = 1; i < COMP_CWORD; ++i)); do [[ ${COMP_WORDS[i]} == -* ]] || words+=("${COMP_WORDS[i]}"); done
  help=$(cautious "${words[@]:0:2}" --help 2>/dev/null || cautious "${words[@]:0:1}" --help 2>/dev/null)
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(grep -oE '^  (-[a-z],)?--[a-z0-9_-]+' <<<"$help" | grep -oE -e '--[a-z0-9_-]+')" -- "$word"))
    if [[ ${#COMPREPLY[@]} == 0 && ${words[0]-} =~ ^(train|finetune)$ ]]; then
      COMPREPLY=($(compgen -W "$(_cautious_keys)" -- "$word"))
      compopt -o nospace 2>/dev/null
    fi
  elif [[ $previous == --scale ]]; then
    COMPREPLY=($(compgen -W "quick day full" -- "$word"))
  else
    [[ $previous == -* ]] ||
      COMPREPLY=($(compgen -W "$(awk '/^(Verbs|Subcommands):/ {on = 1; next} /^$/ {on = 0} on {print $1}' <<<"$help"
                                 _cautious_names "${words[0]-}" "${words[1]-}" "$help")" -- "$word"))
    ((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _cautious cautious
