// Names of interfaces that can stand in a rule: what the kernel takes, less what nft and iptables would read as
// something else (quotes, backslashes, and `*`, `+`, `!` that mean more than themselves).

export function isInterfaceName(name: string): boolean {
  return /^[\w.@=%~^,-]{1,15}$/.test(name) && name !== '.' && name !== '..'
}
