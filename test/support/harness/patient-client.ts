import { randomUUID } from 'node:crypto';
import { eventually } from './eventually.ts';
import { HttpClient, type HttpAnswer } from './http-client.ts';

const CREATIONS = ['/sandboxes', '/sandboxpools', '/admin/sandbox-templates'];
const COMES_AGAIN = ['UNAVAILABLE', 'IDEMPOTENCY_IN_FLIGHT'];

/** Returns headers by which a POST that is repeated creates once, whatever came of the first. */
export const createdOnce = (): Readonly<Record<string, string>> => ({
  'Idempotency-Key': randomUUID(),
});

/**
 * A client that comes again where a service says that it has no time now, as the contract has it:
 * one of several replicas does so where Redis or the API server stood still for a moment. What
 * creates something has an Idempotency-Key of its own, for it may have been done all the same.
 */
export class PatientClient extends HttpClient {
  override async send(
    ...[method, path, ask = {}]: Parameters<HttpClient['send']>
  ): Promise<HttpAnswer> {
    const creates = method === 'POST' && ask.body !== undefined && CREATIONS.includes(path);
    const headers = { ...(creates ? createdOnce() : {}), ...ask.headers };
    let answer = await super.send(method, path, { ...ask, headers });
    if (answer.json.errorCode === 'UNAVAILABLE')
      await eventually(
        async () => {
          answer = await super.send(method, path, { ...ask, headers });
          return !COMES_AGAIN.includes(answer.json.errorCode ?? '');
        },
        `${method} ${path} is answered by a service that has the time`,
        () => answer.text,
      );
    return answer;
  }
}

/** Returns a patient client for several replicas; one daemon alone always has the time. */
export const clientOf = ({ ports }: { readonly ports: readonly number[] }): typeof HttpClient =>
  ports.length > 1 ? PatientClient : HttpClient;
