import { randomUUID } from 'node:crypto';
import { eventually } from './eventually.ts';
import { HttpClient, type HttpAnswer } from './http-client.ts';

const CREATIONS = ['/sandboxes', '/sandboxpools', '/admin/sandbox-templates'];
const COMES_AGAIN = ['UNAVAILABLE', 'IDEMPOTENCY_IN_FLIGHT'];

/** A repeated POST with these headers creates once. */
export const createdOnce = (): Readonly<Record<string, string>> => ({
  'Idempotency-Key': randomUUID(),
});

/**
 * Retries 503, as the contract permits: a replica may answer so if Redis or the API server stalled.
 * Creations carry an Idempotency-Key, since the first may have succeeded.
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

/** Patient for several replicas; one daemon never needs retries. */
export const clientOf = ({ ports }: { readonly ports: readonly number[] }): typeof HttpClient =>
  ports.length > 1 ? PatientClient : HttpClient;
