import type {
  Call,
  CallOptions,
  OperationAnswer,
  OperationId,
  OperationInput,
} from './operation-request.ts';
import type { ReceivedEvent } from './server-events.ts';

type Open = <K extends OperationId>(
  id: K,
  input: OperationInput<K>,
  options: CallOptions & { readonly lastEventId?: string },
) => Promise<AsyncGenerator<ReceivedEvent, void, undefined>>;

export type ProcessRequest = OperationInput<'startProcess'>['body'];
export type SandboxProcess = OperationAnswer<'getProcess'>['process'];
export type ProcessSignal = OperationInput<'signalProcess'>['body']['signal'];

/** Tells one thing of a process; `id` is where a reader that comes again goes on. */
export type ProcessEvent =
  | { readonly type: 'start' | 'end'; readonly process: SandboxProcess }
  | { readonly type: 'stdout' | 'stderr'; readonly id: string; readonly bytes: Buffer }
  | { readonly type: 'dropped'; readonly id: string; readonly bytes: number | undefined }
  | { readonly type: 'error'; readonly error: string };

/** Calls for what runs in a sandbox. */
export class ProcessCalls {
  readonly #call: Call;
  readonly #open: Open;

  constructor(call: Call, open: Open) {
    this.#call = call;
    this.#open = open;
  }

  async start(
    sandboxId: string,
    body: ProcessRequest,
    options?: CallOptions,
  ): Promise<SandboxProcess> {
    return (await this.#call('startProcess', { params: { sandboxId }, body }, options)).process;
  }

  /** Starts a process and yields its output, for which it waits. Who leaves ends nothing. */
  async *run(
    sandboxId: string,
    body: ProcessRequest,
    options: CallOptions = {},
  ): AsyncGenerator<ProcessEvent, void, undefined> {
    const input = {
      params: { sandboxId },
      query: { pace: true as const, encoding: 'base64' as const },
      body,
    };
    yield* eventsOf(await this.#open('startProcess', input, options));
  }

  /**
   * Yields what the process printed from the event on, and prints until its end. It waits for a
   * slow reader, or with `loose` goes on, and says what it dropped.
   */
  async *follow(
    sandboxId: string,
    processId: string,
    {
      from,
      loose = false,
      ...options
    }: CallOptions & { readonly from?: string; readonly loose?: boolean } = {},
  ): AsyncGenerator<ProcessEvent, void, undefined> {
    const query = { encoding: 'base64' as const, pace: loose ? undefined : true, from };
    const input = { params: { sandboxId, processId }, query };
    yield* eventsOf(await this.#open('followProcess', input, options));
  }

  async list(sandboxId: string, options?: CallOptions): Promise<readonly SandboxProcess[]> {
    return (await this.#call('listProcesses', { params: { sandboxId } }, options)).items;
  }

  async get(sandboxId: string, processId: string, options?: CallOptions): Promise<SandboxProcess> {
    const input = { params: { sandboxId, processId } };
    return (await this.#call('getProcess', input, options)).process;
  }

  /** At most 64 KiB; `last`: nothing comes behind it. */
  async write(
    sandboxId: string,
    processId: string,
    { bytes, last }: { readonly bytes: Buffer; readonly last: boolean },
  ): Promise<void> {
    await this.#call('writeToProcess', {
      params: { sandboxId, processId },
      body: { data: bytes.toString('base64'), encoding: 'base64', close: last },
    });
  }

  async signal(sandboxId: string, processId: string, signal: ProcessSignal): Promise<void> {
    await this.#call('signalProcess', { params: { sandboxId, processId }, body: { signal } });
  }

  async resize(
    sandboxId: string,
    processId: string,
    size: OperationInput<'resizeProcess'>['body'],
  ): Promise<void> {
    await this.#call('resizeProcess', { params: { sandboxId, processId }, body: size });
  }

  async delete(sandboxId: string, processId: string): Promise<void> {
    await this.#call('deleteProcess', { params: { sandboxId, processId } });
  }
}

async function* eventsOf(
  received: AsyncIterable<ReceivedEvent>,
): AsyncGenerator<ProcessEvent, void, undefined> {
  for await (const { event, id = '', data } of received) {
    const fields = data as {
      readonly process: SandboxProcess;
      readonly data: string;
      readonly encoding?: 'base64';
      readonly bytes?: number;
      readonly error: string;
    };
    if (event === 'start' || event === 'end') yield { type: event, process: fields.process };
    else if (event === 'stdout' || event === 'stderr')
      yield { type: event, id, bytes: Buffer.from(fields.data, fields.encoding ?? 'utf8') };
    else if (event === 'dropped') yield { type: event, id, bytes: fields.bytes };
    else if (event === 'error') yield { type: event, error: fields.error };
  }
}
