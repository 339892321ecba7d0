// Sends one change to an API server on loopback, with the rights of an administrator.

import { request } from 'node:https'

export async function write(
  origin: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<number> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  return await new Promise((done, fail) => {
    const sent = request(
      `${origin}${path}`,
      {
        method,
        rejectUnauthorized: false,
        headers: { authorization: 'Bearer admintoken', 'content-type': type },
      },
      (response) => {
        response.resume()
        response.on('end', () => done(response.statusCode ?? 0))
      },
    )
    sent.on('error', fail)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
