// Endpoints as the files have them, but for what else decides on auditing.

import type { AuditControl } from '../enforcement/audit-control.ts'
import type { EndpointRecord } from '../enforcement/endpoint-control.ts'
import type { EndpointRecord as FileRecord } from '../endpoints/file.ts'

export function auditedRecords(
  records: readonly FileRecord[],
  control: AuditControl,
): readonly EndpointRecord[] {
  return records.map(({ name, addresses, labels, hook, audit }) => {
    const { on } = control.decide({ name, labels, audit })
    return { name, addresses, labels, hook, audit: on }
  })
}
