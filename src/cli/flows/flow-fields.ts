// FlowFields is a flow as a daemon of any version sends it: each field can be missing, and its type is unknown.

import type { Flow, KeptFlow } from '../../client/api-types.ts'

/** A flow of any kind, of the ring or kept on disk. */
export type FlowFields = { readonly [Name in KeyIn<Flow | KeptFlow>]?: unknown }
type KeyIn<Shape> = Shape extends unknown ? keyof Shape : never
