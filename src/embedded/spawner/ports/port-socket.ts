import { connect, type Socket } from 'node:net';
import type { PortTraits, Taker } from '../../../contracts/sandbox-driver.ts';

/** Leads to a port after `choose`. */
export type PortSocket = Socket &
  PortTraits & {
    /**
     * To be called once. Data waits until the port has taken the connection. On failure the stream
     * fails with the reason.
     */
    readonly choose: (port: number, signal: AbortSignal) => void;
  };

export type Failure = (why: string) => Error;

/** By the forwarder's exit codes; see native/README.md. */
const REASONS: Readonly<Record<number, string>> = {
  11: 'too many connections to the sandbox are open',
  13: "the port is held by a process that is not the sandbox's",
  110: 'it does not answer',
  111: 'nothing listens on it',
};

/**
 * Shared by all connections, which copy at once: a buffer per read burdens the garbage collector.
 */
const SHARED = Buffer.allocUnsafeSlow(64 * 1024);
const DIVERTED_BYTES = 256 * 1024;

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
    const closed = (): void =>
      fail(failure(`port ${port}: the sandbox or its port forwarder ended`));
    answered = (code) => {
      if (code !== 0)
        return fail(failure(`port ${port}: ${REASONS[code] ?? `it cannot be reached (${code})`}`));
      end();
      settle?.resolve();
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.once('end', closed).once('close', closed);
    socket.cork();
    socket.write(Buffer.from([port >> 8, port & 0xff]));
    setImmediate(() => socket.uncork());
  };
  const divert: PortSocket['divert'] = (take) => reading.divert(take);
  return Object.assign(socket, { taken, choose, divert });
};

class Reading {
  memory = SHARED;
  #taker: Taker | undefined;

  divert(taker: Taker): void {
    this.#taker = taker;
    this.memory = Buffer.allocUnsafeSlow(DIVERTED_BYTES);
  }

  /** Returns false to stop reading. */
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
