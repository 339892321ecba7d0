import { deepEqual, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { freePort } from './free-port.ts'

test('freePort returns each port once, none of those that the kernel gives to other sockets', async () => {
  const [lowest = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
    .split(/\s+/)
    .map(Number)
  const ports: number[] = []
  for (let i = 0; i < 200; i++) ports.push(await freePort())
  deepEqual([...new Set(ports)], ports)
  ok(Math.max(...ports) < lowest, `${Math.max(...ports)} is below ${lowest}`)
})
