import { conformance } from './suite.ts'

conformance('explicit')
