import { connect, type Socket } from 'node:net';
import type { PortTraits, Taker } from '../../../contracts/sandbox-driver.ts';

/** A connection to a forwarder, which is told a port and then leads to it. */
export type PortSocket = Socket &
  PortTraits & {
    /**
     * Says the port, once. What is written behind it waits in the forwarder until the port has
     * taken the connection; where it does not, the stream fails with the reason, or the signal's.
     */
    readonly choose: (port: number, signal: AbortSignal) => void;
  };

export type Failure = (why: string) => Error;

/**
 * Words for the forwarder's exit codes that tell more than that there is no connection, see
 * native/README.md.
 */
const REASONS: Readonly<Record<number, string>> = {
  11: 'too many connections to the sandbox are open',
  13: "the port is held by a process that is not the sandbox's",
  110: 'it does not answer',
  111: 'nothing listens on it',
};

/**
 * All connections read into it and copy out at once: memory for each read would be work for the
 * garbage collector with each.
 */
const SHARED = Buffer.allocUnsafeSlow(64 * 1024);
const DIVERTED_BYTES = 256 * 1024;

/**
 * Not yet connected to the forwarder. Nobody has to listen for its failures, of which `failure`
 * makes errors.
 */
export const portSocket = (path: string, failure: Failure): PortSocket => {
  const reading = new Reading();
  let answered: ((code: number) => void) | undefined;
  let settle:
    | { readonly resolve: () => void; readonly reject: (reason: unknown) => void }
    | undefined;
  const taken = new Promise<void>((resolve, reject) => {
    settle = { resolve, reject };
  });
  taken.catch(() => {});

  const callback = (count: number, read: Uint8Array): boolean => {
    let bytes = Buffer.from(read.buffer, read.byteOffset, count);
    if (answered) {
      const code = bytes.readUInt8(0);
      answered(code);
      if (code !== 0) return false;
      bytes = bytes.subarray(1);
    }
    return bytes.length === 0 || reading.pass(bytes, socket);
  };
  const socket: Socket = connect({ path, onread: { buffer: () => reading.memory, callback } }).on(
    'error',
    () => {},
  );

  const choose: PortSocket['choose'] = (port, signal) => {
    const end = (): void => {
      answered = undefined;
      signal.removeEventListener('abort', abort);
      socket.off('end', closed).off('close', closed);
    };
    const fail = (error: Error): void => {
      end();
      settle?.reject(error);
      socket.destroy(error);
    };
    const abort = (): void =>
      fail(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
    const closed = (): void => fail(failure(`port ${port}: the sandbox ended, or its way out did`));
    answered = (code) => {
      if (code !== 0)
        return fail(failure(`port ${port}: ${REASONS[code] ?? `it can not be reached (${code})`}`));
      end();
      settle?.resolve();
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.once('end', closed).once('close', closed);
    // In one piece with what is written at once.
    socket.cork();
    socket.write(Buffer.from([port >> 8, port & 0xff]));
    setImmediate(() => socket.uncork());
  };
  const divert: PortSocket['divert'] = (take) => reading.divert(take);
  return Object.assign(socket, { taken, choose, divert });
};

/** Where a connection reads into, and who takes what came without a copy. */
class Reading {
  memory = SHARED;
  #taker: Taker | undefined;

  divert(taker: Taker): void {
    this.#taker = taker;
    this.memory = Buffer.allocUnsafeSlow(DIVERTED_BYTES);
  }

  /** False stops the reading, until somebody reads on. */
  pass(bytes: Buffer, socket: Socket): boolean {
    let done: boolean | undefined;
    const took =
      this.memory !== SHARED &&
      bytes.buffer === this.memory.buffer &&
      this.#taker?.(bytes, () => {
        if (done === false) socket.resume();
        done = true;
      });
    if (took !== true) return socket.push(Buffer.from(bytes));
    done ??= false;
    return done;
  }
}
