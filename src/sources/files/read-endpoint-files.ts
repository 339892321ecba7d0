// Endpoints of the configured files as they stand now, for commands that do something before or beside a daemon.

import { readFileSync } from 'node:fs'
import type { PlacedPath } from '../../config/config.ts'
import { findPolicyFiles } from '../../config/files.ts'
import { InvalidInputError } from '../../core/errors.ts'
import { parseEndpoints, type EndpointRecord, type EndpointsFile } from '../../endpoints/file.ts'
import type { Parsed } from './source-files.ts'

/** What makes the records of a file whole, such as addresses of their interfaces. */
type Completion = (file: EndpointsFile) => Parsed<EndpointRecord>

const asWritten: Completion = ({ endpoints, faults }) => ({ items: endpoints, faults })

/** Throws InvalidInputError with the faults of all files when there are any. */
export function readEndpointFiles(
  paths: readonly PlacedPath[],
  complete: Completion = asWritten,
): readonly EndpointRecord[] {
  const found = paths.map(({ path }) => findPolicyFiles(path))
  const read = found
    .flatMap(({ files }) => files)
    .map((file) => complete(parseEndpoints(readFileSync(file, 'utf8'), file)))
  const faults = [...found, ...read].flatMap((each) => each.faults)
  if (faults.length > 0) throw new InvalidInputError(faults)
  return read.flatMap(({ items }) => items)
}
