import {
  request as httpRequest,
  STATUS_CODES,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Duplex } from 'node:stream';
import { endpointTimeout, endpointUnreachable, Refusal } from '../../model/refusals.ts';
import { flow } from '../reply/flow.ts';
import { connectEndpoint, type EndpointOptions } from './agent.ts';
import { failureOf, passOn, STALL_MS, type ExchangeTerms } from './exchange.ts';
import { answeredHeaders, forwardedHeaders } from './headers.ts';
import { ClientGone } from '../corridor/request-body.ts';

export interface Upgrade {
  readonly request: IncomingMessage;
  /** Used if the sandbox does not upgrade. */
  readonly response: ServerResponse;
  readonly head: Buffer;
}

const KEEP_ALIVE_MS = 20_000;
const AGREE_MS = 30_000;

/**
 * Forwards an upgrade, then bytes both ways. Resolves with the final status; rejects if no answer
 * was given.
 */
export const upgradeEndpoint = (
  { request, response, head }: Upgrade,
  terms: ExchangeTerms,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const { endpoint, clock } = terms;
    const client = request.socket;
    const asked = ask(request, terms);
    terms.follower?.asked(asked);
    const callOff = clock.at(clock.now() + AGREE_MS, () =>
      fail(endpointTimeout('it takes too long')),
    );
    const fail = (error: Error): void => {
      callOff();
      asked.destroy();
      if (response.headersSent) client.destroy();
      reject(error);
    };
    const gone = (): void => {
      callOff();
      asked.destroy();
      if (response.writableFinished) resolve(response.statusCode);
      else reject(new ClientGone('the client left'));
    };
    client.once('close', gone);
    asked.on('error', (error) => fail(failureOf(error, false)));
    asked.once('response', (answer) => {
      callOff();
      try {
        terms.follower?.answered(answer);
        passOn(answer, response, { ...terms, fail });
      } catch (error) {
        fail(
          error instanceof Refusal
            ? error
            : endpointUnreachable(error instanceof Error ? error.message : String(error)),
        );
      }
    });
    asked.once('upgrade', (answer, stream, firstBytes) => {
      callOff();
      terms.follower?.answered(answer);
      client.off('close', gone);
      response.detachSocket(client);
      client.setKeepAlive(true, KEEP_ALIVE_MS).setNoDelay(true);
      client.write(switching(answeredHeaders(answer, { ...terms, upgrade: true })));
      if (firstBytes.length > 0) stream.unshift(firstBytes);
      if (head.length > 0) client.unshift(head);
      endpoint.touch();
      Promise.all([relay(client, stream, terms), relay(stream, client, terms)]).then(
        () => resolve(101),
        reject,
      );
    });
  });

const ask = (request: IncomingMessage, terms: ExchangeTerms): ClientRequest => {
  const options: EndpointOptions = {
    endpoint: terms.endpoint,
    method: 'GET',
    path: terms.target.path,
    headers: forwardedHeaders(request, { ...terms, upgrade: true, awaitsContinue: false }),
    createConnection: (given, callback) => {
      connectEndpoint(given as EndpointOptions, callback);
      return undefined;
    },
  };
  const asked = httpRequest(options);
  asked.end();
  return asked;
};

/** Resolves when `from` is closed. Cuts `to` if its pending bytes do not drain in time. */
const relay = (from: Duplex, to: Duplex, { clock, endpoint }: ExchangeTerms): Promise<void> =>
  new Promise((resolve) => {
    const cut = (): void => {
      from.destroy();
      to.destroy();
    };
    flow(from, to, { clock, moved: endpoint.touch, stalled: cut, stallMs: STALL_MS });
    from.once('end', () => to.end());
    from.on('error', cut);
    from.once('close', () => {
      resolve();
      if (!from.readableEnded) return cut();
      const callOff = clock.at(clock.now() + STALL_MS, cut);
      to.once('close', callOff);
      to.end(() => to.destroy());
    });
  });

const switching = (headers: readonly string[]): string => {
  const lines = [`HTTP/1.1 101 ${STATUS_CODES[101] ?? ''}`];
  for (let at = 0; at + 1 < headers.length; at += 2)
    lines.push(`${headers[at] ?? ''}: ${headers[at + 1] ?? ''}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
};
