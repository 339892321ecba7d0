import { conformance } from './suite.ts'

conformance('redirect')
