import type { CallOptions, OperationAnswer, OperationId, OperationInput } from './operation-request.ts';
import type { ActorKind, ActorReport, MachineReport, QueuesReport, ShardReport } from './wire.ts';

type Call = <K extends OperationId>(id: K, input: OperationInput<K>, options?: CallOptions) => Promise<OperationAnswer<K>>;

/** What operators look at, with a key that has the admin role. */
export class DebugCalls {
  readonly #call: Call;

  constructor(call: Call) { this.#call = call; }

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

  /** Of the replica that answers, unless one is named. */
  async queues(replica?: string, options?: CallOptions): Promise<QueuesReport> {
    return await this.#call('getQueues', replica === undefined ? {} : { query: { replica } }, options);
  }
}
