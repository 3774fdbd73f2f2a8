import { request as requestPlainly } from 'node:http';
import { request as requestByTls } from 'node:https';

/** Says what is sent, and where to. */
export interface WebhookPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

/**
 * Sends a POST over a connection of its own, and returns the status of the answer, whose body is
 * not read. Follows no redirect. Rejects where no answer came, or the signal was aborted.
 */
export const post = ({ url, headers, body, signal }: WebhookPost): Promise<number> =>
  new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? requestByTls : requestPlainly;
    const request = send(url, { method: 'POST', headers, signal, agent: false }, (response) => {
      response.on('error', () => undefined);
      resolve(response.statusCode ?? 0);
      response.destroy();
    });
    request.on('error', reject);
    request.end(body);
  });
