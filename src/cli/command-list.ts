// The commands that there are, for help, completion and hints. What they do is loaded by commands.ts.

export interface CommandText {
  readonly name: string
  readonly summary: string
  /** Words that may follow, for completion. */
  readonly words: readonly string[]
}

export const COMMANDS = [
  command('run', 'run the daemon'),
  command(
    'exec',
    'run a command that reaches the names it may use and nothing else',
    '--allow',
    '--policy',
    '--upstream',
    '--audit',
    '--suggest',
    '--publish',
    '--grace',
    '--uplink',
    '--json',
    '--quiet',
  ),
  command('status', 'state of the daemon', '--ready'),
  command(
    'get',
    'what the daemon knows, as tables',
    'endpoints',
    'policies',
    'selectors',
    'names',
    'ipcache',
    'identities',
    'resources',
    'datapath',
  ),
  command(
    'flows',
    'DNS decisions and drops as they happen, and those kept',
    '--follow',
    '--kept',
    '--since',
    '--verdict',
    '--last',
  ),
  command('ask', 'ask a name through the proxy', '--as', '--server', '--tcp'),
  command(
    'audit',
    'let denied traffic pass, and report it',
    'on',
    'off',
    '--node',
    '--endpoint',
    '--selector',
  ),
  command(
    'resource',
    'labels for addresses outside, at run time',
    'set',
    'remove',
    '--address',
    '--label',
    '--port',
    '--ttl',
  ),
  command(
    'datapath',
    'verify, detach, close or set the mode of enforcement',
    'verify',
    'detach',
    'close',
    'mode',
    'enforce',
    'audit',
    'bypass',
  ),
  command(
    'intercept',
    'rules that bring queries to the listeners',
    'up',
    'down',
    'show',
    '--iptables',
  ),
  command('match', 'does a pattern match names'),
  command(
    'policy',
    'check policy files, explain what they do, or suggest them',
    'check',
    'explain',
    'lint',
    'suggest',
    'test',
    'wait',
  ),
  command('state', 'look into a file of the state folder', 'show', 'check'),
  command('config', 'check the config file, or print its schema', 'check', 'schema'),
  command('version', 'version of this program'),
  command('completion', 'completion for bash'),
  command('help', 'this list, or the help of a command'),
] as const satisfies readonly CommandText[]

export type CommandName = (typeof COMMANDS)[number]['name']

function command<Name extends string>(
  name: Name,
  summary: string,
  ...words: readonly string[]
): CommandText & { readonly name: Name } {
  return { name, summary, words }
}
