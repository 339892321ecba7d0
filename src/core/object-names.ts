// Names the objects of a cluster among the source files. An object has the place of a file: its name stands in faults, views and the state
// where a file has its path. No path begins with this prefix, because paths of source files are absolute.

const PREFIX = 'kubernetes:'

/** Returns `kubernetes:KIND/NAMESPACE/NAME`, or `kubernetes:KIND/NAME` for an object without a namespace. */
export function objectName(kind: string, namespace: string | undefined, name: string): string {
  return `${PREFIX}${kind}/${namespace === undefined ? '' : `${namespace}/`}${name}`
}

export function isObjectName(path: string): boolean {
  return path.startsWith(PREFIX)
}

/** The kind of the object with this name. */
export function objectKind(name: string): string {
  return name.slice(PREFIX.length, name.indexOf('/'))
}
