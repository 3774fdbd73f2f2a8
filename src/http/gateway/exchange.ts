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

export interface ExchangeTerms {
  readonly endpoint: OpenEndpoint;
  readonly target: EndpointTarget;
  readonly requestId: string;
  readonly clock: Clock;
  readonly agent: GatewayAgent;
  readonly clients: ClientAddresses;
  readonly follower?: ExchangeFollower;
}

export interface ExchangeFollower {
  /** Called again if the request is retried. */
  readonly asked: (asked: ClientRequest) => void;
  /** An error thrown here replaces the answer. */
  readonly answered: (answer: IncomingMessage) => void;
}

/** From the last byte of the request to the first of the answer. */
const ANSWER_MS = 300_000;
/** Disconnects a peer that has read nothing for this long. */
export const STALL_MS = 60_000;
const MAX_ANSWER_HEADER_BYTES = 16_384;
const KEEP_ALIVE_MS = 30_000;
/** Wait for the start of a body of known length. */
const HEAD_MS = 5;

/**
 * Streams a request and its answer. Before any answer was sent, rejects with a Refusal, or
 * ClientGone. A later failure cuts the connection.
 */
export const exchange = async (
  request: IncomingMessage,
  response: ServerResponse,
  terms: ExchangeTerms,
): Promise<void> => {
  // A reused connection can end as the request goes out. Only reads may be sent twice.
  const repeatable = !hasBody(request) && SAFE.has(request.method ?? '');
  try {
    await attempt(request, response, { ...terms, kept: repeatable });
  } catch (error) {
    if (!(error instanceof StaleConnection)) throw error;
    await attempt(request, response, { ...terms, kept: false });
  }
};

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The reused connection ended before it answered. */
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
      stalled: () => fail(endpointTimeout('it does not read the request')),
    });
    response.once('close', gone);
    // Not a failure once the answer has begun.
    asked.on('error', (error) => {
      if (!answered) fail(failureOf(error, terms.kept && asked.reusedSocket));
    });
    // An unrequested protocol switch closes without an error.
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
                'its answer cannot be passed on: ' +
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

const createConnection: NonNullable<EndpointOptions['createConnection']> = (options, callback) => {
  connectEndpoint(options as EndpointOptions, callback);
  return undefined;
};

/** Returns a function that stops the stream. */
const sendBody = (
  request: IncomingMessage,
  asked: ClientRequest,
  terms: { readonly clock: Clock; readonly moved: () => void; readonly stalled: () => void },
): (() => void) => {
  if (!hasBody(request)) {
    asked.end();
    return () => {};
  }
  asked.flushHeaders(); // the client may wait for a 100 before it sends the body
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
  const stalled = (): void => fail(endpointTimeout('its client does not read the answer'));
  passBody(answer, response, { clock, moved: endpoint.touch, stalled, stallMs: STALL_MS, whole });
  answer.on('error', (error) => {
    if (!complete) fail(error);
  });
};

/** Valid in a status line. */
const PHRASE = /^[\t\x20-\x7e]{1,256}$/;

/**
 * Sends the head with the first bytes of the body if these come soon, or at once if the length is
 * unknown.
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

/** `reused`: a kept connection may have ended before the request came. */
export const failureOf = (
  error: Error & { readonly code?: string | number },
  reused: boolean,
): Error => {
  const code = String(error.code ?? '');
  if (reused && STALE.has(code))
    return new StaleConnection('a reused connection ended', { cause: error });
  if (error instanceof PortUnreachable) return endpointUnreachable(error.message);
  if (error instanceof InstanceGone) return sandboxNotRunning('Stopping');
  if (error.name === 'TimeoutError') return endpointTimeout('it does not accept the connection');
  if (error instanceof Refusal || code === '') return error;
  return endpointUnreachable(
    WORDS[code] ??
      (code.startsWith('HPE_') ? 'its answer is not valid HTTP' : 'the connection broke'),
  );
};

const STALE: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);
const WORDS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: `its headers are larger than ${MAX_ANSWER_HEADER_BYTES} bytes`,
  ECONNRESET: 'it ended the connection without an answer',
};

interface AnswerTerms {
  readonly clock: Clock;
  readonly moved: () => void;
  readonly stalled: () => void;
  readonly stallMs: number;
  /** Called once the whole body was written. */
  readonly whole: () => void;
}

/** Diverting shorter bodies saves too little memory. */
const LONG_BYTES = 512 * 1024;

/** The caller handles errors. */
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
  // The parser would allocate each piece.
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
