// The completion scripts for bash, zsh and fish. A script calls `namegate completion words`, which prints one word a line, with a tab and a
// few words about it; or the line `:files`, after which the shell offers files. Nothing is printed on stderr.

/** Shells that have a script. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** What `completion words` prints if files can follow. */
export const FILES_LINE = ':files'

/** bash splits words at `:` and `=`, so the line is split here, and what stands before the last of these is removed from each word. */
const BASH = `_namegate() {
  local line current cut words=()
  read -ra words <<<"\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=('')
  current=\${words[\${#words[@]}-1]}
  cut=\${current%"\${current##*[:=]}"}
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ${FILES_LINE} ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "\${current#"$cut"}")
      return
    fi
    line=\${line%%$'\\t'*}
    COMPREPLY+=("\${line#"$cut"}")
  done < <("\${COMP_WORDS[0]}" completion words -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _namegate namegate
`

const ZSH = `#compdef namegate
_namegate() {
  local line
  local -a lines found
  lines=("\${(@f)$("\${words[1]}" completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${lines[1]} == ${FILES_LINE} ]]; then
    compset -P '--*='
    _files
    return
  fi
  for line in "\${(@)lines}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe -V namegate found
}
if [[ \${funcstack[1]} == _namegate ]]; then
  _namegate "$@"
else
  compdef _namegate namegate
fi
`

const FISH = `function __namegate_words
  set -l before (commandline -opc)
  set -l current (commandline -ct)
  set -l lines ($before[1] completion words -- $before[2..-1] "$current" 2>/dev/null)
  if test "$lines[1]" = ${FILES_LINE}
    __fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current")
  else
    printf '%s\\n' $lines
  end
end
complete -c namegate -f -a '(__namegate_words)'
`

export const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH }
