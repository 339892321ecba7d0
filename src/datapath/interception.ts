// Where DNS is intercepted. The datapath lets port 53 pass there to the rules that redirect it, and only as long as those rules are in force.
// Written by `intercept up|down` and by the daemon, each time as a whole.

/** An interface on which the rules that redirect DNS stand. */
export interface InterceptedInterface {
  /** Index of the interface in its network namespace. */
  readonly ifindex: number
  /** The families whose rules are in force; with neither it is as if it were not listed. */
  readonly families: { readonly 4: boolean; readonly 6: boolean }
  /** Of a bridge port: the 6 octets of the bridge's own address. DNS in frames for another address stays on the
   *  bridge, where nothing redirects it, so there port 53 is judged by policy. */
  readonly bridgeMac?: Uint8Array
}
