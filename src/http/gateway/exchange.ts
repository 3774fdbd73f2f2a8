import {
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import {
  InstanceGone,
  PortUnreachable,
  type PortConnection,
} from '../../contracts/sandbox-driver.ts';
import {
  endpointTimeout,
  endpointUnreachable,
  Refusal,
  sandboxNotRunning,
} from '../../model/refusals.ts';
import type { OpenEndpoint } from '../../actors/sandbox/commands/sandbox-operations.ts';
import { flow } from '../reply/flow.ts';
import type { ClientAddresses } from '../limits/client-address.ts';
import { connectEndpoint, type EndpointOptions, type GatewayAgent } from './agent.ts';
import { answeredHeaders, answeredTrailers, forwardedHeaders } from './headers.ts';
import type { EndpointTarget } from './target.ts';
import { awaitsContinue, ClientGone, hasBody } from '../corridor/request-body.ts';

/** Holds what an exchange with an endpoint goes by. */
export interface ExchangeTerms {
  readonly endpoint: OpenEndpoint;
  readonly target: EndpointTarget;
  readonly requestId: string;
  readonly clock: Clock;
  readonly agent: GatewayAgent;
  readonly clients: ClientAddresses;
  /** Absent: nobody else follows it. */
  readonly follower?: ExchangeFollower;
}

/** Follows an exchange, or an upgrade, from outside. */
export interface ExchangeFollower {
  /** It is asked; where a kept connection ended, once more. */
  readonly asked: (asked: ClientRequest) => void;
  /** An answer has begun; what this throws is given in its place. */
  readonly answered: (answer: IncomingMessage) => void;
}

/** From the last byte of the request to the first of the answer. */
const ANSWER_MS = 300_000;
/** Whoever takes nothing for so long is cut. */
export const STALL_MS = 60_000;
const MAX_ANSWER_HEADER_BYTES = 16_384;
const KEEP_ALIVE_MS = 30_000;
/** For the first of a body whose length has been said. */
const HEAD_MS = 5;

/**
 * Forwards one request and its answer, both as they come. Resolves once the answer is complete;
 * rejects where none of it was given, with a Refusal, or with ClientGone where nobody waits for it
 * any more. What breaks after that cuts the connection.
 */
export const exchange = async (
  request: IncomingMessage,
  response: ServerResponse,
  terms: ExchangeTerms,
): Promise<void> => {
  // What only reads may be asked twice: a kept connection can end at the very moment when it is
  // used.
  const repeatable = !hasBody(request) && SAFE.has(request.method ?? '');
  try {
    await attempt(request, response, { ...terms, kept: repeatable });
  } catch (error) {
    if (!(error instanceof StaleConnection)) throw error;
    await attempt(request, response, { ...terms, kept: false });
  }
};

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The kept connection ended before it gave an answer. */
class StaleConnection extends Error {
  override readonly name = 'StaleConnection';
}

const attempt = (
  request: IncomingMessage,
  response: ServerResponse,
  terms: ExchangeTerms & { readonly kept: boolean },
): Promise<void> =>
  new Promise((resolve, reject) => {
    const { clock, endpoint } = terms;
    const asked = ask(request, terms);
    terms.follower?.asked(asked);
    let answered = false;
    const tooLong = (): void => fail(endpointTimeout('it takes too long'));
    let callOff = clock.at(clock.now() + ANSWER_MS, tooLong);
    const leave = (): void => {
      callOff();
      stopBody();
      response.off('close', gone);
      asked.destroy();
    };
    const fail = (error: Error): void => {
      leave();
      reject(error);
    };
    const gone = (): void => {
      leave();
      if (response.writableFinished) resolve();
      else reject(new ClientGone('the client left'));
    };
    const sent = (): void => {
      endpoint.touch();
      if (answered) return;
      callOff();
      callOff = clock.at(clock.now() + ANSWER_MS, tooLong);
    };
    const stopBody = sendBody(request, asked, {
      clock,
      moved: sent,
      stalled: () => fail(endpointTimeout('it takes nothing of the request')),
    });
    response.once('close', gone);
    // Once it answers, what it no longer reads of the request is no failure.
    asked.on('error', (error) => {
      if (!answered) fail(failureOf(error, terms.kept && asked.reusedSocket));
    });
    // Without an error where it changes the protocol unasked.
    asked.once('close', () => {
      if (!answered) fail(endpointUnreachable('it ended the connection without an answer'));
    });
    asked.once('continue', () => response.writeContinue());
    asked.once('response', (answer) => {
      answered = true;
      callOff();
      try {
        terms.follower?.answered(answer);
        passOn(answer, response, { ...terms, fail });
      } catch (error) {
        fail(
          error instanceof Refusal
            ? error
            : endpointUnreachable(
                'its answer can not be passed on: ' +
                  `${error instanceof Error ? error.message : String(error)}`,
              ),
        );
      }
    });
  });

const ask = (
  request: IncomingMessage,
  terms: ExchangeTerms & { readonly kept: boolean },
): ClientRequest => {
  const options: EndpointOptions = {
    endpoint: terms.endpoint,
    method: request.method,
    path: terms.target.path,
    maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
    headers: forwardedHeaders(request, {
      ...terms,
      upgrade: false,
      awaitsContinue: awaitsContinue.has(request),
    }),
    ...(terms.kept ? { agent: terms.agent } : { createConnection }),
  };
  return httpRequest(options);
};

/** For requests that take no kept connection. */
const createConnection: NonNullable<EndpointOptions['createConnection']> = (options, callback) => {
  connectEndpoint(options as EndpointOptions, callback);
  return undefined;
};

/** Returns a function that stops it. */
const sendBody = (
  request: IncomingMessage,
  asked: ClientRequest,
  terms: { readonly clock: Clock; readonly moved: () => void; readonly stalled: () => void },
): (() => void) => {
  if (!hasBody(request)) {
    asked.end();
    return () => {};
  }
  asked.flushHeaders(); // its client may send no byte of the body for long, and waits for a 100
  const end = (): void => {
    const trailers: [string, string][] = [];
    for (let at = 0; at + 1 < request.rawTrailers.length; at += 2)
      trailers.push([request.rawTrailers[at] ?? '', request.rawTrailers[at + 1] ?? '']);
    if (trailers.length > 0)
      asked.addTrailers(trailers.filter(([name]) => !FRAMING.has(name.toLowerCase())));
    asked.end();
  };
  request.once('end', end);
  const stop = flow(request, asked, { ...terms, stallMs: STALL_MS });
  return () => {
    stop();
    request.off('end', end);
  };
};

const FRAMING: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'content-length',
  'host',
  'cookie',
  'service-api-key',
  'trailer',
]);

export const passOn = (
  answer: IncomingMessage,
  response: ServerResponse,
  terms: ExchangeTerms & { readonly fail: (error: Error) => void },
): void => {
  const { endpoint, clock, fail } = terms;
  const { statusCode = 0, statusMessage = '' } = answer;
  if (PHRASE.test(statusMessage)) response.statusMessage = statusMessage;
  response.writeHead(statusCode, answeredHeaders(answer, { ...terms, upgrade: false }));
  flushHead(answer, response);
  let complete = false;
  const whole = (): void => {
    complete = true;
    const trailers = answeredTrailers(answer);
    if (trailers.length > 0) response.addTrailers(trailers);
    response.end();
    if (!answer.complete) answer.destroy();
  };
  const stalled = (): void => fail(endpointTimeout('its client takes nothing of the answer'));
  passBody(answer, response, { clock, moved: endpoint.touch, stalled, stallMs: STALL_MS, whole });
  answer.on('error', (error) => {
    if (!complete) fail(error);
  });
};

/** Matches a reason that can be passed on in a status line. */
const PHRASE = /^[\t\x20-\x7e]{1,256}$/;

/**
 * A head goes out in one piece with the first of its body, where that comes soon. A stream of
 * events says at once that it is there.
 */
const flushHead = (answer: IncomingMessage, response: ServerResponse): void => {
  const flush = (): void => {
    if (response.writableEnded || response.destroyed) return;
    response.flushHeaders();
    response.socket?.setKeepAlive(true, KEEP_ALIVE_MS);
  };
  if (answer.headers['content-length'] === undefined) return void setImmediate(flush);
  const timer = setTimeout(flush, HEAD_MS);
  response.once('close', () => clearTimeout(timer));
};

/** `reused`: over a connection that was kept, which may have ended before the request came. */
export const failureOf = (
  error: Error & { readonly code?: string | number },
  reused: boolean,
): Error => {
  const code = String(error.code ?? '');
  if (reused && STALE.has(code))
    return new StaleConnection('a kept connection ended', { cause: error });
  if (error instanceof PortUnreachable) return endpointUnreachable(error.message);
  if (error instanceof InstanceGone) return sandboxNotRunning('Stopping');
  if (error.name === 'TimeoutError') return endpointTimeout('it takes no connection');
  if (error instanceof Refusal || code === '') return error;
  return endpointUnreachable(
    WORDS[code] ??
      (code.startsWith('HPE_') ? 'what it says is not valid HTTP' : 'the connection broke'),
  );
};

const STALE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);
const WORDS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: `its headers are larger than ${MAX_ANSWER_HEADER_BYTES} bytes`,
  ECONNRESET: 'it ended the connection without an answer',
};

interface AnswerTerms {
  readonly clock: Clock;
  /** Bytes went through. */
  readonly moved: () => void;
  /** The client took nothing for `stallMs`. */
  readonly stalled: () => void;
  readonly stallMs: number;
  /** Once, when all of it has been written. */
  readonly whole: () => void;
}

/** Shorter bodies are not worth memory of their own. */
const LONG_BYTES = 512 * 1024;

/** Passes on an answer's body. What breaks is for the caller. */
const passBody = (answer: IncomingMessage, response: ServerResponse, terms: AnswerTerms): void => {
  let read = 0;
  const count = (bytes: Buffer): void => {
    read += bytes.length;
  };
  answer.on('data', count);
  const stop = flow(answer, response, terms);
  answer.once('end', terms.whole);
  const length = lengthOf(answer);
  const connection: PortConnection = answer.socket;
  if (length < LONG_BYTES || response.req.method === 'HEAD' || connection.divert === undefined)
    return;
  // Past the parser, which would give each piece memory of its own for the collector to find.
  let left: number | undefined;
  let callOff = (): void => {};
  response.once('close', () => callOff());
  connection.divert((bytes, done) => {
    if (left === undefined) {
      if (answer.readableLength > 0 || read >= length) return false;
      left = length - read;
      stop();
    }
    const wanted = left < bytes.length ? bytes.subarray(0, left) : bytes;
    left -= wanted.length;
    terms.moved();
    callOff = terms.clock.at(terms.clock.now() + terms.stallMs, terms.stalled);
    response.write(wanted, (error) => {
      callOff();
      if (error) return;
      if (left === 0) terms.whole();
      else done();
    });
    return true;
  });
};

const lengthOf = ({ headers }: IncomingMessage): number => {
  const length = headers['content-length'];
  return length === undefined || headers['transfer-encoding'] !== undefined ? 0 : Number(length);
};
