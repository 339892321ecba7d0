// All rows, in the order of docs/spec/correctness: 1.1 to 1.11, and the attacks of 2.

import { ATTACKS } from './rows/attacks.ts'
import { RFC_7873 } from './rows/cookies.ts'
import { RFC_8914 } from './rows/ede.ts'
import { RFC_2308 } from './rows/rfc2308.ts'
import { RFC_5452 } from './rows/rfc5452.ts'
import { RFC_5625 } from './rows/rfc5625.ts'
import { RFC_6891 } from './rows/rfc6891.ts'
import { RFC_7766 } from './rows/rfc7766.ts'
import { RFC_8906 } from './rows/rfc8906.ts'
import { RFC_9460 } from './rows/rfc9460.ts'
import { RFC_9619 } from './rows/rfc9619.ts'
import type { Row } from './rows/row.ts'
import { RFC_2181 } from './rows/ttl.ts'

export const ROWS: readonly Row[] = [
  ...RFC_5625,
  ...RFC_7766,
  ...RFC_6891,
  ...RFC_5452,
  ...RFC_8906,
  ...RFC_9619,
  ...RFC_9460,
  ...RFC_2308,
  ...RFC_2181,
  ...RFC_7873,
  ...RFC_8914,
  ...ATTACKS,
]
