// `namegate completion`: a bash function made from the table of commands.

import { EXIT_OK, readArguments, usageError, type CommandOutput } from '../command.ts'
import { COMMANDS } from '../command-list.ts'

const HELP = `Usage: namegate completion [bash]

Prints completion for bash.

Options:
  --config FILE     accepted, not used
  -h, --help        this text

Examples:
  source <(namegate completion)
  namegate completion > /etc/bash_completion.d/namegate
`

const COMMON = ['--help', '--config', '--socket', '-o']

export function completionCommand(args: readonly string[], output: CommandOutput): number {
  const read = readArguments(args, HELP, output)
  if (typeof read === 'number') return read
  const [shell = 'bash', ...rest] = read.positionals
  if (shell !== 'bash' || rest.length > 0) {
    return usageError(`completion is for bash, found ${shell}`, HELP, output)
  }
  output.stdout(bashScript())
  return EXIT_OK
}

function bashScript(): string {
  const names = COMMANDS.map(({ name }) => name).join(' ')
  const cases = COMMANDS.map(
    ({ name, words }) => `    ${name}) words='${[...words, ...COMMON].join(' ')}' ;;\n`,
  ).join('')
  return `_namegate() {
  local words
  case \${COMP_WORDS[COMP_CWORD-1]} in
    --config|--socket) COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")); return ;;
    -o) COMPREPLY=(json); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${names}'
  else
    case \${COMP_WORDS[1]} in
${cases.replace(/^ {4}/gm, '      ')}    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _namegate namegate
`
}
