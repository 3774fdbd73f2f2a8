import { request as requestPlainly } from 'node:http';
import { request as requestByTls } from 'node:https';

export interface WebhookPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

/**
 * Does not read the response's body, and follows no redirect. Rejects without a response, or at an
 * abort.
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
