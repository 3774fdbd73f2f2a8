import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { eventually } from './eventually.ts';

export interface ReadEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An event stream on its own connection, read only on demand. */
export class EventReader {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly #response: IncomingMessage;
  #text = '';
  #ended = false;

  private constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    response.on('error', () => undefined);
    response.once('close', () => {
      this.#ended = true;
    });
  }

  static async open(
    port: number,
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<EventReader> {
    return await EventReader.#opened({ host: '127.0.0.1', port, path, headers, agent: false });
  }

  static async post(
    port: number,
    path: string,
    {
      headers,
      body,
    }: { readonly headers: Readonly<Record<string, string>>; readonly body: object },
  ): Promise<EventReader> {
    const all = { Accept: 'text/event-stream', 'Content-Type': 'application/json', ...headers };
    return await EventReader.#opened(
      { method: 'POST', host: '127.0.0.1', port, path, headers: all, agent: false },
      JSON.stringify(body),
    );
  }

  static async #opened(options: RequestOptions, body = ''): Promise<EventReader> {
    const request = httpRequest(options);
    request.end(body);
    const [response]: IncomingMessage[] = await once(request, 'response');
    if (!response) throw new Error('no answer');
    request.on('error', () => undefined); // the response reports the reset as its end
    return new EventReader(response);
  }

  read(): this {
    this.#response.setEncoding('utf8').on('data', (chunk: string) => {
      this.#text += chunk;
    });
    return this;
  }

  get text(): string {
    return this.#text;
  }
  get ended(): boolean {
    return this.#ended;
  }

  get events(): readonly ReadEvent[] {
    return this.#text
      .split('\n\n')
      .slice(0, -1)
      .flatMap((block) => {
        const fields = new Map(
          block
            .split('\n')
            .map((line): [string, string] => [
              line.slice(0, line.indexOf(':')),
              line.slice(line.indexOf(':') + 2),
            ]),
        );
        const data = fields.get('data');
        if (data === undefined) return [];
        const [id, event] = [fields.get('id'), fields.get('event')];
        return [
          {
            ...(id === undefined ? {} : { id }),
            ...(event === undefined ? {} : { event }),
            data: JSON.parse(data),
          },
        ];
      });
  }

  /** The first events that satisfy `look`. */
  async until(
    look: (events: readonly ReadEvent[]) => boolean,
    what: string,
  ): Promise<readonly ReadEvent[]> {
    await eventually(
      () => look(this.events),
      what,
      () => this.#text.slice(-500),
    );
    return this.events;
  }

  close(): void {
    this.#response.destroy();
  }
}
