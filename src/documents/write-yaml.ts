// Writes a value of JSON as YAML 1.2 text. The text ends with a line break.

import { stringify } from 'yaml'

export function toYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0 })
}
