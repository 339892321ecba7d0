// A web server for labs, as a process: HTTP on the given ports of every address of its namespace, both families. Its answers name the
// address and port that were asked.
//   node --import tsx webserver.ts PORT,PORT...
// `/` answers at once. `/stream` sends a line every 100 ms until the client leaves, for connections that must stay open.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

function reachedAt({ socket }: IncomingMessage): string {
  const address = (socket.localAddress ?? '').replace(/^::ffff:/, '')
  return address.includes(':')
    ? `[${address}]:${socket.localPort}`
    : `${address}:${socket.localPort}`
}

function serve(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader('content-type', 'text/plain')
  if (request.url !== '/stream') {
    response.setHeader('connection', 'close')
    response.end(`hello from ${reachedAt(request)}\n`)
    return
  }
  let line = 0
  const timer = setInterval(() => response.write(`${++line}\n`), 100)
  response.on('close', () => clearInterval(timer))
}

for (const port of (process.argv[2] ?? '80').split(',')) {
  const server = createServer(serve)
  server.listen(Number(port), '::')
  await once(server, 'listening')
}
console.log('ready')
