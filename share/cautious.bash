# Bash completion for `cautious`: verbs, options and configuration keys as the program itself lists them.
_cautious_keys() {
  cautious train --print-config 2>/dev/null |
    awk '/^\[/ {section = substr($1, 2, length($1) - 2)} /^(# )?[a-z_0-9]+ =/ {sub(/^# /, ""); print "--" section "." $1 "="}'
}
_cautious() {
  local word=${COMP_WORDS[COMP_CWORD]} words=() help i
  for ((i = 1; i < COMP_CWORD; ++i)); do [[ ${COMP_WORDS[i]} == -* ]] || words+=("${COMP_WORDS[i]}"); done
  help=$(cautious "${words[@]:0:2}" --help 2>/dev/null || cautious "${words[@]:0:1}" --help 2>/dev/null)
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(grep -oE '^  (-[a-z],)?--[a-z_-]+' <<<"$help" | grep -oE -e '--[a-z_-]+')" -- "$word"))
    if [[ ${#COMPREPLY[@]} == 0 && ${words[0]-} == train ]]; then
      COMPREPLY=($(compgen -W "$(_cautious_keys)" -- "$word"))
      compopt -o nospace 2>/dev/null
    fi
  else
    COMPREPLY=($(compgen -W "$(awk '/^(Verbs|Subcommands):/ {on = 1; next} /^$/ {on = 0} on {print $1}' <<<"$help")" -- "$word"))
    ((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _cautious cautious
