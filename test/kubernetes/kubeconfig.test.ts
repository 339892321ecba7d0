// Which kubeconfigs give which access, and the places of faults in others.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { formatFault } from '../../src/core/errors.ts'
import {
  splitServer,
  type AccessResult,
  type ApiAccess,
} from '../../src/kubernetes/connection/access.ts'
import { parseKubeconfig } from '../../src/kubernetes/connection/kubeconfig.ts'
import { podAccess } from '../../src/kubernetes/connection/service-account.ts'

const folder = mkdtempSync(join(tmpdir(), 'namegate-kubeconfig-'))
after(() => rmSync(folder, { recursive: true }))

function kubeconfig(cluster: string, user: string): string {
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    '- name: other',
    '  cluster: { server: "http://unread" }',
    '- name: c',
    `  cluster: ${cluster}`,
    'users:',
    '- name: u',
    `  user: ${user}`,
    'contexts:',
    '- name: x',
    '  context: { cluster: c, user: u }',
    'current-context: x',
    '',
  ].join('\n')
}

const SERVER = 'server: "https://10.0.0.1:6443"'
const NOTHING: ApiAccess = {
  origin: 'https://10.0.0.1:6443',
  prefix: '',
  serverName: undefined,
  authority: undefined,
  isInsecure: false,
  token: undefined,
  client: undefined,
}

function faultsOf(result: AccessResult): readonly string[] {
  return result.kind === 'faults' ? result.faults.map(formatFault) : []
}

test('parseKubeconfig reads the cluster and the user of the current context', () => {
  const base64 = Buffer.from('PEM').toString('base64')
  const rows: readonly (readonly [
    cluster: string,
    user: string,
    access: Partial<ApiAccess>,
    reason: string,
  ])[] = [
    [`{ ${SERVER} }`, '{}', {}, 'neither token nor certificate'],
    [`{ ${SERVER} }`, '{ token: abc }', { token: { kind: 'text', text: 'abc' } }, 'a token'],
    [
      `{ ${SERVER} }`,
      '{ token: abc, tokenFile: t }',
      { token: { kind: 'file', path: '/etc/kube/t' } },
      'the file can be renewed',
    ],
    [
      `{ ${SERVER}, certificate-authority: /ca.pem, tls-server-name: api }`,
      '{}',
      { authority: { kind: 'file', path: '/ca.pem' }, serverName: 'api' },
      'an absolute path, and another name in the certificate',
    ],
    [
      `{ ${SERVER}, certificate-authority: ca, certificate-authority-data: ${base64} }`,
      '{}',
      { authority: { kind: 'text', text: 'PEM' } },
      'data is used before the file',
    ],
    [`{ ${SERVER}, insecure-skip-tls-verify: true }`, '{}', { isInsecure: true }, 'no check'],
    [
      `{ ${SERVER} }`,
      `{ client-certificate: c.pem, client-key-data: ${base64} }`,
      {
        client: {
          certificate: { kind: 'file', path: '/etc/kube/c.pem' },
          key: { kind: 'text', text: 'PEM' },
        },
      },
      'a client certificate',
    ],
    [
      '{ server: "https://rancher.test/k8s/clusters/c-1/" }',
      '{}',
      { origin: 'https://rancher.test', prefix: '/k8s/clusters/c-1' },
      'a server below a path',
    ],
  ]
  for (const [cluster, user, access, reason] of rows) {
    const result = parseKubeconfig(kubeconfig(cluster, user), '/etc/kube/config')
    assert.deepEqual(result, { kind: 'access', access: { ...NOTHING, ...access } }, reason)
  }
})

test('parseKubeconfig reports faults with their line and column', () => {
  const rows: readonly (readonly [text: string, fault: RegExp, reason: string])[] = [
    [
      kubeconfig(`{ ${SERVER} }`, '{ exec: { command: aws } }'),
      /^config:10:11: users\[0\]\.user\.exec: is not supported: namegate runs no credential plugins; use a token/,
      'a credential plugin',
    ],
    [
      kubeconfig(`{ ${SERVER} }`, '{ auth-provider: { name: gcp } }'),
      /^config:10:11: .*auth-provider: is not supported/,
      'an old credential plugin',
    ],
    [
      kubeconfig(`{ ${SERVER} }`, '{ username: u }'),
      /^config:10:11: .*username: is not supported/,
      'a password',
    ],
    [
      kubeconfig(`{ ${SERVER}, proxy-url: "http://p" }`, '{}'),
      /^config:7:\d+: .*proxy-url: is not supported/,
      'a proxy',
    ],
    [
      kubeconfig('{ server: "http://10.0.0.1" }', '{}'),
      /^config:7:\d+: .*server: found "http:\/\/10\.0\.0\.1", expected an https address/,
      'no TLS',
    ],
    [kubeconfig('{}', '{}'), /^config:13:\d+: .*found no server in this cluster/, 'no server'],
    [
      kubeconfig(`{ ${SERVER} }`, '{ client-key: k }'),
      /^config:10:11: .*client-key: can not stand without client-certificate/,
      'half of a client certificate',
    ],
    [
      kubeconfig(`{ ${SERVER}, certificate-authority-data: "%%" }`, '{}'),
      /^config:7:\d+: .*found "%%", expected base64/,
      'no base64',
    ],
    [
      kubeconfig(`{ ${SERVER} }`, '{ tokn: x }'),
      /^config:10:11: unknown field users\[0\]\.user\.tokn; did you mean "token"\?/,
      'a slip',
    ],
    [
      'current-context: x\ncontexts:\n- name: y\n  context: {}\n',
      /^config:1:18: current-context: found no "x" in contexts/,
      'a context that is missing',
    ],
    ['clusters: []\n', /^config:1:1: found no current-context, expected one/, 'no context'],
    ['a: [', /^config:/, 'no YAML'],
  ]
  for (const [text, fault, reason] of rows) {
    assert.match(faultsOf(parseKubeconfig(text, 'config'))[0] ?? 'no fault', fault, reason)
  }
})

test('splitServer takes only https addresses', () => {
  const rows: readonly (readonly [text: string, origin: string | undefined, reason: string])[] = [
    ['https://10.0.0.1', 'https://10.0.0.1', 'the usual port'],
    ['https://[2001:db8::1]:6443', 'https://[2001:db8::1]:6443', 'IPv6'],
    ['http://10.0.0.1', undefined, 'no TLS'],
    ['10.0.0.1:6443', undefined, 'no scheme'],
    ['https://user@host', undefined, 'a password'],
    ['https://host/?a=b', undefined, 'a query'],
    ['https://', undefined, 'no host'],
  ]
  for (const [text, origin, reason] of rows) assert.equal(splitServer(text)?.origin, origin, reason)
})

test('podAccess uses the service account of the pod, or names what is missing', () => {
  const inPod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
  assert.match(
    faultsOf(podAccess({}, folder))[0] ?? '',
    /KUBERNETES_SERVICE_HOST: found no address.*kubeconfig/,
  )
  assert.match(faultsOf(podAccess(inPod, folder))[0] ?? '', /token: found no file/)
  writeFileSync(join(folder, 'token'), 't')
  const rows: readonly (readonly [host: string, origin: string, reason: string])[] = [
    ['10.96.0.1', 'https://10.96.0.1', 'IPv4'],
    ['fd00::1', 'https://[fd00::1]', 'IPv6'],
  ]
  for (const [host, origin, reason] of rows) {
    const result = podAccess({ ...inPod, KUBERNETES_SERVICE_HOST: host }, folder)
    const expected: ApiAccess = {
      ...NOTHING,
      origin,
      authority: { kind: 'file', path: join(folder, 'ca.crt') },
      token: { kind: 'file', path: join(folder, 'token') },
    }
    assert.deepEqual(result, { kind: 'access', access: expected }, reason)
  }
})
