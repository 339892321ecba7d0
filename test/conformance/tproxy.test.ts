import { conformance } from './suite.ts'

conformance('tproxy')
