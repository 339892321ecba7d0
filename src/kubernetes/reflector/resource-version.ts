// Compares resource versions of one collection. Kubernetes 1.35 guarantees that they are decimal integers which grow (KEP-5504), and all
// earlier servers on etcd gave the same. Other texts can only be compared for equality, as the API demanded before.

const DECIMAL = /^[1-9][0-9]*$/

/** Returns true if `version` is surely older than `known`. Returns false if the two cannot be compared. */
export function isOlder(version: string, known: string): boolean {
  if (!DECIMAL.test(version) || !DECIMAL.test(known)) return false
  return version.length === known.length ? version < known : version.length < known.length
}
