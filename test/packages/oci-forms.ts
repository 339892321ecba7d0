// The forms in which the documents run the image. Reads the rights of each container from deploy/kubernetes/base/daemonset.yaml and from
// commands `docker run` of the documents.

import { readFileSync } from 'node:fs'
import { parse, stringify } from 'yaml'
import { z } from 'zod'

const BASE = 'deploy/kubernetes/base'

const daemonSet = z.object({
  kind: z.literal('DaemonSet'),
  spec: z.object({
    template: z.object({
      spec: z.object({
        containers: z.tuple([
          z.object({
            args: z.array(z.string()),
            securityContext: z.object({
              readOnlyRootFilesystem: z.literal(true),
              capabilities: z.object({
                drop: z.tuple([z.literal('ALL')]),
                add: z.array(z.string()),
              }),
            }),
            volumeMounts: z.array(z.object({ mountPath: z.string() })),
          }),
        ]),
      }),
    }),
  }),
})

export interface Form {
  readonly args: readonly string[]
  readonly capabilities: readonly string[]
  /** Paths in the container that are folders of the machine. */
  readonly mounts: readonly string[]
  readonly user?: string
  readonly isReadOnly?: boolean
}

/** The capabilities of a Docker container that drops none. */
const DOCKER_CAPABILITIES =
  'AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP SETGID SETPCAP SETUID SYS_CHROOT'

/** The form on every node of a cluster, and its configuration with files in place of the cluster. */
export function nodeForm(): Form & { readonly configuration: string } {
  const manifest = daemonSet.parse(parse(readFileSync(`${BASE}/daemonset.yaml`, 'utf8')))
  const [{ args, securityContext, volumeMounts }] = manifest.spec.template.spec.containers
  const { kubernetes: _, ...config } = z
    .record(z.string(), z.unknown())
    .parse(parse(readFileSync(`${BASE}/namegate.yaml`, 'utf8')))
  const configuration = stringify({
    ...config,
    upstreams: { servers: ['system'] },
    resources: {},
    policies: { paths: ['/etc/namegate/policy.yaml'] },
    endpoints: { files: ['/etc/namegate/endpoints.yaml'] },
    'default-egress': 'deny',
  })
  return {
    args,
    capabilities: securityContext.capabilities.add,
    mounts: volumeMounts.map((each) => each.mountPath),
    configuration,
    isReadOnly: securityContext.readOnlyRootFilesystem,
  }
}

/** The form of the first command `docker run` of a text that has `mark`. Throws at an unknown option. */
export function dockerForm(file: string, mark: string): Form {
  const text = readFileSync(file, 'utf8').replaceAll(/ *\\\n#? */g, ' ')
  const line = text.split('\n').find((each) => /docker run /.test(each) && each.includes(mark))
  const words = (line ?? '').replace(/.*docker run /, '').split(/ +/)
  const found: { -readonly [Key in keyof Form]: Form[Key] } = {
    args: [],
    capabilities: DOCKER_CAPABILITIES.split(' '),
    mounts: [],
  }
  while (words[0]?.startsWith('-') === true) {
    const option = words.shift()
    if (option === '-d') continue
    if (option === '--read-only') found.isReadOnly = true
    else take(found, option ?? '', words.shift() ?? '')
  }
  return { ...found, args: words.slice(1) }
}

function take(found: { -readonly [Key in keyof Form]: Form[Key] }, option: string, value: string) {
  if (option === '--cap-drop' && value === 'ALL') found.capabilities = []
  else if (option === '--cap-add') found.capabilities = [...found.capabilities, value]
  else if (option === '-v') found.mounts = [...found.mounts, value.split(':')[1] ?? '']
  else if (option === '--user') found.user = value
  else if (!['--network', '--name'].includes(option)) throw new Error(`docker run: ${option}`)
}
