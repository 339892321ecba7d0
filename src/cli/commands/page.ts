// `runPage` runs `namegate page`. The command serves the daemon's web page on a port of this host, until a signal. It passes the page on from
// the admin socket, so the daemon can run in another network namespace and needs no `admin.page`.

import { randomBytes } from 'node:crypto'
import { PageServer } from '../../admin/page/page-server.ts'
import { parseAddress } from '../../core/ip.ts'
import { invariant } from '../../core/invariant.ts'
import { openClient } from '../client.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { ForwardedPage } from '../page/forwarded-page.ts'
import { watchDaemon } from '../page/watch-daemon.ts'

const HOST = '127.0.0.1'
/** Used by the examples of `admin.page.address`, too. */
const PORT = '9466'
const PORT_MAX = 65_535
const TOKEN_OCTETS = 16
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export async function runPage(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('page takes no argument')
  const text = read.texts.get('port') ?? PORT
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
  if (port > PORT_MAX) {
    return read.wrong(
      `--port: found ${JSON.stringify(text)}, expected a number from 0 to ${PORT_MAX}`,
    )
  }
  const client = await openClient(read)
  // A daemon that does not run, or does not serve this user, is reported now and not in the browser.
  await client.request('GET /v1/status')
  const server = await servePage(client.socket, port)
  output.stdout(
    `the page of the daemon at ${client.socket}: http://${HOST}:${server.port}/\n` +
      `token, which the page asks for: ${server.token}\n` +
      'Ctrl-C ends it.\n',
  )
  const endWatch = watchDaemon(client.socket, (text) => output.stderr(`namegate: ${text}\n`))
  await new Promise<void>((done) => {
    for (const signal of SIGNALS) process.once(signal, () => done())
  })
  endWatch()
  await server.stop()
  return EXIT_OK
}

export interface PassedOn {
  readonly port: number
  readonly token: string
  stop(): Promise<void>
}

/** Serves the page of the daemon at `socket`, with a token of its own. Throws UnavailableError if the port is taken. */
export async function servePage(socket: string, port: number): Promise<PassedOn> {
  const token = randomBytes(TOKEN_OCTETS).toString('hex')
  const address = parseAddress(HOST)
  invariant(address !== undefined, 'the address of loopback is one')
  const server = new PageServer({
    page: new ForwardedPage(socket),
    config: { address: { ...address, port }, tokenFile: undefined, tls: undefined, write: false },
    token,
    named: '--port',
    onError: () => undefined,
  })
  await server.start()
  return { port: server.port, token, stop: async () => await server.stop() }
}
