// Finds the access to the API server that the configuration names.

import { readTextFile } from '../../config/files.ts'
import type { AccessResult } from './access.ts'
import { parseKubeconfig } from './kubeconfig.ts'
import { podAccess } from './service-account.ts'

/** Returns the access to the API server. `kubeconfig`: path; empty: the service account of this pod. */
export function findAccess(kubeconfig: string): AccessResult {
  if (kubeconfig === '') return podAccess(process.env)
  const read = readTextFile(kubeconfig)
  return read.kind === 'ok'
    ? parseKubeconfig(read.text, kubeconfig)
    : { kind: 'faults', faults: [read.fault] }
}
