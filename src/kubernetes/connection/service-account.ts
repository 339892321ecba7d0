// Gives access by the service account of the pod in which namegate runs. The kubelet mounts its token and renews it in the file.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { splitServer, type AccessResult } from './access.ts'

/** Where the kubelet mounts the service account. */
export const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Returns the access of this pod. `environment` has the variables that the kubelet sets in each container. */
export function podAccess(
  environment: Readonly<Record<string, string | undefined>>,
  folder: string = SERVICE_ACCOUNT,
): AccessResult {
  const host = environment['KUBERNETES_SERVICE_HOST'] ?? ''
  const port = environment['KUBERNETES_SERVICE_PORT'] ?? ''
  const place = splitServer(`https://${host.includes(':') ? `[${host}]` : host}:${port}`)
  const remedy = 'expected a pod, or the path of a kubeconfig in kubernetes.kubeconfig'
  if (host === '' || place === undefined) {
    return refuse('KUBERNETES_SERVICE_HOST', `found no address of an API server: ${remedy}`)
  }
  const token = join(folder, 'token')
  if (!existsSync(token)) {
    return refuse(token, `found no file: ${remedy}; the pod needs a service account token`)
  }
  return {
    kind: 'access',
    access: {
      ...place,
      serverName: undefined,
      authority: { kind: 'file', path: join(folder, 'ca.crt') },
      isInsecure: false,
      token: { kind: 'file', path: token },
      client: undefined,
    },
  }
}

function refuse(file: string, message: string): AccessResult {
  return { kind: 'faults', faults: [{ position: { file, line: 0, column: 0 }, message }] }
}
