// This file says which names of interfaces and variables a pattern matches. Patterns of DNS names are in src/policy/match.

/** True if the name matches a pattern. A pattern is a name, or the beginning of a name and a final `*`. */
export function matchesPattern(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern
}
