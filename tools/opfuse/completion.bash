# Completion of the opfuse command for bash. Verbs and flags are asked from the command itself, so they are always its own.
_opfuse() {
  local cur=${COMP_WORDS[COMP_CWORD]} words
  if [[ $COMP_CWORD -eq 1 ]]; then
    words=$(opfuse --help 2>/dev/null | sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z-]*\) .*/\1/p')
  elif [[ $cur == -* ]]; then
    words=$(opfuse "${COMP_WORDS[1]}" --help 2>/dev/null | sed -n 's/^  \(-[^ ]*\).*/\1/p' | tr ',' '\n' | grep -- '^-')
  elif [[ $cur == zoo* ]]; then
    COMP_WORDBREAKS=${COMP_WORDBREAKS//:}
    words=$(opfuse zoo --json 2>/dev/null | sed -n 's/.*"name": "\([^"]*\)".*/zoo:\1/p')
  else
    compopt -o default 2>/dev/null
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _opfuse opfuse
