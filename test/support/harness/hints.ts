import { expect } from 'chai';
import type { HttpAnswer, HttpClient } from './http-client.ts';

/** Sends each request named by a hint, and returns them. Each must get 200. */
export const carryOut = async (
  client: HttpClient,
  hint: string,
  bodies: Readonly<Record<string, object>>,
  sandboxId = '',
): Promise<readonly string[]> => {
  const requests = [...hint.matchAll(/\b(GET|PUT|PATCH|DELETE) \/v1(\/[^\s;,]+)/g)].map(
    ([, method = '', path = '']) => [method, path.replace('{sandboxId}', sandboxId)] as const,
  );
  for (const [method, path] of requests) {
    const answer: HttpAnswer = await client.send(
      method,
      path,
      bodies[method] === undefined ? {} : { body: bodies[method] },
    );
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(200);
  }
  return requests.map(([method, path]) => `${method} ${path}`);
};
