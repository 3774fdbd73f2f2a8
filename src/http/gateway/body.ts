import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../contracts/clock.ts';
import type { PortConnection } from '../../contracts/sandbox-driver.ts';
import { flow } from '../reply/flow.ts';

export interface AnswerTerms {
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
export const passBody = (
  answer: IncomingMessage,
  response: ServerResponse,
  terms: AnswerTerms,
): void => {
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
