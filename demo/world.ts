// The names and addresses of the demo's internet, in one place, so that both tellings show the same.

import type { Zones } from '../test/support/peers/zones.ts'

export const SHOP = { name: 'www.shop.example', address: '198.18.40.1' }
/** An address that no allowed name resolves to. */
export const STRANGER = '198.18.66.6'
export const DENIED_NAME = 'exfil.evil.example'
export const BUCKET = { name: 'bucket.s3.example', first: '198.18.0.1', size: 1000, perAnswer: 8 }

export const ZONES: Zones = {
  names: {
    [SHOP.name]: [SHOP.address, '2001:db8:80::1'],
    'late.shop.example': ['198.18.40.9'],
    [DENIED_NAME]: [STRANGER],
    'www.cloud.example': ['198.18.50.1', '198.18.50.2'],
    'dev.cloud.example': ['198.18.50.2', '198.18.50.3'],
  },
  pools: {
    [BUCKET.name]: { first: BUCKET.first, size: BUCKET.size, perAnswer: BUCKET.perAnswer, ttl: 5 },
  },
}
