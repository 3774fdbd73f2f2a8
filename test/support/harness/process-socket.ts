import { WebSocket } from 'ws';

const KINDS = ['message', 'stdout', 'stderr'] as const;
type Kind = (typeof KINDS)[number];

/** The client of a process's WebSocket, per docs/reference/api. */
export class ProcessSocket {
  readonly ws: WebSocket;
  readonly texts: string[] = [];
  /** Position behind the last whole piece. */
  position = '';
  /** Code and reason of the close. */
  readonly closed: Promise<readonly [number, string]>;
  /** Status of an answer that is no upgrade. */
  readonly refused: Promise<number>;
  readonly #opened: Promise<void>;
  readonly #pieces: { readonly kind: Kind; readonly bytes: Buffer }[] = [];
  #heard: () => void = () => {};

  constructor(port: number, path: string, key: string) {
    const headers = { 'SERVICE-API-KEY': key };
    this.ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers, perMessageDeflate: false });
    this.ws.on('error', () => {});
    this.#opened = new Promise((resolve) => {
      this.ws.once('open', () => resolve());
    });
    this.closed = new Promise((resolve) => {
      this.ws.once('close', (code, reason) => resolve([code, reason.toString()]));
    });
    this.refused = new Promise((resolve) => {
      this.ws.once('unexpected-response', (request, response) => {
        resolve(response.statusCode ?? 0);
        request.destroy();
      });
    });
    this.ws.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#take(data);
      else this.texts.push(data.toString());
      this.#heard();
    });
  }

  /** Once the connection is open, in order. */
  send(data: Buffer | string): void {
    void this.#opened.then(() => this.ws.send(data));
  }

  printed(kind: Kind): string {
    const bytes = this.#pieces.flatMap((piece) => (piece.kind === kind ? [piece.bytes] : []));
    return Buffer.concat(bytes).toString();
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo())
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
  }

  #take(data: Buffer): void {
    const end = 2 + (data[1] ?? 0);
    if (end > 2) this.position = data.toString('latin1', 2, end);
    this.#pieces.push({ kind: KINDS[data[0] ?? 0] ?? 'message', bytes: data.subarray(end) });
  }
}
