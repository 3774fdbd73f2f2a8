import type { Call, CallOptions, OperationId, OperationInput } from './operation-request.ts';
import type { ReceivedEvent } from './server-events.ts';
import type {
  ActorKind,
  ActorNews,
  ActorReport,
  ActorTransition,
  MachineReport,
  QueuesReport,
  ShardReport,
} from './wire.ts';

type Open = <K extends OperationId>(
  id: K,
  input: OperationInput<K>,
  options: CallOptions,
) => Promise<AsyncGenerator<ReceivedEvent, void, undefined>>;

/** Calls for operators who look inside, with a key that has the admin role. */
export class DebugCalls {
  readonly #call: Call;

  readonly #open: Open;

  constructor(call: Call, open: Open) {
    this.#call = call;
    this.#open = open;
  }

  /**
   * Its moves from now on, as the replica sees them that leads it. Without `end` the service has
   * ended the stream, and can be asked again.
   */
  async *follow(
    kind: ActorKind,
    key: string,
    options: CallOptions = {},
  ): AsyncGenerator<ActorNews, void, undefined> {
    const events = await this.#open('followActor', { params: { kind, key } }, options);
    yield { type: 'open' };
    for await (const { event, data } of events) {
      if (event === 'message') yield { type: 'transition', transition: data as ActorTransition };
      else if (event === 'seen-by')
        yield { type: event, ...(data as { replica: string; note?: string }) };
      else if (event === 'reset' || event === 'end') yield { type: event };
    }
  }

  /** As the replica sees it that leads it. */
  async actor(kind: ActorKind, key: string, options?: CallOptions): Promise<ActorReport> {
    return await this.#call('getActor', { params: { kind, key } }, options);
  }

  async machine(kind: ActorKind, options?: CallOptions): Promise<MachineReport> {
    return await this.#call('getMachine', { params: { kind } }, options);
  }

  async shards(options?: CallOptions): Promise<ShardReport> {
    return await this.#call('getShards', {}, options);
  }

  /** Gets the queues of one replica: the one that is named, else the one that answers. */
  async queues(replica?: string, options?: CallOptions): Promise<QueuesReport> {
    return await this.#call(
      'getQueues',
      replica === undefined ? {} : { query: { replica } },
      options,
    );
  }
}
