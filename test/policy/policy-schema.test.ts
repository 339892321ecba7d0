// The JSON Schema of policies, which `namegate policy schema` prints for editors. A validator accepts every policy that the loader accepts,
// and refuses what the loader refuses, except faults that need more than a schema.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parseAllDocuments } from 'yaml'
import { formatFault } from '../../src/core/errors.ts'
import { isMapping } from '../../src/documents/source-document.ts'
import { loadPolicies, loadPolicyObjects } from '../../src/policy/load/load.ts'
import { policyJsonSchema } from '../../src/policy/schema/policy-schema.ts'
import { Random } from '../support/models/random.ts'
import { formatPolicy } from '../support/models/policy-document.ts'
import { randomDocument } from '../support/models/random-document.ts'
import { runsOf } from '../support/properties.ts'

const validate = new Ajv2020({ allErrors: true, strictTypes: false }).compile(policyJsonSchema())

function documentsIn(text: string): readonly unknown[] {
  const documents = parseAllDocuments(text)
  if (documents.some(({ errors }) => errors.length > 0)) return []
  try {
    return documents.map((each) => {
      const value: unknown = each.toJS()
      return value
    })
  } catch {
    return [] // An alias without an anchor.
  }
}

/** Texts that can be policies in a file: the file, the code blocks of a page, the policies of a scenario. */
function textsIn(path: string): readonly string[] {
  const text = readFileSync(path, 'utf8')
  if (path.endsWith('.md'))
    return [...text.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, yaml = '']) => yaml)
  if (!path.endsWith('.scn')) return [text]
  return [...text.matchAll(/^POLICY .*\n((?:  .*\n|\n)*)/gm)].map(([, yaml = '']) => yaml)
}

test('policyJsonSchema accepts every policy of this repository that the loader accepts', () => {
  const files = ['config', 'deploy', 'docs', 'demo', 'test'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ya?ml|json|md|scn)$/.test(name))
      .map((name) => `${folder}/${name}`),
  )
  let count = 0
  for (const file of ['README.md', ...files]) {
    for (const value of textsIn(file).flatMap(documentsIn)) {
      if (!isMapping(value) || !('spec' in value || 'specs' in value)) continue
      if (loadPolicyObjects(value, 'p').faults.length > 0) continue
      count++
      assert.ok(validate(value), `${file}: ${JSON.stringify(validate.errors)}`)
    }
  }
  assert.ok(count >= 60, `only ${count} policies were found`)
})

test('policyJsonSchema accepts random policies', () => {
  const random = new Random(Number(process.env['NAMEGATE_SEED'] ?? 20_261_123))
  for (let i = 0; i < runsOf(300); i++) {
    const text = formatPolicy(randomDocument(random, `p${i}`))
    if (loadPolicies(text, 'p').faults.length > 0) continue
    const [value] = documentsIn(text)
    assert.ok(validate(value), `${text}\n${JSON.stringify(validate.errors)}`)
  }
})

/** Faults that need more than a schema. */
const BEYOND: readonly (readonly [fault: RegExp, reason: string])[] = [
  [/found the .* again/, 'compares two documents'],
  [/expected a prefix inside/, 'compares two prefixes'],
  [/\.endPort: (?:found|can not stand)/, 'compares it with the port'],
  [/beside rules\.dns/, 'compares the ports with the rules'],
  [/: expected (?:an address or prefix|a prefix length)/, 'reads the address'],
  [/\.port: found "65536"/, 'reads the number in a text'],
]

const CORPUS = 'test/policy/corpus'

test('policyJsonSchema refuses the broken policies that a schema can refuse', () => {
  const names = readdirSync(CORPUS).filter((name) => name !== 'yaml.txt')
  const files = names.map((name) => readFileSync(`${CORPUS}/${name}`, 'utf8'))
  const broken = files.flatMap((text) => text.split(/(?:^=> .*\n)+/m))
  const seen = new Set<RegExp>()
  let refused = 0
  for (const text of broken) {
    const documents = documentsIn(text)
    const faults = loadPolicies(text, 'p').faults.map(formatFault).join('\n')
    if (documents.length === 0) continue
    if (documents.some((each) => !validate(each))) {
      refused++
      continue
    }
    const beyond = BEYOND.find(([fault]) => fault.test(faults))
    assert.ok(beyond !== undefined, `${text}\n${faults}`)
    seen.add(beyond[0])
  }
  assert.equal(seen.size, BEYOND.length, 'every exception is needed')
  assert.ok(refused >= 150, `only ${refused} were refused`)
})

const HEADER = 'apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p }\n'

const BAD: readonly (readonly [spec: string, why: string])[] = [
  ['egres: [{}]', 'an unknown field'],
  ['egress: []', 'no rule'],
  ['egress: [{ toFQDNs: [{ matchNam: a.example }] }]', 'an unknown field inside'],
  ['egress: [{ toFQDNs: [{ matchName: "*.example" }] }]', 'a star in a name'],
  ['egress: [{ toFQDNs: [{ matchName: a, matchPattern: a }] }]', 'two names'],
  ['egress: [{ toFQDNs: [{ matchName: a }], toCIDR: [10.0.0.0/8] }]', 'two kinds of peers'],
  ['egress: [{ toFQDNs: }]', 'a list that is commented out'],
  ['egress: [{ icmps: [] }]', 'a field that namegate refuses'],
  ['egress: [{ toEntities: [wrld] }]', 'an unknown entity'],
  ['egress: [{ toPorts: [{ ports: [{ port: "a_b" }] }] }]', 'no port'],
  ['egress: [{ toPorts: [{ ports: [{ port: 1, protocol: TPC }] }] }]', 'no protocol'],
  ['egress: [{ toPorts: [{ rules: { dns: [] } }] }]', 'rules without ports'],
  ['egressDeny: [{ toFQDNs: [{ matchName: a }] }]', 'a name in a deny rule'],
  ['egress: [{}], ingress: [{}]', 'ingress'],
  ['egress: [{}], enableDefaultDeny: { ingress: true }', 'default deny for ingress'],
]

for (const [spec, why] of BAD) {
  test(`policyJsonSchema refuses what the loader refuses: ${why}`, () => {
    const text = `${HEADER}spec: { endpointSelector: {}, ${spec} }\n`
    assert.ok(loadPolicies(text, 'p').faults.length > 0)
    const [value] = documentsIn(text)
    assert.ok(!validate(value), text)
  })
}

test('policyJsonSchema gives the reason why namegate refuses a field', () => {
  assert.match(JSON.stringify(policyJsonSchema()), /is not supported: namegate decides egress only/)
})
