// Clients whose endpoint the daemon gets late (`unknown-clients`), through the daemon with real files and sockets, on fake time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flowView } from '../../src/admin/views/flows.ts'
import { TcpClient, UdpClient, until } from '../support/peers/client.ts'
import { endpointsText, policyText } from '../support/nodes/daemon-files.ts'
import { withLab, type DaemonLab } from '../support/labs/daemon-lab.ts'
import { readAnswer } from '../support/peers/dns-client.ts'
import { queryFor } from '../support/peers/upstream.ts'

const CLIENTS = 200
/**
 * The interval at which the endpoints file grows. A change takes effect when the file was quiet for 100 ms, with a look every 100 ms. No
 * change takes effect exactly at the end of the wait.
 */
const EVERY_MS = 280
const SETTLED_MS = 200
const STEPS = 11
const WAIT_MS = 2000
const NAME = 'www.example'
const ELDER = '127.0.0.1'

const FILES = {
  'policy.yaml': policyText('web', [NAME]),
  'endpoints.yaml': endpointsText({ elder: ELDER }),
}

interface Client {
  readonly address: string
  /** The time at which the file gets the client's record, in milliseconds after its question. */
  readonly toldAt: number
  readonly link: UdpClient | TcpClient
}

/** One in ten asks over TCP. */
async function openClient(lab: DaemonLab, i: number): Promise<Client> {
  const address = `127.1.0.${i + 1}`
  const [port = 0] = lab.daemon.proxy.listeners.entries.map((entry) => entry.port)
  const kind = i % 10 === 0 ? TcpClient : UdpClient
  const toldAt = Math.floor((i * STEPS) / CLIENTS) * EVERY_MS
  return { address, toldAt, link: await kind.open(port, address) }
}

function told({ link }: Client): string {
  const [answer] = link.received
  if (answer === undefined) return 'nothing'
  const { rcode, ede } = readAnswer(answer)
  return ede === undefined ? rcode : `${rcode} ${ede}`
}

/** The endpoints file with all clients whose record is due. */
function endpointsAt(clients: readonly Client[], time: number): string {
  const due = clients.filter(({ toldAt }) => toldAt <= time)
  const entries = due.map(({ address }, i) => [`late-${i}-${address}`, address] as const)
  return endpointsText({ elder: ELDER, ...Object.fromEntries(entries) })
}

test('Daemon serves 200 new clients whose record arrives within 2 s, refuses the others with EDE 18, and delays no other client', async () => {
  await withLab({ files: FILES }, async (lab) => {
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, i) => await openClient(lab, i)),
    )
    for (const [i, { link }] of clients.entries()) {
      link.send(queryFor(NAME, { id: i, udpSize: 1232 }))
    }
    const { unknown } = lab.daemon.proxy
    await until('all wait', () => unknown.waiting === CLIENTS)
    for (let step = 0; step < STEPS; step++) {
      const time = step * EVERY_MS
      lab.write('endpoints.yaml', endpointsAt(clients, time))
      await lab.pass(SETTLED_MS)
      // No time passes between the question and the answer.
      assert.equal(await lab.verdict(NAME, ELDER), 'NOERROR', 'a known client never waits')
      const answered = clients.filter(({ toldAt }) => {
        return time + SETTLED_MS >= WAIT_MS || toldAt <= time
      })
      const what = `${answered.length} answers at ${time + SETTLED_MS} ms`
      await until(what, () => answered.every(({ link }) => link.received.length === 1))
      assert.equal(unknown.waiting, CLIENTS - answered.length, `the others wait at ${time} ms`)
      await lab.pass(EVERY_MS - SETTLED_MS)
    }
    for (const client of clients) {
      const inTime = client.toldAt + SETTLED_MS <= WAIT_MS
      assert.equal(
        told(client),
        inTime ? 'NOERROR' : 'REFUSED 18',
        `record after ${client.toldAt} ms`,
      )
    }
    const late = clients.filter(({ toldAt }) => toldAt + SETTLED_MS > WAIT_MS)
    assert.ok(late.length > 50 && late.length < 100, `${late.length} records were too late`)
    for (const { link } of clients) link.close()
    const [{ address } = { address: '' }] = late
    assert.equal(await lab.verdict(NAME, address), 'NOERROR', 'known now, it asks again')
    assert.equal(lab.daemon.proxy.upstream.inFlight.count, 0)
  })
})

test('Daemon shows refused clients and malformed queries as flows', async () => {
  await withLab({ files: FILES, config: 'unknown-clients: { wait: 0s }' }, async (lab) => {
    assert.equal(await lab.verdict(NAME, '127.1.0.1'), 'REFUSED 18')
    const [port = 0] = lab.daemon.proxy.listeners.entries.map((entry) => entry.port)
    const client = await UdpClient.open(port, ELDER)
    await client.ask(Buffer.concat([queryFor(NAME, { id: 1 }), Buffer.of(0)]))
    client.close()
    const flows = [0, 1].map((number) => {
      const flow = flowView(lab.admin, number, undefined)
      return { ...flow, time: '' }
    })
    const shared = {
      ...{ time: '', name: NAME, type: 'A', rcode: null, outcome: null, addresses: 0 },
      rules: [],
    }
    assert.deepEqual(flows, [
      {
        ...shared,
        number: 0,
        kind: 'unknown-client',
        verdict: 'deny',
        endpoint: null,
        endpointLabels: [],
        client: '127.1.0.1',
        reason: null,
      },
      {
        ...shared,
        number: 1,
        kind: 'malformed',
        verdict: 'error',
        endpoint: 'elder',
        endpointLabels: ['external:app=elder'],
        client: ELDER,
        reason: 'formerr',
      },
    ])
  })
})

test('Daemon passes the answers of unknown clients with allow-unmanaged, and learns nothing from them', async () => {
  const config = 'unknown-clients: { wait: 2s, then: allow-unmanaged }'
  await withLab({ files: FILES, config }, async (lab) => {
    const asked = lab.ask('anything.example', '127.1.0.1')
    const { unknown, admission } = lab.daemon.proxy
    await until('the query waits', () => unknown.waiting === 1)
    await lab.pass(WAIT_MS)
    assert.deepEqual(
      (await asked).addresses,
      ['192.0.2.1'],
      'no policy applies to an unknown client',
    )
    assert.equal(lab.daemon.core.names.entries.slots.used, 0)
    assert.equal(admission.counters.unmanaged, 1)
  })
})
