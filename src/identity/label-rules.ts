// Which rules make label sets from facts. Saved state says by which its labels were made, so that a later version can
// map old sets to new ones and numbers stay.

/** Changes with every change of how labels are written or which a set has. */
export const LABEL_RULES = 1
